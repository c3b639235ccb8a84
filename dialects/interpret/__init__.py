"""Executable meaning of the dialects: interpreters over NumPy arrays."""
