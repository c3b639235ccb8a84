"""Arithmetic operations of a te function, as used for GFLOP/s."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, math
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.te import ComputeOp, YieldOp

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
    arith.DivUIOp,
    arith.RemUIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
    arith.ShLIOp,
    arith.ShRSIOp,
    arith.ShRUIOp,
)


def count_flops(func: FuncOp) -> int:
    """Operations on elements over all stages: a multiply-add is 2, a function of the math dialect 1.

    Of a selection the costlier branch counts; reads, conversions, comparisons and index arithmetic count nothing.
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
    """Operations that the values yielded need, shared ones once."""
    needed: dict[SSAValue, frozenset[Operation]] = {argument: frozenset() for argument in block.args}
    for op in block.ops:
        if isinstance(op, arith.SelectOp):
            branch = max(needed[op.lhs], needed[op.rhs], key=_total)
            needed[op.result] = needed[op.cond] | branch
        elif isinstance(op, YieldOp):
            return _total(frozenset[Operation]().union(*(needed[v] for v in op.values)))
        else:
            below = frozenset[Operation]().union(*(needed.get(v, frozenset()) for v in op.operands))
            needed[op.results[0]] = below | {op}
    return 0


def _total(ops: frozenset[Operation]) -> int:
    return sum(_operation(op) for op in ops)


def _operation(op: Operation) -> int:
    if isinstance(op, math.FmaOp):
        return 2
    return int(isinstance(op, _COUNTED) or op.name.startswith("math."))
