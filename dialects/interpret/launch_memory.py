"""Steps of a launch on memory: allocations, loads, stores, and asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntAttr, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from .. import kernel
from ..element import element_bytes
from .kernel_functions import Array
from .kernel_program import Handler, Step, nothing
from .launch_program import ThreadProgram
from .located import located
from .loop import InterpretationError
from .shared_memory import Shared, block_memory
from .thread_memory import Access, Registers


def _access(program: ThreadProgram, op: Operation, value: SSAValue) -> Access:
    """The elements that a load or a store touches; one by gather or scatter has an index for each lane instead."""
    offset, stride, align = (_number(op, name) for name in ("offset", "stride", "align"))
    return Access(program.threads.number(op), program.slot(value), value.type, offset, stride, align)


def _number(op: Operation, name: str) -> int:
    data = op.properties.get(name)
    return 0 if data is None else cast(IntAttr, data).data


def _load(program: ThreadProgram, op: kernel.LoadOp | kernel.GatherOp) -> Step:
    buffer, index, *masks = program.slots(op.operands)
    access, into, threads = _access(program, op, op.value), program.slot(op.value), program.threads
    on = _lanes_on(program, op, index, masks)

    def step(values: list[Any]) -> None:
        values[into] = values[buffer].load(
            access, values[index], on(values) if threads.unknown or masks else threads.on
        )

    return step


def _store(program: ThreadProgram, op: kernel.StoreOp | kernel.ScatterOp) -> Step:
    value, buffer, index, *masks = program.slots(op.operands)
    access, threads = _access(program, op, op.value), program.threads
    on = _lanes_on(program, op, index, masks)

    def step(values: list[Any]) -> None:
        lanes = on(values) if threads.unknown or masks else threads.on
        values[buffer].store(access, values[index], lanes, values[value])

    return step


def _lanes_on(
    program: ThreadProgram, op: Operation, index: int, masks: Sequence[int]
) -> Callable[[list[Any]], Array | None]:
    """The lanes that an access touches, whose index and mask are known."""
    threads = program.threads

    def on(values: list[Any]) -> Array | None:
        if threads.unknown:
            threads.require_known(index, op, "an address")
            for mask in masks:
                threads.require_known(mask, op, "a mask")
        return threads.both(values[masks[0]]) if masks else threads.on

    return on


def _alloc(program: ThreadProgram, op: kernel.AllocOp) -> Step:
    buffer = cast("MemRefType[Attribute]", op.buffer.type)
    into, threads, label = program.slot(op.buffer), program.threads, op.label.data
    size, element, scope = prod(buffer.get_shape()), buffer.element_type, _scope(buffer)
    program.held_bytes += size * element_bytes(element) * (threads.per_block if scope == "local" else 1)

    def local(values: list[Any]) -> None:
        values[into] = Registers(threads, label, size, element)

    def shared(values: list[Any]) -> None:
        values[into] = threads.shared[op] = block_memory(threads, label, size, element)

    def counters(values: list[Any]) -> None:
        values[into] = program.arrivals.counters(op, label, size)

    found = {"local": local, "shared": shared, kernel.COUNTERS: counters}
    if scope not in found:
        raise InterpretationError(f"a launch allocates in scope local or shared: {located(op)}")
    return found[scope]


def _async_copy(program: ThreadProgram, op: kernel.AsyncCopyOp) -> Step:
    source, source_index, target, target_index, *condition = program.slots(op.operands)
    threads, lanes = program.threads, op.lanes.data
    kind = kernel.vector_of(cast("MemRefType[Attribute]", op.source.type).element_type, lanes)
    number = threads.number(op)
    copied_slot = program.new_slot()
    read = Access(number, copied_slot, kind, op.source_offset.data, 1, op.size_bytes)
    write = Access(number, copied_slot, kind, op.target_offset.data, 1, op.size_bytes)
    known = {source_index: "an address", target_index: "an address", copied_slot: "what is copied"}
    known |= dict.fromkeys(condition, "a condition")

    def require_known() -> None:
        for slot, what in known.items():
            threads.require_known(slot, op, what)

    def step(values: list[Any]) -> None:
        if threads.unknown:
            require_known()
        there = threads.both(values[condition[0]]) if condition else threads.on
        copied = values[source].load(read, values[source_index], there)
        if threads.unknown:
            require_known()
        memory: Shared = values[target]
        elements, by, on = memory.take_off(write, values[target_index], threads.on)
        copied = copied.reshape(-1) if on is None else copied[on]
        program.copies.issue(memory, number, elements, by, copied)

    return step


def _commit(program: ThreadProgram, op: Operation) -> Step:
    return lambda values: program.copies.commit()


def _wait(program: ThreadProgram, op: kernel.WaitOp) -> Step:
    return lambda values: program.copies.wait(op.pending.data)


def _scope(buffer: MemRefType[Attribute]) -> str:
    return str(getattr(buffer.memory_space, "data", "global"))


HANDLERS: Mapping[type[Operation], Handler] = {
    kernel.AllocOp: _alloc,
    kernel.LoadOp: _load,
    kernel.StoreOp: _store,
    kernel.GatherOp: _load,
    kernel.ScatterOp: _store,
    kernel.AsyncCopyOp: _async_copy,
    kernel.CommitOp: _commit,
    kernel.WaitOp: _wait,
    kernel.PrefetchOp: nothing,
}
