"""The join of two parts of a sum weighted by a softmax: weighted sum, sum and maximum (Milakov and Gimelshein 2018)."""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.loop import BlockOp
from ...dialects.te import YieldOp


def number(element: AnyFloat, value: float) -> arith.ConstantOp:
    """Return a constant of a type of floats."""
    return arith.ConstantOp(FloatAttr(value, element))


def guarded(largest: SSAValue, element: AnyFloat) -> list[Operation]:
    """Return what exponentials are relative to: 0 where the maximum is -inf, so that they are 0.

    It is one for a row, and a choice between exponentials and 0 would be one for each of them.
    """
    lowest, zero = number(element, -inf), number(element, 0.0)
    empty = arith.CmpfOp(largest, lowest.result, "oeq")
    return [lowest, zero, empty, arith.SelectOp(empty.result, zero.result, largest)]


def approximate(exponential: math.ExpOp) -> None:
    """Let devices compute an exponential as they do it fastest."""
    exponential.fastmath = arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])


def is_approximate(exponential: math.ExpOp) -> bool:
    """True where devices may compute an exponential as they do it fastest."""
    return FastMathFlag.APPROX_FUNC in exponential.fastmath.data


def join_of_parts(element: AnyFloat, nearly: bool) -> Region:
    """Return how (c, s, m) and (c', s', m') are joined: (a c + a' c', a s + a' s', M) of M = max(m, m').

    a = exp(m - M). Exponentials are of the distance of the maxima, 0 of equal ones, and approximated where `nearly`.
    """
    block = Block(arg_types=[element] * 6)
    c, s, m, c2, s2, m2 = block.args
    one, zero = number(element, 1.0), number(element, 0.0)
    largest, first = arith.MaximumfOp(m, m2), arith.CmpfOp(m, m2, "oge")
    same, below, above = arith.CmpfOp(m, m2, "oeq"), arith.SubfOp(m, m2), arith.SubfOp(m2, m)
    nearest = arith.MinimumfOp(below.result, above.result)
    distance = arith.SelectOp(same.result, zero.result, nearest.result)
    shrunk = math.ExpOp(distance.result)
    if nearly:
        approximate(shrunk)
    a = arith.SelectOp(first.result, one.result, shrunk.result)
    a2 = arith.SelectOp(first.result, shrunk.result, one.result)
    block.add_ops([one, zero, largest, first, same, below, above, nearest, distance, shrunk, a, a2])
    sums: list[SSAValue] = []
    for x, x2 in ((c, c2), (s, s2)):
        left, right = arith.MulfOp(x, a.result), arith.MulfOp(x2, a2.result)
        both = arith.AddfOp(left.result, right.result)
        block.add_ops([left, right, both])
        sums.append(both.result)
    block.add_op(YieldOp.create(operands=[*sums, largest.result]))
    return Region(block)


def joins_parts(block: BlockOp) -> bool:
    """True for a reduction that joins parts of a sum weighted by a softmax, each loaded from a buffer of its own."""
    kind = block.outputs[0].type.element_type if len(block.outputs) == 3 else None  # type: ignore[attr-defined]
    if (
        block.combine is None
        or not isinstance(kind, AnyFloat)
        or [load.result for load in block.loads] != [*block.yielded]
    ):
        return False
    return any(block.combine.is_structurally_equivalent(join_of_parts(kind, nearly)) for nearly in (False, True))
