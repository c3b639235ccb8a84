"""Schedule a matrix product for a GPU of sm_90a by hand: products of warp groups (wgmma), copies in bulk (TMA).

Run: python examples/gpu_matmul_wgmma.py [--size 4096] [--dtype float16] [--target "cuda model=h200"] [--source]
Checks and times it on the device; with --source prints the kernel, which needs none.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.loop_ref import LoopRef


class Tiles(NamedTuple):
    """Sizes of the schedule."""

    groups: tuple[int, int] = (2, 1)
    """Warp groups of a block of threads along the rows and columns of its tile."""
    tiles: tuple[int, int] = (1, 1)
    """Instructions that a warp group has along each side."""
    columns: int = 256
    """Columns of an instruction, whose rows are 64: a thread holds half as many sums."""
    stages: int = 4
    """Fills of shared memory that are there or under way, of 48 KiB each."""
    group: int = 8
    """Blocks of threads along the rows that come one after the other, and read the same columns."""
    blocks_per_sm: int = 1
    """Blocks of threads that fit a multiprocessor."""


TILES = Tiles()
ROW_BYTES = 128
"""Bytes of k between two fills: the span of the swizzle that copy engine and instruction share."""
STEP_BYTES = 32
"""Bytes of k of an instruction."""
KINDS = {"float16": ("f16", "float32"), "bfloat16": ("bf16", "float32"), "int8": ("s8", "int32")}
"""The word for a type in names of intrinsics, and the type of sums, which those of bytes stay in."""


def matmul(size: int, dtype: str = "float16", target: str = "cuda model=h200") -> lw.Schedule:
    """d = a b^T, summed in single precision and rounded to half precision; sums of bytes in 32 bits."""
    result = dtype if dtype != "int8" else "int32"
    a = te.placeholder((size, size), name="a", dtype=dtype)
    b = te.placeholder((size, size), name="b", dtype=dtype)
    c = topi.nn.matmul(a, b, transpose_b=True, out_dtype=KINDS[dtype][1])
    d = te.compute((size, size), lambda i, j: c[i, j].astype(result), name="d")
    return lw.Schedule([a, b, d], target=target)


def scheduled(size: int, dtype: str = "float16", target: str = "cuda model=h200", tiles: Tiles = TILES) -> lw.Schedule:
    """Return the product with all steps."""
    sch = matmul(size, dtype, target)
    kind, _ = KINDS[dtype]
    k = STEP_BYTES // (1 if dtype == "int8" else 2)
    for operand in ("a", "b"):
        sch.cache_read("T_matmul", operand, "shared", label=f"{operand}_shared")
    intrinsic = f"wgmma.m64n{tiles.columns}k{k}.{kind}"
    tile = sch.tensor_tile("T_matmul", intrinsic, tiles.groups, tiles.tiles, ROW_BYTES // STEP_BYTES, tiles.group)
    boxes(sch, tile.fill)
    epilogue(sch, tile.lane, dtype)
    if tiles.blocks_per_sm > 1:
        sch.pragma("T_matmul", tile.block, blocks_per_sm=tiles.blocks_per_sm)
    sch.software_pipeline("T_matmul", tile.fill, stages=tiles.stages, bulk=1)
    return sch


def boxes(sch: lw.Schedule, fill: str) -> None:
    """Fill shared memory with one box of each operand, which one thread has copied: its loops stay as they are."""
    for operand in ("a_shared", "b_shared"):
        sch.compute_at(operand, fill, unit_loops=True)
        sch.swizzle(operand)


def epilogue(sch: lw.Schedule, lane: LoopRef, dtype: str) -> None:
    """Round the sums and store them from the registers that they are in.

    A thread has two neighbours of every eight columns. Of four times two halves it makes eight neighbours, by exchange
    with three other threads, and stores 16 bytes at once; sums of bytes are stored two by two.
    """
    sch.reverse_compute_at("d", lane)
    loops = sch.get_loops("d")
    *tiles, columns, rows, pair = loops[loops.index(lane) + 1 :]
    if dtype != "int8":
        columns, four = sch.split("d", columns, (0, 4))
        sch.reorder("d", *tiles, columns, rows, four, pair)
        pair = sch.fuse("d", four, pair)
    for loop in (*tiles, columns, rows):
        sch.unroll("d", loop)
    sch.vectorize("d", pair)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--dtype", choices=sorted(KINDS), default="float16")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--source", action="store_true")
    options = parser.parse_args()
    kernel = lw.build(scheduled(options.size, options.dtype, options.target))
    if options.source:
        print(kernel.source)
        return
    rng = np.random.default_rng(0)
    dtype = np.dtype(options.dtype)
    a, b = (rng.uniform(-4, 4, (options.size, options.size)).astype(dtype) for _ in range(2))
    right = a.astype(np.float32) @ b.astype(np.float32).T
    error = np.linalg.norm(kernel(a, b).astype(np.float32) - right) / np.linalg.norm(right)
    seconds = kernel.benchmark(a, b).median
    print(f"{2e-12 * options.size**3 / seconds:.0f} TFLOP/s, error {error:.1e}")


if __name__ == "__main__":
    main()
