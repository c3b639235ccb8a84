"""Divisions of floats as LLVM text."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from .function import Function
from .memory import splat
from .types import float_text, lanes_of


def divide(f: Function, op: Operation) -> None:
    """Handle divf, its divisor behind a fence that LLVM's analyses do not look through; it takes no instruction.

    Code generation of LLVM 22 takes lanes in which both are known zeros for zeros (SimplifyDemandedVectorElts): the
    selection of what a division under a mask gives would lose its mask, and the others would be NaN.
    """
    a, b = op.operands
    kind, divisor = f.type(a.type), f.names[b]
    if FastMathFlag.ALLOW_RECIP in cast(arith.DivfOp, op).fastmath.data and _is_shared(b):
        f.names[op.results[0]] = f.put(f"fmul {kind} {f.names[a]}, {_inverse(f, kind, divisor)}")
        return
    if not _is_constant(b):
        divisor = f.intrinsic("arithmetic.fence", kind, [kind], (kind, divisor))
    f.names[op.results[0]] = f.put(f"fdiv {kind} {f.names[a]}, {divisor}")


def _inverse(f: Function, kind: str, divisor: str) -> str:
    """Return the inverse of a number that is in all lanes of a vector, taken once.

    A core of an Emerald Rapids takes 3.9 ns to divide 16 floats, and 0.2 to multiply them.
    """
    lanes, _, element = kind[1:-1].partition(" x ")
    number = f.put(f"extractelement {kind} {divisor}, i32 0")
    inverse = f.put(f"fdiv {element} {float_text(1.0, element)}, {number}")
    return splat(f, inverse, element, kind, int(lanes))


def _is_shared(value: SSAValue) -> bool:
    """True for a vector of one number that is no constant."""
    owner = value.owner
    if isinstance(owner, kernel.LoadOp) and lanes_of(value.type):
        return len(owner.operands) == 2 and cast(IntAttr, owner.properties["stride"]).data == 0
    return isinstance(owner, vector.BroadcastOp) and not _is_constant(value)


def _is_constant(value: SSAValue) -> bool:
    source = value.owner.operands[0] if isinstance(value.owner, vector.BroadcastOp) else value
    return isinstance(source.owner, arith.ConstantOp)
