"""Loads and stores of the kernel dialect as those of memref and vector: plain, masked, strided, scattered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IntAttr, MemRefType, VectorType, i1, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.kernel import element_of, lanes_of, vector_of
from ._builder import Builder
from ._types import signless, stored

Place = Callable[[int], SSAValue]
"""From the number of a lane to the element that it reads or writes."""


def load(b: Builder, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """Return what a load gives."""
    buffer, index, *masks = operands
    mask = masks[0] if masks else None
    first, stride = b.plus(index, _integer(op, "offset")), _integer(op, "stride")
    kind = signless(op.results[0].type)
    held = _held(kind)
    if isinstance(kind, VectorType) and stride == 0 and mask is None:
        return _as_value(b, b.broadcast(_load_one(b, buffer, first, stored(element_of(kind)), None), held), kind)
    if _is_row(held, stride):
        return _as_value(b, _load_row(b, buffer, first, cast("VectorType[Any]", held), stride, mask), kind)

    def lane(number: int) -> SSAValue:
        on = None if mask is None else b.lane(mask, number)
        value = _load_one(b, buffer, b.plus(first, number * stride), element_of(held), on)
        return _as_value(b, value, element_of(kind))

    return b.lane_by_lane(kind, lane)


def store(b: Builder, op: Operation, operands: list[SSAValue]) -> None:
    """Write what a store writes."""
    value, buffer, index, *masks = operands
    mask = masks[0] if masks else None
    first, stride = b.plus(index, _integer(op, "offset")), _integer(op, "stride")
    if _is_row(value.type, stride):
        _store_row(b, _as_held(b, value), buffer, first, stride, mask)
        return
    for number in range(lanes_of(value.type)):
        on = None if mask is None else b.lane(mask, number)
        place = b.plus(first, number * stride)
        _store_one(b, _as_held(b, b.lane(value, number)), buffer, place, on)


def gather(b: Builder, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """Return what a gather gives, lane by lane."""
    buffer, places, mask = operands
    kind = signless(op.results[0].type)

    def lane(number: int) -> SSAValue:
        on, place = b.lane(mask, number), b.lane(places, number)
        return _as_value(b, _load_one(b, buffer, place, element_of(_held(kind)), on), element_of(kind))

    return b.lane_by_lane(kind, lane)


def scatter(b: Builder, op: Operation, operands: list[SSAValue]) -> None:
    """Write what a scatter writes, lane by lane."""
    value, buffer, places, mask = operands
    for number in range(lanes_of(value.type)):
        on, place = b.lane(mask, number), b.lane(places, number)
        _store_one(b, _as_held(b, b.lane(value, number)), buffer, place, on)


def copy(b: Builder, op: kernel.AsyncCopyOp, operands: list[SSAValue]) -> None:
    """Copy at once what a device may copy while its threads go on: whoever waits for it finds it there."""
    source, source_index, target, target_index, *conditions = operands
    held = cast("MemRefType[Attribute]", source.type).element_type
    read = b.plus(source_index, op.source_offset.data)
    written = b.plus(target_index, op.target_offset.data)
    for number in range(op.lanes.data):
        on = conditions[0] if conditions else None
        _store_one(b, _load_one(b, source, b.plus(read, number), held, on), target, b.plus(written, number), None)


def _integer(op: Operation, name: str) -> int:
    return cast(IntAttr, op.properties[name]).data


def _held(kind: Attribute) -> Attribute:
    """Return the type that a value has in memory."""
    element = stored(element_of(kind))
    return vector_of(element, lanes_of(kind)) if isinstance(kind, VectorType) else element


def _is_row(kind: Attribute, stride: int) -> bool:
    """True for a vector whose lanes are neighbours in memory, forwards or backwards."""
    return isinstance(kind, VectorType) and lanes_of(kind) > 1 and abs(stride) == 1


def _load_one(
    b: Builder, buffer: SSAValue, place: SSAValue, element: Attribute, condition: SSAValue | None
) -> SSAValue:
    """Return an element, zero where the condition does not hold: then the first one is read, which always exists."""
    if condition is not None:
        place = b.select(condition, place, b.constant(0))
    value = b.add(memref.LoadOp.get(buffer, [place]))
    return value if condition is None else b.select(condition, value, b.constant(0, element))


def _store_one(b: Builder, value: SSAValue, buffer: SSAValue, place: SSAValue, condition: SSAValue | None) -> None:
    op = memref.StoreOp.get(value, buffer, [place])
    if condition is None:
        b.block.add_op(op)
    else:
        b.block.add_op(scf.IfOp(condition, [], Region(Block([op, scf.YieldOp()]))))


def _load_row(
    b: Builder, buffer: SSAValue, first: SSAValue, kind: VectorType[Any], stride: int, mask: SSAValue | None
) -> SSAValue:
    if stride == -1:
        first = b.plus(first, 1 - lanes_of(kind))
        mask = mask if mask is None else b.reversed_lanes(mask)
    if mask is None:
        value = b.add(vector.LoadOp(buffer, [first], kind))
    else:
        value = b.add(vector.MaskedLoadOp(buffer, [first], mask, b.constant(0, kind)))
    return b.reversed_lanes(value) if stride == -1 else value


def _store_row(
    b: Builder, value: SSAValue, buffer: SSAValue, first: SSAValue, stride: int, mask: SSAValue | None
) -> None:
    if stride == -1:
        first = b.plus(first, 1 - lanes_of(value.type))
        mask = mask if mask is None else b.reversed_lanes(mask)
        value = b.reversed_lanes(value)
    if mask is None:
        b.block.add_op(vector.StoreOp(value, buffer, [first]))
    else:
        b.block.add_op(vector.MaskedStoreOp(buffer, [first], mask, value))


def _as_value(b: Builder, value: SSAValue, kind: Attribute) -> SSAValue:
    """Return what was loaded as a value of its own type: a byte as a truth value."""
    if element_of(kind) != i1:
        return value
    zero = b.constant(0, i8)
    return b.lane_by_lane(kind, lambda number: b.compare("ne", b.lane(value, number), zero))


def _as_held(b: Builder, value: SSAValue) -> SSAValue:
    """Return a value as it is stored: a truth value as a byte."""
    if element_of(value.type) != i1:
        return value
    kind = _held(value.type)
    return b.lane_by_lane(kind, lambda number: b.add(arith.ExtUIOp(b.lane(value, number), i8)))
