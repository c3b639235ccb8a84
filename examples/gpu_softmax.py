"""Schedule a softmax over rows for a GPU by hand: a block of threads a row, joined by shuffles, the row in registers.

Run: python examples/gpu_softmax.py [--target "cuda model=h200"] [--rows 8192] [--columns 4096]
Prints time and bandwidth where there is a device; for CUDA without one the source, which needs no GPU.
"""

from __future__ import annotations

import argparse

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.search.measure.reference import make_reference

LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
OPENCL = f"opencl {LIMITS}"
LANES = 4
"""Neighbouring elements that a thread reads at once: 16 bytes."""


def softmax(rows: int, columns: int) -> list[te.Tensor]:
    """exp(x - max) / sum(exp(x - max)) of each row."""
    data = te.placeholder((rows, columns), name="data")
    return [data, topi.nn.softmax(data, -1)]


def schedule(sch: lw.Schedule, threads: int = 256) -> None:
    """Each row is one block's; each of its `threads` has every `threads`th group of four elements of the row.

    The row is read once for the maximum and once, from the L1 cache, for the exponentials, which then stay in
    registers until they are divided. The maximum and the sum are each joined twice: in a thread, then across threads.
    """
    out = "T_softmax_norm"
    row, _ = sch.get_loops(out)
    sch.bind(out, row, "blockIdx.x")
    for block in ("T_softmax_expsum", "T_softmax_exp", "T_softmax_maxelem"):
        sch.compute_at(block, row)

    across_threads(sch, "T_softmax_maxelem", threads)
    elements(sch, "T_softmax_exp", threads)
    sch.set_scope("T_softmax_exp", "local")
    across_threads(sch, "T_softmax_expsum", threads)
    elements(sch, out, threads)


def elements(sch: lw.Schedule, block: str, threads: int) -> None:
    """Give a row's elements to threads, four neighbours at a time."""
    _, thread, lane = sch.split(block, sch.get_loops(block)[-1], [None, threads, LANES])
    sch.bind(block, thread, "threadIdx.x")
    sch.vectorize(block, lane)


def across_threads(sch: lw.Schedule, block: str, threads: int) -> None:
    """Join a row's elements within each thread first, then what the threads have."""
    _, thread, _ = sch.split(block, "k", [None, threads, LANES])
    partial = sch.rfactor(block, thread)
    outer, own, lane = sch.get_loops(partial)[-3:]
    sch.reorder(partial, own, outer, lane)
    sch.bind(partial, own, "threadIdx.x")
    sch.set_scope(partial, "local")
    sch.vectorize(partial, lane)
    sch.bind(block, thread, "threadIdx.x")
    sch.set_scope(block, "local")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=OPENCL)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=256)
    options = parser.parse_args()
    target = options.target if "=" in options.target else f"{options.target} {LIMITS}"
    sch = lw.Schedule(softmax(options.rows, options.columns), target=target)
    schedule(sch, options.threads)
    kernel = lw.build(sch)
    try:
        check(sch, kernel)
    except RuntimeError as error:  # no driver, no device, or no package to drive it
        print(f"{kernel.source}\n// not run: {error}")
        return
    time_s = kernel.benchmark(min_repeat_ms=20).median
    bytes_moved = 2 * 4 * options.rows * options.columns
    print(f"right; {time_s * 1e6:.1f} us, {bytes_moved / time_s * 1e-9:.1f} GB/s")


def check(sch: lw.Schedule, kernel: lw.Kernel) -> None:
    """Run on the device and compare with the reference."""
    reference = make_reference(sch.workload)
    (expected,) = reference.expected
    np.testing.assert_allclose(kernel(*reference.inputs), expected, **reference.tolerances[0]._asdict())


if __name__ == "__main__":
    main()
