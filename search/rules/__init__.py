"""Rules that derive sketches from a computation, found by file name."""
