"""Arithmetic operations of a te function, as used for GFLOP/s."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, math
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ..dialects.te import ComputeOp

_COUNTED = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    arith.NegfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.FloorDivSIOp,
    arith.MaxSIOp,
    arith.MinSIOp,
)


def count_flops(func: FuncOp) -> int:
    """Operations on elements over all stages: a multiply-add is 2, a function of the math dialect 1.

    Reads, conversions, comparisons, selections and index arithmetic count nothing.
    """
    return sum(_stage(op) for op in func.body.block.ops if isinstance(op, ComputeOp))


def _stage(op: ComputeOp) -> int:
    points = prod(a.extent for a in op.axes.data)
    per_point = _block(op.body.block)
    if op.combine is not None:
        per_point += _block(op.combine.block)
    elif op.reduce_axes:
        per_point += 1
    return points * per_point


def _block(block: Block) -> int:
    return sum(_operation(op) for op in block.ops)


def _operation(op: Operation) -> int:
    if isinstance(op, math.FmaOp):
        return 2
    return int(isinstance(op, _COUNTED) or op.name.startswith("math."))
