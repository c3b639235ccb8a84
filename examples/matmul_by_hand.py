"""Schedule a matrix product by hand, step by step, and print the GFLOP/s that each step gains.

Run: python examples/matmul_by_hand.py [--size 1024] [--repeats 100]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.backends.llvm.device import device_name
from loopwright.backends.llvm.host import host_target
from loopwright.backends.llvm.peak import peak_gflops_per_s

CPU = host_target()
LANES = CPU.vector_bytes // 4
ROWS = 8 if CPU.vector_registers >= 32 else 4
"""Rows of a tile that is two vectors wide: its accumulators take half of the vector registers."""


def matmul(size: int) -> lw.Schedule:
    """c = a b, as it is written: for each element, a sum over k."""
    a = te.placeholder((size, size), name="a")
    b = te.placeholder((size, size), name="b")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return lw.Schedule([a, b, c], target=CPU)


def reorder(sch: lw.Schedule) -> None:
    """k outside of j: rows of b and of c are read from left to right."""
    i, j, k = sch.get_loops("c")
    sch.reorder("c", i, k, j)


def vectorize(sch: lw.Schedule) -> None:
    """A vector of neighbouring columns at a time."""
    j = sch.get_loops("c")[-1]
    _, j1 = sch.split("c", j, [None, LANES])
    sch.vectorize(j1)


def tile(sch: lw.Schedule) -> None:
    """ROWS x 2 vectors in each step of k, unrolled: what is read serves all of them, and sums stay in registers."""
    i, k, j0, j1 = sch.get_loops("c")
    i0, i1 = sch.split("c", i, [None, ROWS])
    j00, j01 = sch.split("c", j0, [None, 2])
    sch.reorder("c", j00, i0, k, i1, j01, j1)
    sch.unroll("c", i1)
    sch.unroll("c", j01)


def accumulate(sch: lw.Schedule) -> None:
    """Add up in a buffer as large as the tile, and copy that to c at the end."""
    i0 = sch.get_loops("c")[1]
    copy = sch.cache_write("c", "c", "local")
    sch.reverse_compute_at(copy, i0)
    i1, j01, j1 = sch.get_loops(copy)[2:]
    sch.unroll(copy, i1)
    sch.unroll(copy, j01)
    sch.vectorize(copy, j1)


def pack(sch: lw.Schedule) -> None:
    """Copy b into panels as wide as the tile, in the order in which they are read."""
    width = 2 * LANES
    panel = sch.cache_read("c", "b", "global", [f"j/{width}", "k", f"j%{width}"])
    column = sch.get_loops(panel)[-1]
    sch.vectorize(sch.split(panel, column, [None, LANES])[1])


def threads(sch: lw.Schedule) -> None:
    """Deal the tiles, and the panels, to all cores."""
    j00, i0 = sch.get_loops("c")[:2]
    sch.parallel(sch.fuse("c", j00, i0))
    sch.parallel(sch.get_loops("b_packed")[0])


STEPS: tuple[Callable[[lw.Schedule], None], ...] = (reorder, vectorize, tile, accumulate, pack, threads)


def measure(sch: lw.Schedule, size: int, most: int) -> float:
    """GFLOP/s of the schedule so far in the best of up to `most` repeats, after a check of its result."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(2))
    kernel = lw.build(sch)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-3, atol=1e-3)
    result = kernel.benchmark(a, b, min_repeat_ms=0, repeat=1)
    if result.min < 0.5:
        # Many short repeats: the shortest is the one that nothing else on the machine disturbed.
        result = kernel.benchmark(a, b, min_repeat_ms=5, repeat=min(most, max(10, int(1 / result.min))))
    return 2 * size**3 / result.min / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices (default: 1024)")
    parser.add_argument("--repeats", type=int, default=100, help="measurements of a step, at most (default: 100)")
    options = parser.parse_args()
    size = options.size
    peaks = {cores: peak_gflops_per_s(host_target(cores)) for cores in {1, CPU.cores}}
    print(f"{size} x {size} x {size}, float32, on {device_name()}, {date.today()}")
    print(f"{'step':<12}{'GFLOP/s':>9}{'gain':>9}{'threads':>9}{'of peak':>9}")
    sch = matmul(size)
    before = 0.0
    for name, step in (("naive", None), *((step.__name__, step) for step in STEPS)):
        if step is not None:
            step(sch)
        cores = CPU.cores if step is threads else 1
        speed = measure(sch, size, options.repeats)
        gain = f"{speed / before:.1f} x" if before else ""
        print(f"{name:<12}{speed:>9.1f}{gain:>9}{cores:>9}{speed / peaks[cores]:>9.1%}", flush=True)
        before = speed
    print(f"\n{sch.pipeline}")


if __name__ == "__main__":
    main()
