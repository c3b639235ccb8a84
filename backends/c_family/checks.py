"""Comparison kernels in CUDA C and OpenCL C: arrays stay on the device, and only a count is copied to the host."""

from __future__ import annotations

BLOCK = 256
MOST_BLOCKS = 2048

_CUDA = """
typedef unsigned long long u64; typedef unsigned int u32; typedef unsigned short u16;
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define FIRST ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((u64)gridDim.x * blockDim.x)
#define ADD(place, value) atomicAdd(place, value)
#define FROM_BITS(x) __uint_as_float(x)
static __device__ float from_half(const u16* at) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(*at)); return f; }
"""
_OPENCL = """
typedef ulong u64; typedef uint u32; typedef ushort u16;
#define KERNEL __kernel void
#define GLOBAL __global
#define FIRST ((u64)get_global_id(0))
#define STEP ((u64)get_global_size(0))
#define ADD(place, value) atomic_add(place, value)
#define FROM_BITS(x) as_float(x)
#define from_half(at) vload_half(0, (GLOBAL const half*)(at))
"""
_LANGUAGES = {"cuda": _CUDA, "opencl": _OPENCL}

UNLIKE = """
KERNEL unlike(GLOBAL const u32* a, u64 a_start, GLOBAL const u32* b, u64 b_start, u64 n, GLOBAL u32* count) {
  u32 found = 0;
  for (u64 i = FIRST; i < n; i += STEP) found += a[a_start + i] != b[b_start + i];
  if (found) ADD(count, found);
}
"""
"""Counts 32-bit words that differ; starts and `n` are in words."""

_WRONG = """
KERNEL wrong(GLOBAL const TYPE* got, u64 start, GLOBAL const TYPE* expected, u64 n, REAL atol, REAL rtol,
             GLOBAL u32* count) {
  u32 found = 0;
  for (u64 i = FIRST; i < n; i += STEP) {
    const REAL x = READ(got + start + i), y = READ(expected + i);
    const REAL size = y < 0 ? -y : y, distance = x < y ? y - x : x - y;
    const int finite = size <= LARGEST;
    const int right = x == y || (x != x && y != y) || (finite && distance <= atol + rtol * size);
    found += !right;
  }
  if (found) ADD(count, found);
}
"""
"""Counts elements that are not within `atol + rtol * abs(expected)`; infinities and NaN have to be met exactly."""

_TYPES = {
    "float32": ("float", "float", "*(x)", "3.402823466e38f"),
    "float64": ("double", "double", "*(x)", "1.7976931348623157e308"),
    "float16": ("u16", "float", "from_half(x)", "3.402823466e38f"),
    "bfloat16": ("u16", "float", "FROM_BITS((u32)*(x) << 16)", "3.402823466e38f"),
}
DTYPES = tuple(_TYPES)
"""Element types that `wrong_source` compares."""


def unlike_source(kind: str) -> str:
    """Return the kernel `unlike`, which counts words that differ, in `cuda` or `opencl`."""
    return _LANGUAGES[kind] + UNLIKE


def wrong_source(kind: str, dtype: str) -> str:
    """Return the kernel `wrong`, which counts elements out of tolerance, for an element type, in `cuda` or `opencl`."""
    element, real, read, largest = _TYPES[dtype]
    names = f"#define TYPE {element}\n#define REAL {real}\n#define READ(x) {read}\n#define LARGEST {largest}\n"
    double = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if (kind, dtype) == ("opencl", "float64") else ""
    return double + _LANGUAGES[kind] + names + _WRONG


def blocks(count: int) -> int:
    """Return how many thread blocks of BLOCK threads look at so many items."""
    return max(1, min(MOST_BLOCKS, -(-count // BLOCK)))
