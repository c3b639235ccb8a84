"""Remainders of the numbers of later iterations in CUDA C, of which the compiler is to know nothing."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ..c_family.arithmetic import as_unsigned, unsigned
from ..c_family.expression import ATOM, MULTIPLY, Expr, joined_reads
from ..c_family.printer import KernelPrinter

HELPER = """\
// A remainder that the compiler does not look into: NVRTC 13 takes the 5 out of (k + 5) % 96 * 16, and what is left,
// k * 16 - (k + 5) / 96 * 1536, is computed in 16 bits, though it may be negative.
__device__ __forceinline__ int remainder_of(unsigned a, unsigned b) {
    unsigned rest = a % b;
    asm("" : "+r"(rest));
    return (int)rest;
}"""
_plain = unsigned("%", MULTIPLY)


def remainder(p: KernelPrinter, op: Operation) -> None:
    """Print a remainder; that of a sum with a number, as of an iteration that is copied ahead for, out of sight."""
    assert isinstance(op, arith.RemUIOp)
    if not isinstance(op.result.type, IndexType) or p.type_of("index") != "int" or not _adds_a_number(op.lhs):
        _plain(p, op)
        return
    (a,), (b,) = p.lanes(op.lhs), p.lanes(op.rhs)
    if b.number is None or b.number & (b.number - 1) == 0:
        _plain(p, op)
        return
    p.helpers.add("remainder_of -")
    texts = ", ".join(as_unsigned(p, "index", each).text for each in (a, b))
    p.define(op.result, [Expr(f"remainder_of({texts})", ATOM, joined_reads(a, b))])


def _adds_a_number(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.AddiOp) and any(isinstance(x.owner, arith.ConstantOp) for x in owner.operands)
