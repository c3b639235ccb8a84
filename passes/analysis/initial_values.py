"""Constants that are stored to all elements of a buffer before anything else, which its declaration may say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from xdsl.dialects import arith, scf, vector
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel

NONE: Mapping[SSAValue, int] = MappingProxyType({})


class Initial(NamedTuple):
    """An initializer: the constant in all elements, and the stores that it replaces."""

    value: int | float
    stores: tuple[Operation, ...]


def initial_value(alloc: kernel.AllocOp) -> Initial | None:
    """Return the initializer of a buffer's declaration; None where its elements are stored before they are read.

    That is the constant that its first uses store to every element, or zero where a store depends on a condition: a
    call with a variable that was never set has no defined behavior, also where nothing uses its result.
    """
    found = _first_stored(alloc)
    if found is None and any(_is_conditional(use.operation, alloc) for use in alloc.buffer.uses):
        return Initial(0, ())
    return found


def _is_conditional(op: Operation, alloc: kernel.AllocOp) -> bool:
    if not isinstance(op, kernel.StoreOp | kernel.ScatterOp) or op.buffer is not alloc.buffer:
        return False
    if op.mask is not None:
        return True
    above = op.parent_op()
    while above is not None and above is not alloc.parent_op():
        if isinstance(above, scf.IfOp):
            return True
        above = above.parent_op()
    return False


def _first_stored(alloc: kernel.AllocOp) -> Initial | None:
    """Return the one constant that a buffer's first uses store in every element, zero if there are several elements."""
    block = alloc.parent
    assert block is not None
    size = math.prod(alloc.buffer.type.get_shape())
    users = {_ancestor(use.operation, block) for use in alloc.buffer.uses}
    written: dict[int, int | float] = {}
    stores: list[Operation] = []
    op = alloc.next_op
    while op is not None and len(written) < size:
        if op in users:
            elements = _stored(op, alloc.buffer)
            if elements is None:
                return None
            written.update(elements)
            stores.append(op)
        op = op.next_op
    values = {(value, math.copysign(1, value)) for value in written.values()}
    if len(written) < size or len(values) != 1:
        return None
    ((value, sign),) = values
    return Initial(value, tuple(stores)) if size == 1 or (value == 0 and sign > 0) else None


def _ancestor(op: Operation, block: Block) -> Operation:
    while op.parent is not block:
        above = op.parent_op()
        assert above is not None
        op = above
    return op


def _stored(op: Operation, buffer: SSAValue, counters: Mapping[SSAValue, int] = NONE) -> dict[int, int | float] | None:
    """Return the elements that a store, or a loop of stores to unroll, makes constants; None for something else.

    `counters` are the values of such loops around.
    """
    if isinstance(op, scf.ForOp):
        return _stored_by_loop(op, buffer, counters)
    if not isinstance(op, kernel.StoreOp) or op.buffer is not buffer or op.mask is not None:
        return None
    start, lanes = _number(op.index, counters), kernel.lanes_of(op.value.type)
    values = _constants(op.value, lanes)
    if start is None or values is None:
        return None
    return {start + op.offset.data + lane * op.stride.data: value for lane, value in enumerate(values)}


def _stored_by_loop(op: scf.ForOp, buffer: SSAValue, counters: Mapping[SSAValue, int]) -> dict[int, int | float] | None:
    ends = [_number(bound, counters) for bound in (op.lb, op.ub, op.step)]
    if kernel.UNROLL not in op.attributes or None in ends:
        return None
    body = op.body.block
    statements = [each for each in body.ops if not each.has_trait(Pure) and not isinstance(each, scf.YieldOp)]
    found: dict[int, int | float] = {}
    for value in range(*(end for end in ends if end is not None)):
        for statement in statements:
            elements = _stored(statement, buffer, {**counters, body.args[0]: value})
            if elements is None:
                return None
            found.update(elements)
    return found


def _number(index: SSAValue, counters: Mapping[SSAValue, int]) -> int | None:
    """Return the value of an index that is known in a copy of the loops around."""
    owner = index.owner
    if (number := const_evaluate_operand(index)) is not None:
        return number
    if not isinstance(owner, arith.AddiOp | arith.MuliOp):
        return counters.get(index)
    a, b = (_number(operand, counters) for operand in owner.operands)
    if a is None or b is None:
        return None
    return a + b if isinstance(owner, arith.AddiOp) else a * b


def _constants(value: SSAValue, lanes: int) -> list[int | float] | None:
    owner = value.owner
    if isinstance(owner, vector.BroadcastOp):
        owner = owner.operands[0].owner
    return kernel.constant_lanes(owner.value, lanes) if isinstance(owner, arith.ConstantOp) else None
