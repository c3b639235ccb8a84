"""Rules that derive sketches from a computation, one file each, found by file name: see `..sketch.rule`."""
