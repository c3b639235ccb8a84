"""Dot products of four 8-bit integers by one instruction: `__dp4a`, from sm_61 on."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, vector
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ..c_family.expression import ATOM, Expr, call
from ..c_family.memory import whole_vector
from ..c_family.operations import OPERATIONS
from ..c_family.printer import Handler, KernelPrinter

OLDEST = 61
"""The compute capability that has it first (CUDA Math API, SIMD intrinsics)."""
LANES = 4


def reduce(p: KernelPrinter, op: Operation) -> None:
    """Print the sum of a vector's lanes; of products of bytes that lie in two vectors as one instruction."""
    factors = _factors(p, op)
    if factors is None:
        OPERATIONS[vector.ReductionOp](p, op)
        return
    start = p.scalar(op.operands[1]) if len(op.operands) > 1 else Expr("0")
    p.define(op.results[0], [call("__dp4a", *factors, start)])


def add(p: KernelPrinter, op: Operation) -> None:
    """Print a sum; what is added to such a reduction is where the instruction starts from."""
    a, b = op.operands
    for product, other in ((a, b), (b, a)):
        lanes = p.lanes(product)
        start = ", 0)"
        if len(lanes) == 1 and lanes[0].text.startswith("__dp4a(") and lanes[0].text.endswith(start):
            text = f"{lanes[0].text.removesuffix(start)}, {p.scalar(other).text})"
            p.define(op.results[0], [Expr(text, ATOM, (*lanes[0].reads, *p.scalar(other).reads))])
            return
    OPERATIONS[arith.AddiOp](p, op)


def _factors(p: KernelPrinter, op: Operation) -> tuple[Expr, Expr] | None:
    """Return the two vectors of bytes whose products are summed, by their names."""
    kind = str(cast(vector.CombiningKindAttr, op.properties["kind"]).data)
    product = op.operands[0].owner
    if kind != "add" or not isinstance(product, arith.MuliOp):
        return None
    names = [_bytes(p, factor) for factor in product.operands]
    return None if None in names else cast("tuple[Expr, Expr]", tuple(names))


def _bytes(p: KernelPrinter, value: SSAValue) -> Expr | None:
    """Return the vector variable of four bytes that a vector of integers was widened from."""
    widened = value.owner
    if not isinstance(widened, kernel.ConvertOp) or widened.conversion.data != "extsi":
        return None
    name = whole_vector(p, "i8", p.lanes(widened.source)) if kernel.lanes_of(value.type) == LANES else None
    return Expr(name) if name is not None else None


DOT_PRODUCTS: dict[type[Operation], Handler] = {vector.ReductionOp: reduce, arith.AddiOp: add}
