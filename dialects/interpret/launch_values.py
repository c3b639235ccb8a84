"""Steps of a launch that compute values, and which lanes of a result nobody knows because memory was not written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from typing import Any

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from .. import kernel
from .kernel_functions import Array, dtype_of, function_of
from .kernel_program import Handler, Step, constant_value
from .launch_program import ThreadProgram
from .threads import Threads, Unknown


def _constant(program: ThreadProgram, op: arith.ConstantOp) -> None:
    found = constant_value(op)
    program.values[program.slot(op.result)] = found[:, None] if np.ndim(found) else found


def _lanes(program: ThreadProgram, op: kernel.LanesOp) -> None:
    kind = op.result.type
    program.values[program.slot(op.result)] = np.arange(kernel.lanes_of(kind), dtype=dtype_of(kind))[:, None]


def _mask(program: ThreadProgram, op: kernel.MaskOp) -> Step:
    lanes, is_vector = kernel.lanes_of(op.result.type), isinstance(op.result.type, VectorType)
    ahead: Any = (np.arange(lanes) * op.step.data)[:, None] if is_vector else 0
    return _computed_by(program, op, lambda start: start + ahead >= 0, lambda start: _in_lanes(start, lanes))


def _broadcast(program: ThreadProgram, op: vector.BroadcastOp) -> Step:
    lanes = kernel.lanes_of(op.results[0].type)
    return _computed_by(program, op, lambda value: _in_lanes(value, lanes), lambda value: _in_lanes(value, lanes))


def _in_lanes(value: Any, lanes: int) -> Array:
    """A scalar in each lane of a vector."""
    return np.asarray(value).reshape(1, -1).repeat(lanes, 0)


def computed(program: ThreadProgram, op: Operation) -> Step:
    """Compute a function of the operands' values, and which lanes of the result are known."""
    function = function_of(op)
    passed_on: Callable[..., Any] = _either
    if isinstance(op, vector.ShuffleOp | vector.ExtractOp | vector.InsertOp):
        passed_on = function
    elif isinstance(op, vector.ReductionOp):
        passed_on = _any_lane
    return _computed_by(program, op, function, passed_on)


def _computed_by(
    program: ThreadProgram, op: Operation, function: Callable[..., Any], passed_on: Callable[..., Any]
) -> Step:
    """A step by a function of values, and one of which lanes of them are unknown."""
    given = op.operands
    operands, into, threads = program.slots(given), program.slot(op.results[0]), program.threads
    chooses = isinstance(op, kernel.SelectOp | arith.SelectOp)
    known = [_known(kernel.lanes_of(operand.type)) for operand in given]

    def step(values: list[Any]) -> None:
        values[into] = function(*[values[operand] for operand in operands])
        if threads.unknown:
            note = partial(_chosen_lanes, values[operands[0]]) if chooses else passed_on
            pass_on(threads, operands, into, note, known)

    return step


@cache
def _known(lanes: int) -> Any:
    """Say of a value of so many lanes that all of them are known."""
    return _in_lanes(np.False_, lanes) if lanes > 1 else np.False_


def pass_on(
    threads: Threads, operands: Sequence[int], into: int, lanes: Callable[..., Any], known: Sequence[Any] = ()
) -> None:
    """Keep in mind which lanes of a result are unknown; `known` stand for operands that are known in all of theirs."""
    unknown = threads.unknown
    found = [unknown.get(operand) for operand in operands]
    read = next((each.read for each in found if each is not None), None)
    if read is None:
        unknown.pop(into, None)
        return
    masks = [known[n] if each is None else each.lanes for n, each in enumerate(found)]
    unknown[into] = Unknown(np.asarray(lanes(*masks)), read)


def _either(*lanes: Any) -> Any:
    return reduce(np.logical_or, lanes)


def _any_lane(lanes: Array, *first: Any) -> Any:
    return _either(lanes.any(axis=0), *first)


def _chosen_lanes(holds: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    return condition | np.where(holds, then, otherwise)


HANDLERS: Mapping[type[Operation], Handler] = {
    arith.ConstantOp: _constant,
    kernel.LanesOp: _lanes,
    kernel.MaskOp: _mask,
    vector.BroadcastOp: _broadcast,
}
