"""Kinds of knobs: one file each."""
