"""Initializers of buffers in registers: constants that are stored first, written at the declaration."""

from __future__ import annotations

import math
from typing import NamedTuple

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from .operations import constant_lanes


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


def _stored(op: Operation, buffer: SSAValue) -> dict[int, int | float] | None:
    """Return the elements that a store makes constants; None where it is something else."""
    if not isinstance(op, kernel.StoreOp) or op.buffer is not buffer or op.mask is not None:
        return None
    start, lanes = _number(op.index), kernel.lanes_of(op.value.type)
    values = _constants(op.value, lanes)
    if start is None or values is None:
        return None
    return {start + op.offset.data + lane * op.stride.data: value for lane, value in enumerate(values)}


def _number(index: SSAValue) -> int | None:
    owner = index.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _constants(value: SSAValue, lanes: int) -> list[int | float] | None:
    owner = value.owner
    if isinstance(owner, vector.BroadcastOp):
        owner = owner.operands[0].owner
    return constant_lanes(owner.value, lanes) if isinstance(owner, arith.ConstantOp) else None
