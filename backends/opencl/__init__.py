"""OpenCL: kernels as OpenCL C, compiled and run by pyopencl."""
