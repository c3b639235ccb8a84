"""Lowerings from one dialect to the next, found by file name."""
