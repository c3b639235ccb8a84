"""Masks of a softmax: the conditions under which its elements are more than -inf."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from ...dialects.index import IndexExpr
from ...dialects.loop import LoadOp
from ...dialects.te import PredicateOp
from .access import is_argument, writers

KEPT = "kept"
"""The annotation of a reduction by conditions over its iterators: an instance in which one fails adds nothing."""

Conditions = tuple[IndexExpr, ...]
Indices = Mapping[str, IndexExpr]


def kept_where(value: SSAValue, at: Indices) -> Conditions:
    """Return conditions, of which none fails where a value of a block's body is more than -inf.

    `at` says what the iterators of the block are. Blocks that write what the value is read from are looked through.
    Masks of numbers that are low but finite count as none: how low the others are is known when they are there.
    """
    op = value.owner
    if isinstance(op, arith.SelectOp):
        test, kept, other = op.operands
        if _is_lowest(other):
            return (*_holds(test, at), *kept_where(kept, at))
        if _is_lowest(kept):
            return (*_fails(test, at), *kept_where(other, at))
    elif isinstance(op, arith.AddfOp):
        return (*kept_where(op.lhs, at), *kept_where(op.rhs, at))
    elif isinstance(op, arith.ExtFOp | arith.TruncFOp):
        return kept_where(op.operands[0], at)
    elif isinstance(op, LoadOp):
        return _kept_of(op, at)
    return ()


def _is_lowest(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr) and op.value.value.data == -inf


def _holds(test: SSAValue, at: Indices) -> Conditions:
    """Return the conditions without which a test is false."""
    op = test.owner
    if isinstance(op, arith.AndIOp):
        return (*_holds(op.lhs, at), *_holds(op.rhs, at))
    return tuple(c.substitute(at) for c in op.where.data) if isinstance(op, PredicateOp) else ()


def _fails(test: SSAValue, at: Indices) -> Conditions:
    """Return the conditions without which a test is true."""
    op = test.owner
    if not isinstance(op, PredicateOp) or len(op.where.data) != 1:
        return ()
    return ((-op.where.data[0] - 1).substitute(at),)


def _kept_of(load: LoadOp, at: Indices) -> Conditions:
    """Return the conditions of the block that writes what is loaded; none where its elements are not each its own."""
    found = [] if load.conditions or load.positions or is_argument(load.buffer) else writers(load.buffer)
    if len(found) != 1 or len(found[0].outputs) != 1 or found[0].is_reduction:
        return ()
    (block,) = found
    names = [e.as_axis() for e in block.write_indices[0]]
    written = {name: e.substitute(at) for name, e in zip(names, load.indices.data, strict=True) if name is not None}
    return kept_where(block.yielded[0], written) if len(written) == len(block.axes) else ()
