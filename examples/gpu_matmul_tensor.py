"""Schedule a matrix product of fp16 for the tensor cores of a GPU by hand, step by step.

Run: python examples/gpu_matmul_tensor.py [--size 4096] [--target "cuda model=h200"] [--source]
Checks and times it on the device; with --source prints the kernel, which needs none.
"""

from __future__ import annotations

import argparse

import numpy as np

import loopwright as lw
from loopwright import te, topi

INTRINSIC = "mma.m16n16k16.f16"
WARPS = (2, 2)
"""Warps of a block of threads along the rows and columns of its tile."""
TILES = (4, 4)
"""Matrices of 16 x 16 that a warp computes along each side: its sums are 128 registers of each lane."""
K_STEPS = 4
"""Products of 16 steps of k between two fills of shared memory, whose rows then are the 128 bytes of all banks."""
STAGES = 3
"""Fills of shared memory that are there or under way, of 32 KiB each: two blocks of threads fit a multiprocessor."""
VECTOR = 8
"""Elements of fp16 that a thread copies at once: 16 bytes."""


def matmul(size: int, target: str = "cuda model=h200") -> lw.Schedule:
    """d = a b^T, summed in single precision and rounded to half precision."""
    a = te.placeholder((size, size), name="a", dtype="float16")
    b = te.placeholder((size, size), name="b", dtype="float16")
    c = topi.nn.matmul(a, b, transpose_b=True, out_dtype="float32")
    d = te.compute((size, size), lambda i, j: c[i, j].astype("float16"), name="d")
    return lw.Schedule([a, b, d], target=target)


def operands(sch: lw.Schedule) -> None:
    """Stage the operands in shared memory, where warps load them from."""
    for operand in ("a", "b"):
        sch.cache_read("T_matmul", operand, "shared", label=f"{operand}_shared")


def tensor(sch: lw.Schedule) -> None:
    """Give blocks of threads tiles of 128 x 128, and each warp 64 x 64 of them, as matrices of 16 x 16."""
    tile = sch.tensor_tile("T_matmul", INTRINSIC, warps=WARPS, tiles=TILES, k_steps=K_STEPS)
    for operand in ("a_shared", "b_shared"):
        sch.compute_at(operand, tile.fill, unit_loops=True)


def copies(sch: lw.Schedule) -> None:
    """Let all threads copy together, 16 bytes each at once, to chunks that lie apart in the banks."""
    for operand in ("a_shared", "b_shared"):
        both = sch.fuse(operand, *sch.get_loops(operand)[-2:])
        _, warp, lane, vector = sch.split(operand, both, [None, WARPS[0] * WARPS[1], 32, VECTOR])
        sch.bind(operand, warp, "threadIdx.y")
        sch.bind(operand, lane, "threadIdx.x")
        sch.vectorize(operand, vector)
        sch.swizzle(operand)


def epilogue(sch: lw.Schedule) -> None:
    """Round the sums and store them from the registers that they are in, two neighbours at once."""
    lane = sch.get_loops("T_matmul")[2]
    sch.reverse_compute_at("d", lane)
    *_, i2, j2, j3, i3, pair = sch.get_loops("d")
    for loop in (i2, j2, j3, i3):
        sch.unroll("d", loop)
    sch.vectorize("d", pair)


def pipeline(sch: lw.Schedule) -> None:
    """Copy two fills ahead of the one that is multiplied."""
    sch.software_pipeline("T_matmul", sch.get_loops("T_matmul")[3], stages=STAGES)


STEPS = (operands, tensor, copies, epilogue, pipeline)


def scheduled(size: int, target: str = "cuda model=h200") -> lw.Schedule:
    """Return the product with all steps."""
    sch = matmul(size, target)
    for step in STEPS:
        step(sch)
    return sch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--source", action="store_true")
    options = parser.parse_args()
    kernel = lw.build(scheduled(options.size, options.target))
    if options.source:
        print(kernel.source)
        return
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((options.size, options.size)).astype(np.float16) for _ in range(2))
    right = a.astype(np.float32) @ b.astype(np.float32).T
    error = np.linalg.norm(kernel(a, b) - right) / np.linalg.norm(right)
    seconds = kernel.benchmark(a, b).median
    print(f"{2e-12 * options.size**3 / seconds:.0f} TFLOP/s, error {error:.1e}")


if __name__ == "__main__":
    main()
