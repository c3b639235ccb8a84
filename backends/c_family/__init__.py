"""Kernels printed as C for GPUs: what CUDA C and OpenCL C share."""
