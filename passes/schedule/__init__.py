"""Schedule primitives: one file, one pass, found by file name."""
