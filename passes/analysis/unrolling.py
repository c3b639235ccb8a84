"""Factors that compilers are asked to unroll loops by, where they do not find good ones themselves."""

from __future__ import annotations

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr
from xdsl.ir import Block, Operation
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ...dialects.buffers import scope_of
from ...dialects.element import element_bytes
from ...dialects.target import WIDEST_ACCESS_BYTES

UNROLLED_INSTRUCTIONS = 200
"""NVRTC unrolls innermost loops up to about so many instructions, and whole up to about twice as many.

Left to itself it unrolls a loop around unrolled ones less than around written copies, as it counts accesses to arrays
that are registers later: a product's step of 32 multiply-adds and 5 loads twice, where it did so four times.
"""


def unroll_factor(trips: int, statements: int, limit: int) -> int:
    """Return how many iterations of so many statements come to at most `limit`: all, or a power of two of them."""
    if trips * statements <= limit:
        return trips
    most = min(trips, limit // max(1, statements))
    return 1 << (most.bit_length() - 1) if most else 1


def factor_of(attribute: object) -> int | None:
    """Return the factor of a loop's attribute; None where it is unrolled whole."""
    if isinstance(attribute, IntegerAttr):
        return int(attribute.value.data)
    return attribute.data if isinstance(attribute, IntAttr) else None


def even_factor(trips: int, instructions: int, limit: int) -> int:
    """Return how many iterations of so many instructions come to at most `limit`, of numbers that divide the trips.

    All of them may come to twice as many, as no loop is left then.
    """
    if trips * instructions <= 2 * limit:
        return trips
    most = min(trips, limit // max(1, instructions))
    return next((factor for factor in range(most, 0, -1) if trips % factor == 0), 1)


def unrolled_instructions(body: Block) -> int | None:
    """Count what a loop's iteration is once all loops in it are unrolled; None where there are none, or some that stay.

    As LLVM counts: registers cost nothing, an access to memory two instructions (with its address), arithmetic one for
    each lane, a division of indices four, and the loop three. Index arithmetic in unrolled loops becomes constants.
    """
    if not any(isinstance(op, scf.ForOp) for op in body.walk()):
        return None
    found = _instructions(body, False)
    return None if found is None else found + _OF_LOOP


_OF_LOOP, _OF_ACCESS, _OF_DIVISION = 3, 2, 4


def _instructions(block: Block, unrolled: bool) -> int | None:
    total = 0
    for op in block.ops:
        each = _of_nest(op, unrolled) if op.regions else _of_operation(op, unrolled)
        if each is None:
            return None
        total += each
    return total


def _of_nest(op: Operation, unrolled: bool) -> int | None:
    times = 1
    if isinstance(op, scf.ForOp):
        trips = const_evaluate_operand(op.ub)
        if kernel.UNROLL not in op.attributes or trips is None:
            return None
        times, unrolled = trips, True
    inner = [_instructions(block, unrolled) for region in op.regions for block in region.blocks]
    return None if None in inner else times * sum(each for each in inner if each is not None)


def _of_operation(op: Operation, unrolled: bool) -> int:
    if isinstance(op, kernel.LoadOp | kernel.StoreOp):
        if scope_of(op.buffer) == "local":
            return 0
        moved = op.value.type
        return _OF_ACCESS * -(-kernel.lanes_of(moved) * element_bytes(kernel.element_of(moved)) // WIDEST_ACCESS_BYTES)
    if not op.results:
        return 0 if isinstance(op, scf.YieldOp) else 1
    result = op.results[0].type
    if isinstance(op, arith.ConstantOp | vector.BroadcastOp):
        return 0
    if not isinstance(kernel.element_of(result), IndexType):
        return kernel.lanes_of(result)
    if unrolled:
        return 0
    return _OF_DIVISION if isinstance(op, arith.DivUIOp | arith.RemUIOp) else 1
