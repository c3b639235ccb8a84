"""The interpreter of launches: the threads of some blocks side by side in NumPy arrays, in lockstep.

A value is an array over threads, or one number where all threads have the same; a branch is a mask; a barrier ends a
period, in which no thread may touch what another one writes (`races`). As many blocks as fit run at once, then the
next ones. What is no plain function of its operands has a handler, in the module of its kind (`launch_memory`,
`launch_matrices`, `launch_bulk`, `launch_values`, `launch_control`): it takes the program of the threads and the
operation, and gives a step. A step finds the threads that run in `program.threads.on` and memory in the slots of
buffers; asynchronous writes begin by `Shared.take_off` and end by `Shared.land`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from .. import kernel
from . import launch_bulk, launch_control, launch_matrices, launch_memory, launch_values
from .kernel_functions import Array
from .kernel_program import Handler, Program, Step
from .launch_program import ThreadProgram
from .shared_memory import Shared, written_state
from .thread_memory import Argument

MOST_THREADS = 16384
"""Threads that run side by side, unless a single block has more."""
MOST_BYTES = 1 << 27
"""Of registers and shared memory of the blocks that run side by side, unless a single block has more."""

HANDLERS: Mapping[type[Operation], Handler] = {
    **launch_memory.HANDLERS,
    **launch_matrices.HANDLERS,
    **launch_bulk.HANDLERS,
    **launch_values.HANDLERS,
    **launch_control.HANDLERS,
}
"""The operations of a launch that are no plain functions of their operands."""


def launch(around: Program, op: kernel.LaunchOp) -> Step:
    """Make a launch ready."""
    program = ThreadProgram(around, op, HANDLERS, launch_values.computed)
    steps = program.block(op.body.block)
    blocks, threads = prod(op.grid_size), program.threads
    at_once = max(1, min(MOST_THREADS // threads.per_block, MOST_BYTES // program.held_bytes))
    if any(isinstance(loop, scf.ForOp) and _multiplies_apart(loop) for loop in op.walk()):
        at_once = 1
    in_cluster = prod(op.cluster_size)
    at_once = max(in_cluster, at_once // in_cluster * in_cluster)
    counts = any(isinstance(inner, kernel.ArriveOp) for inner in op.walk())

    def step(values: list[Any]) -> None:
        for outside, inside in program.vectors:
            values[inside] = values[outside][:, None]
        order = _order(around.order, blocks) if counts else np.argsort(threads.clusters, kind="stable")
        threads.start(order[:at_once])
        across = _across(program, values)
        threads.across = list(across)
        for first in range(0, blocks, at_once):
            threads.start(order[first : first + at_once])
            program.copies.start()
            program.group_products.start()
            program.bulk_copies.start()
            for each in steps:
                each(values)
            program.group_products.require_waited_for(op)
            threads.finish_blocks()
        program.arrivals.end(op)
        for memory in across:
            memory.shadow.end_launch()

    return step


def _order(seed: int, blocks: int) -> Array:
    """Return an order of blocks that count each other: any is one that a device may run them in."""
    return np.random.default_rng(seed).permutation(blocks)


def _multiplies_apart(loop: scf.ForOp) -> bool:
    """True for a loop around products of warp groups, to which all of them come, with an end for each block."""
    ends = not isinstance(loop.ub.owner, arith.ConstantOp)
    return ends and any(isinstance(op, kernel.WarpGroupProductOp) for op in loop.walk())


def _across(program: ThreadProgram, values: list[Any]) -> Sequence[Shared]:
    """Give the threads the buffers of the function; returns those that the launch writes to."""
    written = {value for value, _, _ in program.buffers if _is_written_in(value, program.op)}
    found: list[Shared] = []
    for value, outside, inside in program.buffers:
        array, label = values[outside], value.name_hint or "?"
        state = program.around.states.get(value)
        if state is None:
            state = program.around.states[value] = written_state(array.size, _is_written_before(value))
        if value in written or not state.all():
            found.append(Shared(program.threads, label, array, state, shows=isinstance(value, BlockArgument)))
            values[inside] = found[-1]
        else:
            values[inside] = Argument(program.threads, label, array)
    return found


def _is_written_before(buffer: SSAValue) -> bool:
    """True for inputs, and where something outside of launches writes a buffer."""
    if isinstance(buffer, BlockArgument):
        func = buffer.block.parent_op()
        marks = func.arg_attrs.data if isinstance(func, FuncOp) and func.arg_attrs is not None else ()
        if not marks or not isinstance(marks[buffer.index].data.get("lw.output"), UnitAttr):
            return True
    return _is_written_in(buffer, None)


def _is_written_in(buffer: SSAValue, launch: Operation | None) -> bool:
    """True where an operation in a launch writes a buffer; in none of them for None."""
    operations = (use.operation for use in buffer.uses)
    return any(not _only_reads(op, buffer) and _launch_of(op) is launch for op in operations)


def _only_reads(op: Operation, buffer: SSAValue) -> bool:
    if isinstance(op, kernel.AsyncCopyOp | kernel.BulkCopyOp):
        return op.target is not buffer
    return isinstance(op, kernel.LoadOp | kernel.GatherOp | kernel.PrefetchOp)


def _launch_of(op: Operation) -> Operation | None:
    around: Operation | None = op
    while around is not None and not isinstance(around, kernel.LaunchOp):
        around = around.parent_op()
    return around
