"""Steps of a launch on matrices: fragments and products of a warp, and products of warp groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation

from .. import kernel
from ..element import element_bytes
from ..intrinsics_cuda import ROW_BYTES
from . import matrices
from .kernel_functions import Array
from .kernel_program import Handler, Step
from .launch_program import ThreadProgram
from .thread_memory import Access, Registers


def _fragment_load(program: ThreadProgram, op: kernel.FragmentLoadOp) -> Step:
    buffer, index = program.slots(op.operands)
    element = cast("MemRefType[Attribute]", op.buffer.type).element_type
    row = kernel.vector_of(element, ROW_BYTES // element_bytes(element))
    slot, into, threads = program.new_slot(), program.slot(op.value), program.threads
    access = Access(threads.number(op), slot, row, op.offset.data, 1, ROW_BYTES)

    def step(values: list[Any]) -> None:
        threads.require_whole_warps(op)
        found = values[buffer].load(access, values[index], threads.on)
        threads.require_known(slot, op, "a matrix")
        rows = np.broadcast_to(found, (len(found), threads.n))
        values[into] = matrices.registers(rows, op.matrices, op.turned is not None)

    return step


def _fragment_pack(program: ThreadProgram, op: kernel.FragmentPackOp) -> Step:
    buffer, index = program.slots(op.operands)
    element, slot = cast("MemRefType[Attribute]", op.buffer.type).element_type, program.new_slot()
    into, threads = program.slot(op.value), program.threads
    accesses = [Access(threads.number(op), slot, element, place) for place in op.offsets]

    def step(values: list[Any]) -> None:
        held = []
        program.group_products.packed(into)
        for access in accesses:
            held.append(np.broadcast_to(values[buffer].load(access, values[index], threads.on), threads.n))
            threads.require_known(slot, op, "an element")
        values[into] = matrices.packed(np.stack(held))

    return step


def _matrix_product(program: ThreadProgram, op: kernel.MatrixProductOp) -> Step:
    a, b, sums, index = program.slots(op.operands)
    threads, intrinsic = program.threads, op.meaning()
    element, slot = cast("MemRefType[Attribute]", op.sums.type).element_type, program.new_slot()
    accesses = [Access(threads.number(op), slot, element, place) for place in op.offsets]

    def step(values: list[Any]) -> None:
        threads.require_whole_warps(op)
        held = []
        for access in accesses:
            held.append(np.broadcast_to(values[sums].load(access, values[index], threads.on), threads.n))
            threads.require_known(slot, op, "a sum")
        found = matrices.product(intrinsic, values[a], values[b], np.stack(held))
        for access, value in zip(accesses, found, strict=True):
            values[sums].store(access, values[index], threads.on, value)

    return step


def _group_product(program: ThreadProgram, op: kernel.WarpGroupProductOp) -> Step:
    threads, intrinsic, number = program.threads, op.meaning(), program.threads.number(op)
    threads.watches_products = True
    sums, index = program.slots((op.sums, op.index))
    held = program.slot(op.held) if op.held is not None else None
    factors: list[tuple[int, int, Array, int, int]] = []
    for name, buffer, at, offset, matrix in op.factors():
        size = intrinsic.fragment(name).bytes
        rows, steps = (intrinsic.extents[x] for x in intrinsic.axes(name))
        places = np.array([[matrix.place(row, k, size) for k in range(steps)] for row in range(rows)]) + offset
        factors.append((program.slot(buffer), program.slot(at), places, matrix.span, size))

    def step(values: list[Any]) -> None:
        first = program.group_products.leaders(op)
        taken = []
        for buffer, at, places, span, size in factors:
            start = np.broadcast_to(values[at], threads.n)[first]
            elements = matrices.swizzled(start[:, None, None] + places, span, size)
            taken.append((values[buffer], elements, values[buffer].read_in_product(number, elements, first)))
        found = [matrix for *_, matrix in taken]
        if held is not None:
            program.group_products.require_fenced(op, held)
            found.insert(0, matrices.of_group(intrinsic, values[held]))
        a, b = found
        rows = [int(values[index]) + place for place in op.sum_places]
        starts = op.start is not None
        values[sums].add_product(number, rows, lambda added: matrices.group_product(intrinsic, a, b, added), starts)
        reads = [(memory, number, elements, first) for memory, elements, _ in taken]
        program.group_products.begin(reads, values[sums], rows)

    return step


def _group_fence(program: ThreadProgram, op: Operation) -> Step:
    def step(values: list[Any]) -> None:
        program.group_products.leaders(op)
        program.group_products.fence()
        for value in values:
            if isinstance(value, Registers):
                value.unfenced.clear()

    return step


def _group_commit(program: ThreadProgram, op: Operation) -> Step:
    def step(values: list[Any]) -> None:
        program.group_products.leaders(op)
        program.group_products.commit()

    return step


def _group_wait(program: ThreadProgram, op: kernel.WarpGroupWaitOp) -> Step:
    def step(values: list[Any]) -> None:
        program.group_products.leaders(op)
        program.group_products.wait(op.pending.data)

    return step


HANDLERS: Mapping[type[Operation], Handler] = {
    kernel.FragmentLoadOp: _fragment_load,
    kernel.FragmentPackOp: _fragment_pack,
    kernel.MatrixProductOp: _matrix_product,
    kernel.WarpGroupProductOp: _group_product,
    kernel.WarpGroupFenceOp: _group_fence,
    kernel.WarpGroupCommitOp: _group_commit,
    kernel.WarpGroupWaitOp: _group_wait,
}
