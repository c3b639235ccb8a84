"""Schedule a matrix product for a GPU by hand, step by step; each step keeps what it computes.

Run: python examples/gpu_matmul.py [--size 256] [--target "cuda compute_capability=90"] [--source]
Checks and times each step on the device; with --source prints the last kernel, which needs none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import te

LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
THREADS = (16, 8)
"""Threads along the rows and columns of a block."""
VIRTUAL = (2, 4)
"""Tiles of a thread along each side, spread over the block."""
TILE = 4
"""Rows and columns of such a tile: neighbours, which one vector holds."""
DEPTH = 16
"""Steps of the reduction between two fills of shared memory."""


def matmul(size: int, target: str = "opencl") -> lw.Schedule:
    """c = a b, as it is written: for each element, a sum over k."""
    a = te.placeholder((size, size), name="a")
    b = te.placeholder((size, size), name="b")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return lw.Schedule([a, b, c], target=f"{target} {LIMITS}")


def threads(sch: lw.Schedule) -> None:
    """Blocks of 128 threads for 128 x 128 elements: each has 2 x 4 tiles of 4 x 4, the rows of which are vectors."""
    i, j, k = sch.get_loops("c")
    i0, i1, i2, i3 = sch.split("c", i, [None, VIRTUAL[0], THREADS[0], TILE])
    j0, j1, j2, j3 = sch.split("c", j, [None, VIRTUAL[1], THREADS[1], TILE])
    k0, k1 = sch.split("c", k, [None, DEPTH])
    sch.reorder("c", i0, j0, i1, j1, i2, j2, k0, k1, i3, j3)
    for loop, thread in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "vthread"), (j1, "vthread")):
        sch.bind("c", loop, thread)
    sch.bind("c", sch.fuse("c", i2, j2), "threadIdx.x")
    sch.unroll("c", i3)
    sch.vectorize("c", j3)


def registers(sch: lw.Schedule) -> None:
    """Add up in registers, and write c at the end."""
    copy = sch.cache_write("c", "c", "local")
    sch.reverse_compute_at(copy, "i2_j2")
    rows, columns = sch.get_loops(copy)[-2:]
    sch.unroll(copy, rows)
    sch.vectorize(copy, columns)


def fragments(sch: lw.Schedule) -> None:
    """Read what one step of the reduction takes once, to registers, as vectors."""
    for operand in ("a", "b"):
        copy = sch.cache_read("c", operand, "local", label=f"{operand}_local")
        sch.compute_at(copy, "k1")
        sch.vectorize(copy, sch.get_loops(copy)[-1])


def shared(sch: lw.Schedule) -> None:
    """Shared memory holds the operands of DEPTH steps of k, which all threads of a block read together, once.

    a is turned round on the way, so that a tile's rows are neighbours; four elements of padding keep the threads that
    store a column apart in the banks.
    """
    for operand, layout in (("a", ("ax1", "ax0")), ("b", ())):
        copy = sch.cache_read(f"{operand}_local", operand, "shared", layout=layout, label=f"{operand}_shared")
        if layout:
            sch.storage_align(copy, axis=0, factor=32, offset=4)
        sch.compute_at(copy, "k0", unit_loops=True)
        loops = sch.get_loops(copy)[-2:]
        if layout:  # threads go along the rows of a in global memory, whatever the layout of the copy
            sch.reorder(copy, *reversed(loops))
            loops = loops[::-1]
        _, thread, vector = sch.split(copy, sch.fuse(copy, *loops), [None, THREADS[0] * THREADS[1], 4])
        sch.bind(copy, thread, "threadIdx.x")
        sch.vectorize(copy, vector)


def unrolled(sch: lw.Schedule) -> None:
    """Write out the DEPTH steps, so that the compiler loads for the next one while it computes this one."""
    sch.pragma("c", "k1", auto_unroll_max_step=256)


def pipeline(sch: lw.Schedule) -> None:
    """Load the next fill of shared memory to registers before the work on this one, and store it behind it."""
    sch.software_pipeline("c", "k0", stages=2, registers=1)


STEPS: tuple[Callable[[lw.Schedule], None], ...] = (threads, registers, fragments, shared, unrolled, pipeline)


def check(sch: lw.Schedule, size: int) -> lw.Kernel:
    """Build and run; fails where the result is not NumPy's."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(2))
    kernel = lw.build(sch)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-3, atol=1e-3)
    return kernel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--source", action="store_true", help="print the last kernel; needs no device")
    options = parser.parse_args()
    sch = matmul(options.size, options.target)
    for step in STEPS:
        step(sch)
        if not options.source:
            time_s = check(sch, options.size).benchmark(min_repeat_ms=10, repeat=3).median
            print(f"{step.__name__:12}{2 * options.size**3 / time_s * 1e-9:9.2f} GFLOP/s")
    if options.source:
        print(lw.build(sch).source)


if __name__ == "__main__":
    main()
