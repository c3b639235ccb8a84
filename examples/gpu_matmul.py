"""Schedule a matrix product for a GPU by hand, step by step; each step keeps what it computes.

Run: python examples/gpu_matmul.py [--size 64] [--target "cuda compute_capability=90"]
Prints the source for CUDA, which needs no GPU; runs, checks and times each step on an OpenCL device.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import te

LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
THREADS = 16
"""Threads along each side of a block."""
TILE = 4
"""Rows and columns that a thread computes."""
DEPTH = 8
"""Steps of the reduction between two fills of shared memory."""


def matmul(size: int, target: str = "opencl") -> lw.Schedule:
    """c = a b, as it is written: for each element, a sum over k."""
    a = te.placeholder((size, size), name="a")
    b = te.placeholder((size, size), name="b")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return lw.Schedule([a, b, c], target=f"{target} {LIMITS}")


def threads(sch: lw.Schedule) -> None:
    """Blocks of 16 x 16 threads, TILE x TILE neighbours each, the columns of which are a vector."""
    i, j, k = sch.get_loops("c")
    i0, i1, i2 = sch.split("c", i, [None, THREADS, TILE])
    j0, j1, j2 = sch.split("c", j, [None, THREADS, TILE])
    sch.reorder("c", i0, j0, i1, j1, k, i2, j2)
    for loop, thread in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        sch.bind("c", loop, thread)
    sch.unroll("c", i2)
    sch.vectorize("c", j2)


def registers(sch: lw.Schedule) -> None:
    """Add up in registers, and write c at the end."""
    j1 = sch.get_loops("c")[3]
    copy = sch.cache_write("c", "c", "local")
    sch.reverse_compute_at(copy, j1)
    rows, columns = sch.get_loops(copy)[-2:]
    sch.unroll(copy, rows)
    sch.vectorize(copy, columns)


def shared(sch: lw.Schedule) -> None:
    """What a block needs for DEPTH steps of k is read once, by all threads together, and shared."""
    k0, _ = sch.split("c", "k", [None, DEPTH])
    for operand in ("a", "b"):
        copy = sch.cache_read("c", operand, "shared")
        sch.compute_at(copy, k0, unit_loops=True)
        fused = sch.fuse(copy, *sch.get_loops(copy)[-2:])
        _, y, x = sch.split(copy, fused, [None, THREADS, THREADS])
        sch.bind(copy, y, "threadIdx.y")
        sch.bind(copy, x, "threadIdx.x")


def banks(sch: lw.Schedule) -> None:
    """Rows of a are padded by four elements: threads that read a column hit different banks."""
    sch.storage_align("a_shared", axis=0, factor=8, offset=4)


STEPS: tuple[Callable[[lw.Schedule], None], ...] = (threads, registers, shared, banks)


def check(sch: lw.Schedule, size: int) -> lw.Kernel:
    """Build and run; fails where the result is not NumPy's."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(2))
    kernel = lw.build(sch)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-3, atol=1e-3)
    return kernel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--target", default="opencl")
    options = parser.parse_args()
    sch = matmul(options.size, options.target)
    for step in STEPS:
        step(sch)
        if options.target.startswith("opencl"):
            time_s = check(sch, options.size).benchmark(min_repeat_ms=10, repeat=3).median
            print(f"{step.__name__:12}{2 * options.size**3 / time_s * 1e-9:9.2f} GFLOP/s")
    if options.target.startswith("cuda"):
        print(lw.build(sch).source)


if __name__ == "__main__":
    main()
