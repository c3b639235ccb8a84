"""Divisions of a softmax, at the level of tensor expressions: by a sum that a row shares, and that is 1 at least."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue

from ...dialects.te import ComputeOp, ReadOp, YieldOp
from ..analysis.same_bodies import computes_same


def let_softmax_multiply(quotient: ComputeOp) -> None:
    """Let devices multiply by the inverse of a row's sum, where an expression is the last one of a softmax.

    One of its exponentials is 1, so that the inverse is a normal number, and a product with it is off by 1.5 units in
    the last place at most.
    """
    division = _value(quotient)
    division = division.operands[0].owner if isinstance(division, arith.TruncFOp) else division
    if isinstance(division, arith.DivfOp) and _divides_by_sum(quotient, division):
        division.fastmath = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_RECIP])


def _divides_by_sum(quotient: ComputeOp, division: arith.DivfOp) -> bool:
    """True for `exp(x[i, j] - max(x[i])) / sum(exp(x[i] - max(x[i])))`, each of the three an expression."""
    above, below = _read(division.lhs), _read(division.rhs)
    if above is None or below is None:
        return False
    exponential, total = above.tensor.owner, below.tensor.owner
    if not isinstance(exponential, ComputeOp) or not isinstance(total, ComputeOp) or total.combiner.data != "add":
        return False
    own, term = [axis.name for axis in exponential.spatial_axes], _read(_yielded(total))
    largest = _largest(exponential)
    if largest is None or term is None or term.tensor is not above.tensor or len(total.reduce_axes) != 1:
        return False
    along = _names(term)
    reduced = total.reduce_axes[0].name
    if along is None or along.count(reduced) != 1 or _names(above) != [a.name for a in quotient.spatial_axes]:
        return False
    place = along.index(reduced)
    maximum, subtrahend, of = largest
    return (
        _without(along, place) == [axis.name for axis in total.spatial_axes]
        and _names(below) == _without(_names(above) or [], place)
        and _names(subtrahend) == _without(own, place)
        and len(maximum.reduce_axes) == 1
        and computes_same(
            _yielded(maximum),
            of,
            dict(zip((axis.name for axis in maximum.spatial_axes), _without(own, place), strict=True))
            | {maximum.reduce_axes[0].name: own[place]},
        )
    )


def _largest(exponential: ComputeOp) -> tuple[ComputeOp, ReadOp, SSAValue] | None:
    """The maximum that exponentials are relative to, where it is read, and what it is taken from; else None."""
    power = _value(exponential)
    difference = power.operands[0].owner if isinstance(power, math.ExpOp) else None
    read = _read(difference.rhs) if isinstance(difference, arith.SubfOp) else None
    if read is None or not isinstance(difference, arith.SubfOp) or exponential.combiner.data != "none":
        return None
    found = read.tensor.owner
    is_maximum = isinstance(found, ComputeOp) and found.combiner.data == "max" and len(found.outputs) == 1
    return (found, read, difference.lhs) if isinstance(found, ComputeOp) and is_maximum else None


def _yielded(op: ComputeOp) -> SSAValue:
    end = op.body.block.last_op
    assert isinstance(end, YieldOp)
    return end.operands[0]


def _value(op: ComputeOp) -> object:
    """The operation that computes the value of an expression."""
    return _yielded(op).owner


def _read(value: SSAValue) -> ReadOp | None:
    """The read that a value is, of one element wherever it is; else None."""
    found = value.owner
    return found if isinstance(found, ReadOp) and found.where is None and not found.positions else None


def _names(read: ReadOp) -> list[str] | None:
    """The axes that a read moves along, one for each dimension; None for other indices."""
    names = [e.as_axis() for e in read.indices.data]
    found = [name for name in names if name is not None]
    return found if len(found) == len(names) else None


def _without(names: list[str], place: int) -> list[str]:
    return names[:place] + names[place + 1 :]
