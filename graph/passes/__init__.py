"""Passes over networks, one file each, found by file name."""
