"""A fleet of measuring devices: registered with a tracker (Dask's scheduler) under a key, shared by many tuners."""
