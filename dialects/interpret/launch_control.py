"""Steps of a launch that lead its threads: their places, barriers, shuffles, loops and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from .. import kernel
from .kernel_functions import Array
from .kernel_program import Handler, Step, nothing
from .launch_program import ThreadProgram
from .launch_values import pass_on


def _thread(program: ThreadProgram, op: kernel.ThreadOp) -> Step:
    into, axis = program.slot(op.result), op.axis.data

    def step(values: list[Any]) -> None:
        values[into] = program.threads.place(axis)

    return step


def _barrier(program: ThreadProgram, op: Operation) -> Step:
    return lambda values: program.threads.wait_for_each_other(op)


def _arrive(program: ThreadProgram, op: kernel.ArriveOp) -> Step:
    counters, index, into = program.slot(op.counters), program.slot(op.index), program.slot(op.last)
    threads, parts = program.threads, op.parts.data

    def step(values: list[Any]) -> None:
        threads.require_known(index, op, "a counter")
        threads.unknown.pop(into, None)
        values[into] = program.arrivals.arrive(op, values[counters], values[index], parts)

    return step


def _cluster_barrier(program: ThreadProgram, op: Operation) -> Step:
    return lambda values: program.threads.wait_in_clusters(op)


def _cluster_meet(program: ThreadProgram, op: Operation) -> Step:
    return lambda values: program.threads.meet_in_clusters(op)


def _shuffle(program: ThreadProgram, op: kernel.ShuffleOp) -> Step:
    source, into, distance = program.slot(op.value), program.slot(op.result), op.distance.data
    threads = program.threads

    def step(values: list[Any]) -> None:
        values[into] = threads.exchanged(op, values[source], distance)
        if threads.unknown:
            pass_on(threads, (source,), into, lambda lanes: threads.exchanged(op, lanes, distance))

    return step


def _transpose_quad(program: ThreadProgram, op: kernel.TransposeQuadOp) -> Step:
    source, into, threads = program.slot(op.value), program.slot(op.result), program.threads

    def step(values: list[Any]) -> None:
        values[into] = threads.transposed(op, values[source])
        if threads.unknown:
            pass_on(threads, (source,), into, lambda lanes: threads.transposed(op, lanes))

    return step


def _for(program: ThreadProgram, op: scf.ForOp) -> Step:
    low, high, stride = program.slots(op.operands)
    body, threads = op.body.block, program.threads
    counter, steps = program.slot(body.args[0]), program.block(body)

    def step(values: list[Any]) -> None:
        for slot in (low, high, stride) if threads.unknown else ():
            threads.require_known(slot, op, "the end of a loop")
        first, last, by = values[low], values[high], values[stride]
        if np.ndim(first) or np.ndim(last) or np.ndim(by):
            apart(values, first, last, by)
            return
        for value in range(int(first), int(last), int(by)):
            values[counter] = np.int64(value)
            for each in steps:
                each(values)

    def apart(values: list[Any], value: Any, last: Any, by: Any) -> None:
        while True:
            on = threads.both(np.broadcast_to(value < last, threads.n))
            if on is None or not on.any():
                return
            values[counter] = value
            if np.count_nonzero(on) == threads.count_on():
                for each in steps:
                    each(values)
            else:
                with threads.only(on, op):
                    for each in steps:
                        each(values)
            value = value + by

    return step


def _if(program: ThreadProgram, op: scf.IfOp) -> Step:
    condition, threads = program.slot(op.cond), program.threads
    then, otherwise = ([step for block in region.blocks for step in program.block(block)] for region in op.regions)

    def step(values: list[Any]) -> None:
        if threads.unknown:
            threads.require_known(condition, op, "a branch")
        holds = values[condition]
        if np.ndim(holds) == 0:
            for each in then if holds else otherwise:
                each(values)
            return
        run(values, then, holds)
        if otherwise:
            run(values, otherwise, ~holds)

    def run(values: list[Any], steps: Sequence[Step], holds: Array) -> None:
        on = threads.both(holds)
        assert on is not None
        count = np.count_nonzero(on)
        if count == threads.count_on():
            for each in steps:
                each(values)
        elif count:
            with threads.only(on, op):
                for each in steps:
                    each(values)

    return step


HANDLERS: Mapping[type[Operation], Handler] = {
    kernel.ArriveOp: _arrive,
    kernel.BarrierOp: _barrier,
    kernel.ClusterBarrierOp: _cluster_barrier,
    kernel.ClusterMeetOp: _cluster_meet,
    kernel.ShuffleOp: _shuffle,
    kernel.ThreadOp: _thread,
    kernel.TransposeQuadOp: _transpose_quad,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: nothing,
}
