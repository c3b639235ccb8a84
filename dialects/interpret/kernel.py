"""The interpreter of the kernel dialect, one operation after the other on flat NumPy arrays: the backends' oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from .. import kernel
from ..buffers import callers_shape
from ..element import dtype_name
from . import tiles
from .kernel_functions import Array, dtype_of, function_of
from .kernel_program import Handler, Program, Step, constant_value, nothing, unwritten
from .launch import launch
from .loop import InterpretationError
from .ptx import without_ptx


def run_kernel(module: ModuleOp | func.FuncOp, inputs: Sequence[Array], order: int = 0) -> list[Array]:
    """Run the kernel function on its inputs; returns its outputs, the arguments marked `lw.output`.

    Floats are computed in their own precision, each operation rounded. Raises InterpretationError for an access outside
    of a buffer; what no operation has written reads as NaN, or as the least integer. Blocks of threads that count each
    other run in an order that is drawn from `order`.
    """
    function = without_ptx(module if isinstance(module, func.FuncOp) else _only_function(module))
    block = function.body.block
    marks = function.arg_attrs.data if function.arg_attrs is not None else ()
    outputs = [isinstance(mark.data.get("lw.output"), UnitAttr) for mark in marks] or [False] * len(block.args)
    given = iter(inputs)
    program = Program(_STEPS, _computed)
    program.order = order
    steps = program.block(block)
    values = program.values
    results: list[Array] = []
    for argument, is_output in zip(block.args, outputs, strict=True):
        buffer_type = cast(MemRefType[Attribute], argument.type)
        if is_output:
            shape = callers_shape(argument)
            array = unwritten(math.prod(shape), buffer_type.element_type)
            results.append(array.reshape(shape))
        else:
            array = np.array(next(given), dtype_name(buffer_type.element_type)).reshape(-1)
        values[program.slot(argument)] = array
    with np.errstate(all="ignore"):
        for step in steps:
            step(values)
    return results


def _only_function(module: ModuleOp) -> func.FuncOp:
    (function,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    return function


def _outside(op: Operation, array: Array, places: Array) -> InterpretationError:
    place = int(places[(places < 0) | (places >= array.size)][0])
    return InterpretationError(f"{op.name} reaches element {place} of a buffer of {array.size} elements: {op}")


def _read(op: Operation, array: Array, places: Array, mask: Array) -> Array:
    """The elements at the places of lanes that are on, 0 for the others."""
    chosen = places[mask]
    if chosen.size and (chosen.min() < 0 or chosen.max() >= array.size):
        raise _outside(op, array, chosen)
    found = np.zeros(len(places), array.dtype)
    found[mask] = array[chosen]
    return found


def _write(op: Operation, array: Array, places: Array, mask: Array, value: Any) -> None:
    """Write the lanes that are on."""
    chosen = places[mask]
    if chosen.size and (chosen.min() < 0 or chosen.max() >= array.size):
        raise _outside(op, array, chosen)
    array[chosen] = np.broadcast_to(value, mask.shape)[mask]


class _Access:
    """The elements that a load or store names: where they lie from its index on, and which mask it has."""

    def __init__(self, program: Program, op: Operation, index: SSAValue, masks: Sequence[SSAValue], kind: Attribute):
        self.lanes = kernel.lanes_of(kind)
        self.is_one = self.lanes == 1 and not masks
        self.index = program.slot(index)
        self.offset = int(cast(Any, op.properties["offset"]).data)
        self.places = self.offset + np.arange(self.lanes) * int(cast(Any, op.properties["stride"]).data)
        self._mask = program.slot(masks[0]) if masks else None
        self._all = np.ones(self.lanes, np.bool_)

    def mask(self, values: list[Any]) -> Array:
        """The lanes that are on."""
        return (
            self._all if self._mask is None else np.broadcast_to(np.asarray(values[self._mask], np.bool_), self.lanes)
        )


def _load(program: Program, op: Operation) -> Step:
    buffer, index, *masks = op.operands
    (result,) = op.results
    access = _Access(program, op, index, masks, result.type)
    held, into, is_vector = program.slot(buffer), program.slot(result), isinstance(result.type, VectorType)
    at, offset = access.index, access.offset

    def one(values: list[Any]) -> None:
        array, place = values[held], int(values[at]) + offset
        if not 0 <= place < array.size:
            raise _outside(op, array, np.asarray([place]))
        values[into] = array[place : place + 1].copy() if is_vector else array[place]

    def several(values: list[Any]) -> None:
        found = _read(op, values[held], access.places + int(values[at]), access.mask(values))
        values[into] = found if is_vector else found[0]

    return one if access.is_one else several


def _store(program: Program, op: Operation) -> Step:
    value, buffer, index, *masks = op.operands
    access = _Access(program, op, index, masks, value.type)
    source, held, at, offset = program.slot(value), program.slot(buffer), access.index, access.offset

    def one(values: list[Any]) -> None:
        array, place = values[held], int(values[at]) + offset
        if not 0 <= place < array.size:
            raise _outside(op, array, np.asarray([place]))
        array[place : place + 1] = values[source]

    def several(values: list[Any]) -> None:
        _write(op, values[held], access.places + int(values[at]), access.mask(values), values[source])

    return one if access.is_one else several


def _tile_load(program: Program, op: kernel.TileLoadOp) -> Step:
    held, at, into = program.slot(op.buffer), program.slot(op.index), program.slot(op.value)
    places = op.offset.data + tiles.places(op.rows.data, op.step.data, kernel.lanes_of(op.value.type))
    on = np.ones(places.shape, np.bool_)

    def step(values: list[Any]) -> None:
        values[into] = _read(op, values[held], places + int(values[at]), on)

    return step


def _tile_product(program: Program, op: kernel.TileProductOp) -> Step:
    intrinsic = op.meaning()
    a, b, held, at = (program.slot(operand) for operand in op.operands)
    places = op.offset.data + tiles.places(op.rows.data, op.step.data, intrinsic.elements("c"))
    on = np.ones(places.shape, np.bool_)

    def step(values: list[Any]) -> None:
        here = places + int(values[at])
        sums = _read(op, values[held], here, on)
        _write(op, values[held], here, on, tiles.product(intrinsic, values[a], values[b], sums))

    return step


def _tile_start(program: Program, op: kernel.TileStartOp) -> Step:
    held, at = program.slot(op.sums), program.slot(op.index)
    places = op.offset.data + tiles.places(op.rows.data, op.step.data, op.meaning().elements("c"))
    on = np.ones(places.shape, np.bool_)

    def step(values: list[Any]) -> None:
        _write(op, values[held], places + int(values[at]), on, np.zeros(places.shape, values[held].dtype))

    return step


def _gather(program: Program, op: Operation) -> Step:
    held, at, on = program.slots(op.operands)
    into = program.slot(op.results[0])

    def step(values: list[Any]) -> None:
        places = values[at]
        mask = np.broadcast_to(np.asarray(values[on], np.bool_), places.shape)
        values[into] = _read(op, values[held], places, mask)

    return step


def _scatter(program: Program, op: Operation) -> Step:
    source, held, at, on = program.slots(op.operands)

    def step(values: list[Any]) -> None:
        places = values[at]
        mask = np.broadcast_to(np.asarray(values[on], np.bool_), places.shape)
        _write(op, values[held], places, mask, values[source])

    return step


def _alloc(program: Program, op: Operation) -> Step:
    into = program.slot(op.results[0])
    buffer_type = cast(MemRefType[Attribute], op.results[0].type)
    fresh = unwritten(buffer_type.get_shape()[0], buffer_type.element_type)

    def step(values: list[Any]) -> None:
        values[into] = fresh.copy()

    return step


def _constant(program: Program, op: arith.ConstantOp) -> None:
    program.values[program.slot(op.result)] = constant_value(op)


def _lanes(program: Program, op: Operation) -> None:
    (result,) = op.results
    program.values[program.slot(result)] = np.arange(kernel.lanes_of(result.type), dtype=dtype_of(result.type))


def _mask(program: Program, op: Operation) -> Step:
    (result,) = op.results
    (given,), into = program.slots(op.operands), program.slot(result)
    ahead = np.arange(kernel.lanes_of(result.type)) * int(cast(Any, op.properties["step"]).data)
    is_vector = isinstance(result.type, VectorType)

    def step(values: list[Any]) -> None:
        on = values[given] + ahead >= 0
        values[into] = on if is_vector else on[0]

    return step


def _for(program: Program, op: Operation) -> Step:
    low, high, stride = program.slots(op.operands)
    (body,) = op.regions[0].blocks
    counter, steps = program.slot(body.args[0]), program.block(body)

    def step(values: list[Any]) -> None:
        for value in range(int(values[low]), int(values[high]), int(values[stride])):
            values[counter] = np.int64(value)
            for each in steps:
                each(values)

    return step


def _parallel(program: Program, op: Operation) -> Step:
    """Run the iterations in reverse, so that one that relies on an earlier one gives a wrong result."""
    (body,) = op.regions[0].blocks
    counter, steps = program.slot(body.args[0]), program.block(body)
    extent = int(cast(Any, op.properties["extent"]).data)

    def step(values: list[Any]) -> None:
        for value in reversed(range(extent)):
            values[counter] = np.int64(value)
            for each in steps:
                each(values)

    return step


def _if(program: Program, op: Operation) -> Step:
    condition = program.slot(op.operands[0])
    then, otherwise = ([step for block in region.blocks for step in program.block(block)] for region in op.regions)

    def step(values: list[Any]) -> None:
        for each in then if values[condition] else otherwise:
            each(values)

    return step


def _computed(program: Program, op: Operation) -> Step:
    """Compute a function of the operands' values."""
    function = function_of(op)
    operands, into = program.slots(op.operands), program.slot(op.results[0])
    if len(operands) == 2:
        first, second = operands

        def binary(values: list[Any]) -> None:
            values[into] = function(values[first], values[second])

        return binary

    def step(values: list[Any]) -> None:
        values[into] = function(*[values[operand] for operand in operands])

    return step


_STEPS: Mapping[type[Operation], Handler] = {
    kernel.LaunchOp: launch,
    arith.ConstantOp: _constant,
    kernel.AllocOp: _alloc,
    kernel.LoadOp: _load,
    kernel.StoreOp: _store,
    kernel.GatherOp: _gather,
    kernel.ScatterOp: _scatter,
    kernel.TileLoadOp: _tile_load,
    kernel.TileProductOp: _tile_product,
    kernel.TileStartOp: _tile_start,
    kernel.LanesOp: _lanes,
    kernel.MaskOp: _mask,
    kernel.PrefetchOp: nothing,
    kernel.ParallelOp: _parallel,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: nothing,
    func.ReturnOp: nothing,
}
