"""Reports: a record file as one HTML page that needs nothing else."""
