"""CUDA: kernels as CUDA C, compiled by NVRTC without a GPU, run by pycuda."""
