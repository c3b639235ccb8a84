"""Steps of a launch by the copy engine: bulk copies, barriers that count bytes, fences that show what was stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation

from .. import kernel
from ..element import element_bytes
from . import matrices
from .kernel_functions import Array
from .kernel_program import Handler, Step
from .launch_program import ThreadProgram
from .located import located
from .loop import InterpretationError
from .shared_memory import Shared


def _proxy_fence(program: ThreadProgram, op: Operation) -> Step:
    def step(values: list[Any]) -> None:
        for memory in program.threads.shared.values():
            assert isinstance(memory, Shared)
            memory.show(program.threads.on)

    return step


_Elements = Callable[[list[Any], Sequence[Array], Array], Sequence[Array]]
"""Gives the indices of a box's elements along each dimension, for the threads that begin to copy one, by its place."""


def _elements_of_box(op: kernel.BulkCopyOp) -> _Elements:
    box = np.indices(op.box_extents).reshape(len(op.box_extents), -1)
    return lambda values, here, by: [start[:, None] + along for start, along in zip(here, box, strict=True)]


def _elements_of_walk(program: ThreadProgram, op: kernel.BulkCopyOp) -> _Elements:
    walk, taps, threads = op.pixel_walk, program.slots(op.taps), program.threads
    assert walk is not None
    pixels, channels = np.indices(op.box_extents).reshape(2, -1)

    def elements(values: list[Any], here: Sequence[Array], by: Array) -> Sequence[Array]:
        image, *start, channel = here
        moved = [np.broadcast_to(values[each], threads.n)[by] for each in taps]
        number = image
        for at, first, last, step, count in zip(start, walk.first, walk.last, walk.steps, walk.counts, strict=True):
            if np.any((at < first) | (at > last) | ((at - first) % step != 0)):
                raise InterpretationError(f"a walk begins between its positions\n  {located(op)}")
            number = number * count + (at - first) // step
        if any(np.any((tap < 0) | (tap > walk.most_tap())) for tap in moved):
            raise InterpretationError(f"a tap is not within 0 and {walk.most_tap()}\n  {located(op)}")
        rest, found = number[:, None] + pixels, list[Array]()
        along = zip(moved, walk.first, walk.steps, walk.counts, strict=True)
        for tap, first, step, count in reversed(list(along)):
            found.insert(0, first + rest % count * step + tap[:, None])
            rest = rest // count
        return [rest, *found, channel[:, None] + channels]

    return elements


def _bulk_copy(program: ThreadProgram, op: kernel.BulkCopyOp) -> Step:
    source, *place = program.slots((op.source, *op.place))
    target, at, barrier, which = program.slots((op.target, op.target_index, op.barrier, op.barrier_index))
    threads, number = program.threads, program.threads.number(op)
    size = element_bytes(cast("MemRefType[Attribute]", op.source.type).element_type)
    threads.share_boxes |= bool(op.axes)
    elements_from = _elements_of_walk(program, op) if op.pixel_walk is not None else _elements_of_box(op)
    count = prod(op.box_extents)

    def step(values: list[Any]) -> None:
        by = threads.alone(op)
        here = [np.broadcast_to(values[each], threads.n)[by] for each in place]
        inside, flat = np.ones((len(by), count), np.bool_), np.zeros((len(by), count), np.int64)
        for element, extent in zip(elements_from(values, here, by), op.extents, strict=True):
            inside &= (element >= 0) & (element < extent)
            flat = flat * extent + np.clip(element, 0, extent - 1)
        read = np.repeat(by, count).reshape(flat.shape)
        copied = np.zeros(flat.shape, values[source].array.dtype)
        copied[inside] = values[source].read_in_bulk(number, flat[inside], read[inside])
        if op.rounds is not None:
            copied = matrices.rounded(copied)
        first = np.broadcast_to(values[at], threads.n)[by] + op.target_offset.data
        elements = matrices.swizzled(first[:, None] + np.arange(count), op.swizzle.data, size)
        index = np.broadcast_to(values[which], threads.n)[by]
        if op.axes:
            own, by = threads.neighbours(by, op.axes)
            elements, index, copied = elements[own], index[own], copied[own]
            values[target].require_unread(number, elements, by)
        landing = values[target].take_off_in_bulk(number, elements, by)
        program.bulk_copies.begin(values[barrier], index, by, values[target], landing, copied, op.size_bytes)

    return step


def _barrier_init(program: ThreadProgram, op: kernel.BarrierInitOp) -> Step:
    barrier, which = program.slots((op.barrier, op.index))

    def step(values: list[Any]) -> None:
        by = program.threads.alone(op)
        index = np.broadcast_to(values[which], program.threads.n)[by]
        program.bulk_copies.start_barriers(values[barrier], index, by, op.number.data)

    return step


def _barrier_expect(program: ThreadProgram, op: kernel.BarrierExpectOp) -> Step:
    barrier, which = program.slots((op.barrier, op.index))

    def step(values: list[Any]) -> None:
        by = program.threads.alone(op)
        index = np.broadcast_to(values[which], program.threads.n)[by]
        program.bulk_copies.expect(op, values[barrier], index, by, op.number.data)

    return step


def _barrier_await(program: ThreadProgram, op: kernel.BarrierAwaitOp) -> Step:
    barrier, which, parity = program.slots((op.barrier, op.index, op.parity))

    def step(values: list[Any]) -> None:
        if program.threads.on is not None:
            program.threads.require_together(op, program.threads.of_block, program.threads.n_blocks, "a block")
        program.bulk_copies.await_phase(op, values[barrier], values[which], values[parity])

    return step


HANDLERS: Mapping[type[Operation], Handler] = {
    kernel.ProxyFenceOp: _proxy_fence,
    kernel.BulkCopyOp: _bulk_copy,
    kernel.BarrierInitOp: _barrier_init,
    kernel.BarrierExpectOp: _barrier_expect,
    kernel.BarrierAwaitOp: _barrier_await,
}
