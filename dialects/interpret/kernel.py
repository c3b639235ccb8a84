"""The interpreter of the kernel dialect, one operation after the other on flat NumPy arrays: the backends' oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith, func, scf, vector
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .. import kernel
from ..element import dtype_name, is_float
from .loop import InterpretationError
from .vector import CONVERSIONS, OPERATIONS, to_integer

Array = npt.NDArray[Any]

_INTEGER_PREDICATES = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)
_FIRST_UNSIGNED = 6
_ORDERED: dict[int, Callable[..., Any]] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: np.not_equal,
}
_UNORDERED = 7
"""Float predicates: 1 to 6 compare ordered values, 7 is whether they are; 8 to 14 are these, or unordered."""
_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": np.maximum,
    "minui": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_MORE_OPERATIONS: dict[type[Operation], Callable[..., Any]] = {
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
    math_dialect.ExpM1Op: np.expm1,
    math_dialect.Log1pOp: np.log1p,
    math_dialect.Log10Op: np.log10,
    math_dialect.CbrtOp: np.cbrt,
    math_dialect.SinhOp: np.sinh,
    math_dialect.CoshOp: np.cosh,
    math_dialect.TanOp: np.tan,
    math_dialect.AtanOp: np.arctan,
    vector.FMAOp: lambda a, b, c: a * b + c,
}


def run_kernel(module: ModuleOp | func.FuncOp, inputs: Sequence[Array]) -> list[Array]:
    """Run the kernel function on its inputs; returns its outputs, the arguments marked `lw.output`.

    Floats are computed in their own precision, each operation rounded. Raises InterpretationError for an access outside
    of a buffer; what no operation has written reads as NaN, or as the least integer.
    """
    function = module if isinstance(module, func.FuncOp) else _only_function(module)
    block = function.body.block
    marks = function.arg_attrs.data if function.arg_attrs is not None else ()
    outputs = [isinstance(mark.data.get("lw.output"), UnitAttr) for mark in marks] or [False] * len(block.args)
    given = iter(inputs)
    program = _Program()
    steps = program.block(block)
    values = program.values
    results: list[Array] = []
    for argument, is_output in zip(block.args, outputs, strict=True):
        buffer_type = cast(MemRefType[Attribute], argument.type)
        shape = buffer_type.get_shape()
        if is_output:
            array = _unwritten(math.prod(shape), buffer_type.element_type)
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


def _unwritten(size: int, element: Attribute) -> Array:
    dtype = np.dtype(dtype_name(element))
    if is_float(element):
        return np.full(size, np.nan, dtype)
    return np.full(size, False if dtype.kind == "b" else np.iinfo(dtype).min, dtype)


def _dtype(value_type: Attribute) -> np.dtype[Any]:
    element = kernel.element_of(value_type)
    return np.dtype(np.int64 if isinstance(element, IndexType) else dtype_name(element))


Step = Callable[[list[Any]], None]
"""An operation that is ready to run on the values of all slots: types and attributes are read once, before."""


class _Program:
    """The steps of a function, the slot that each SSA value lives in, and the values of the slots, constants first."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._slots: dict[SSAValue, int] = {}

    def slot(self, value: SSAValue) -> int:
        """The place of an SSA value among the values."""
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = len(self.values)
            self.values.append(None)
        return found

    def slots(self, values: Sequence[SSAValue]) -> list[int]:
        return [self.slot(value) for value in values]

    def block(self, block: Block) -> list[Step]:
        steps = (self.step(op) for op in block.ops)
        return [step for step in steps if step is not None]

    def step(self, op: Operation) -> Step | None:
        """Make an operation ready; None where it does nothing."""
        return _STEPS.get(type(op), _computed)(self, op)


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

    def __init__(self, program: _Program, op: Operation, index: SSAValue, masks: Sequence[SSAValue], kind: Attribute):
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


def _load(program: _Program, op: Operation) -> Step:
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


def _store(program: _Program, op: Operation) -> Step:
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


def _gather(program: _Program, op: Operation) -> Step:
    held, at, on = program.slots(op.operands)
    into = program.slot(op.results[0])

    def step(values: list[Any]) -> None:
        places = values[at]
        mask = np.broadcast_to(np.asarray(values[on], np.bool_), places.shape)
        values[into] = _read(op, values[held], places, mask)

    return step


def _scatter(program: _Program, op: Operation) -> Step:
    source, held, at, on = program.slots(op.operands)

    def step(values: list[Any]) -> None:
        places = values[at]
        mask = np.broadcast_to(np.asarray(values[on], np.bool_), places.shape)
        _write(op, values[held], places, mask, values[source])

    return step


def _alloc(program: _Program, op: Operation) -> Step:
    into = program.slot(op.results[0])
    buffer_type = cast(MemRefType[Attribute], op.results[0].type)
    unwritten = _unwritten(buffer_type.get_shape()[0], buffer_type.element_type)

    def step(values: list[Any]) -> None:
        values[into] = unwritten.copy()

    return step


def _constant(program: _Program, op: arith.ConstantOp) -> None:
    dtype = _dtype(op.result.type)
    if isinstance(op.value, IntegerAttr | FloatAttr):
        found = dtype.type(op.value.value.data)
    else:
        assert isinstance(op.value, DenseIntOrFPElementsAttr)
        found = np.resize(np.array(op.value.get_values()).astype(dtype), kernel.lanes_of(op.result.type))
    program.values[program.slot(op.result)] = found


def _lanes(program: _Program, op: Operation) -> None:
    (result,) = op.results
    program.values[program.slot(result)] = np.arange(kernel.lanes_of(result.type), dtype=_dtype(result.type))


def _mask(program: _Program, op: Operation) -> Step:
    (result,) = op.results
    (given,), into = program.slots(op.operands), program.slot(result)
    ahead = np.arange(kernel.lanes_of(result.type)) * int(cast(Any, op.properties["step"]).data)
    is_vector = isinstance(result.type, VectorType)

    def step(values: list[Any]) -> None:
        on = values[given] + ahead >= 0
        values[into] = on if is_vector else on[0]

    return step


def _for(program: _Program, op: Operation) -> Step:
    low, high, stride = program.slots(op.operands)
    (body,) = op.regions[0].blocks
    counter, steps = program.slot(body.args[0]), program.block(body)

    def step(values: list[Any]) -> None:
        for value in range(int(values[low]), int(values[high]), int(values[stride])):
            values[counter] = np.int64(value)
            for each in steps:
                each(values)

    return step


def _parallel(program: _Program, op: Operation) -> Step:
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


def _if(program: _Program, op: Operation) -> Step:
    condition = program.slot(op.operands[0])
    then, otherwise = ([step for block in region.blocks for step in program.block(block)] for region in op.regions)

    def step(values: list[Any]) -> None:
        for each in then if values[condition] else otherwise:
            each(values)

    return step


def _nothing(program: _Program, op: Operation) -> None:
    """Nothing: a hint, or the end of a region."""


def _computed(program: _Program, op: Operation) -> Step:
    """Compute a function of the operands' values."""
    function = _function(op)
    operands, into = program.slots(op.operands), program.slot(op.results[0])
    if len(operands) == 2:
        first, second = operands

        def binary(values: list[Any]) -> None:
            values[into] = function(values[first], values[second])

        return binary

    def step(values: list[Any]) -> None:
        values[into] = function(*[values[operand] for operand in operands])

    return step


_STEPS: dict[type[Operation], Callable[[_Program, Any], Step | None]] = {
    arith.ConstantOp: _constant,
    kernel.AllocOp: _alloc,
    kernel.LoadOp: _load,
    kernel.StoreOp: _store,
    kernel.GatherOp: _gather,
    kernel.ScatterOp: _scatter,
    kernel.LanesOp: _lanes,
    kernel.MaskOp: _mask,
    kernel.PrefetchOp: _nothing,
    kernel.ParallelOp: _parallel,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: _nothing,
    func.ReturnOp: _nothing,
}


def _function(op: Operation) -> Callable[..., Any]:
    """The meaning of an operation without side effects, of its operands' values."""
    found = _FUNCTIONS.get(type(op))
    if found is not None:
        return found(op)
    result = op.results[0].type
    dtype = _dtype(result)
    if isinstance(op, (arith.FPToUIOp, *CONVERSIONS)):
        return partial(_converted, type(op), dtype=dtype)
    operation = _MORE_OPERATIONS.get(type(op)) or OPERATIONS.get(type(op))
    if operation is None:
        raise InterpretationError(f"operation {op.name} has no meaning in a kernel")
    scalar, apply = dtype.type, operation

    def rounded(*operands: Any) -> Any:
        value = apply(*operands)
        return value if type(value) is scalar else np.asarray(value).astype(dtype, copy=False)[()]

    return rounded


def _compare(op: kernel.CompareOp) -> Callable[..., Any]:
    if is_float(kernel.element_of(op.lhs.type)):
        return partial(_compare_floats, kernel.FLOAT_PREDICATES.index(op.predicate.data))
    return partial(_compare_integers, kernel.INTEGER_PREDICATES.index(op.predicate.data))


def _convert(op: kernel.ConvertOp) -> Callable[..., Any]:
    return partial(_converted, kernel.CONVERSIONS[op.conversion.data], dtype=_dtype(op.result.type))


def _shuffle(op: vector.ShuffleOp) -> Callable[..., Any]:
    chosen = list(_integers(op.mask))
    return lambda *operands: np.concatenate(operands)[chosen]


def _broadcast(op: vector.BroadcastOp) -> Callable[..., Any]:
    return partial(np.full, kernel.lanes_of(op.results[0].type), dtype=_dtype(op.results[0].type))


def _extract(op: vector.ExtractOp) -> Callable[..., Any]:
    return lambda lanes, *place: lanes[_position(op.static_position, place)]


def _insert(op: vector.InsertOp) -> Callable[..., Any]:
    def inserted(value: Any, lanes: Array, *place: Any) -> Array:
        changed = lanes.copy()
        changed[_position(op.static_position, place)] = value
        return changed

    return inserted


def _bitcast(op: Operation) -> Callable[..., Any]:
    dtype = _dtype(op.results[0].type)
    return lambda value: np.asarray(value).view(dtype)


_FUNCTIONS: dict[type[Operation], Callable[[Any], Callable[..., Any]]] = {
    kernel.CompareOp: _compare,
    kernel.ConvertOp: _convert,
    kernel.SelectOp: lambda op: np.where,
    arith.CmpiOp: lambda op: partial(_compare_integers, int(op.predicate.value.data)),
    arith.CmpfOp: lambda op: partial(_compare_floats, int(op.predicate.value.data)),
    arith.BitcastOp: _bitcast,
    vector.BitcastOp: _bitcast,
    vector.BroadcastOp: _broadcast,
    vector.ReductionOp: lambda op: partial(_reduce, str(op.kind.data), _dtype(op.results[0].type)),
    vector.ShuffleOp: _shuffle,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
}


def _converted(kind: type[Operation], value: Any, *, dtype: np.dtype[Any]) -> Any:
    if kind in (arith.FPToSIOp, arith.FPToUIOp):
        return to_integer(value, dtype)
    array = np.asarray(value)
    unsigned = kind in (arith.ExtUIOp, arith.UIToFPOp) and array.dtype != np.bool_
    return (array.view(f"u{array.dtype.itemsize}") if unsigned else array).astype(dtype)


def _compare_integers(predicate: int, a: Any, b: Any) -> Any:
    if predicate >= _FIRST_UNSIGNED:
        a, b = (np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}") for x in (a, b))
    return _INTEGER_PREDICATES[predicate](a, b)


def _compare_floats(predicate: int, a: Any, b: Any) -> Any:
    if predicate in (0, 15):
        return np.full(np.shape(a), predicate == 15)[()]
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in (_UNORDERED, 2 * _UNORDERED):
        return unordered if predicate == 2 * _UNORDERED else ~unordered
    holds = _ORDERED[predicate if predicate < _UNORDERED else predicate - _UNORDERED](a, b)
    return holds & ~unordered if predicate < _UNORDERED else holds | unordered


def _reduce(kind: str, dtype: np.dtype[Any], lanes: Array, *first: Any) -> Any:
    join = _REDUCTIONS[kind]
    total = lanes[0]
    for lane in lanes[1:]:
        total = join(total, lane)
    return dtype.type(join(first[0], total) if first else total)


def _integers(attribute: Attribute) -> tuple[int, ...]:
    return cast("DenseArrayBase[IntegerType]", attribute).get_values()


def _position(static: Attribute, dynamic: Sequence[Any]) -> int:
    return int(dynamic[0]) if dynamic else _integers(static)[0]
