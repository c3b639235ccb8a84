"""Kernels as files that run without this package: their code, and programs in C and Python that call it."""
