"""The interpreter of the kernel dialect, one operation after the other on flat NumPy arrays: the backends' oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    interpreter = _Interpreter()
    results: list[Array] = []
    for argument, is_output in zip(block.args, outputs, strict=True):
        buffer_type = cast(MemRefType[Attribute], argument.type)
        shape = buffer_type.get_shape()
        if is_output:
            array = _unwritten(math.prod(shape), buffer_type.element_type)
            results.append(array.reshape(shape))
        else:
            array = np.array(next(given), dtype_name(buffer_type.element_type)).reshape(-1)
        interpreter.values[argument] = array
    with np.errstate(all="ignore"):
        interpreter.block(block)
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


class _Interpreter:
    """The values of one run."""

    def __init__(self) -> None:
        self.values: dict[SSAValue, Any] = {}

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        step = _STEPS.get(type(op))
        if step is not None:
            step(self, op)
            return
        operands = [self.values[operand] for operand in op.operands]
        self.values[op.results[0]] = _arithmetic(op, operands)

    def places(self, op: Operation, buffer: SSAValue, index: SSAValue, lanes: int) -> Array:
        """Return the element that each lane of a load or store names."""
        offset = int(cast(Any, op.properties["offset"]).data)
        stride = int(cast(Any, op.properties["stride"]).data)
        return np.asarray(int(self.values[index]) + offset + np.arange(lanes) * stride)

    def mask(self, masks: Sequence[SSAValue], lanes: int) -> npt.NDArray[np.bool_]:
        if not masks:
            return np.ones(lanes, np.bool_)
        return np.broadcast_to(np.asarray(self.values[masks[0]], np.bool_), (lanes,))


def _checked(op: Operation, array: Array, places: Array, mask: npt.NDArray[np.bool_]) -> None:
    outside = mask & ((places < 0) | (places >= array.size))
    if outside.any():
        place = int(places[outside][0])
        raise InterpretationError(f"{op.name} reaches element {place} of a buffer of {array.size} elements: {op}")


def _read(self: _Interpreter, op: Operation, array: Array, places: Array, mask: npt.NDArray[np.bool_]) -> Array:
    _checked(op, array, places, mask)
    found = np.zeros(len(places), array.dtype)
    found[mask] = array[places[mask]]
    return found


def _load(self: _Interpreter, op: Operation) -> None:
    buffer, index, *masks = op.operands
    result = op.results[0]
    lanes = kernel.lanes_of(result.type)
    places = self.places(op, buffer, index, lanes)
    found = _read(self, op, self.values[buffer], places, self.mask(masks, lanes))
    self.values[result] = found if isinstance(result.type, VectorType) else found[0]


def _store(self: _Interpreter, op: Operation) -> None:
    value, buffer, index, *masks = op.operands
    lanes = kernel.lanes_of(value.type)
    places = self.places(op, buffer, index, lanes)
    _write(self, op, buffer, places, self.mask(masks, lanes), value)


def _write(
    self: _Interpreter, op: Operation, buffer: SSAValue, places: Array, mask: npt.NDArray[np.bool_], value: SSAValue
) -> None:
    array = self.values[buffer]
    _checked(op, array, places, mask)
    array[places[mask]] = np.broadcast_to(self.values[value], mask.shape)[mask]


def _gather(self: _Interpreter, op: Operation) -> None:
    buffer, indices, mask = op.operands
    places = self.values[indices]
    self.values[op.results[0]] = _read(self, op, self.values[buffer], places, self.mask([mask], len(places)))


def _scatter(self: _Interpreter, op: Operation) -> None:
    value, buffer, indices, mask = op.operands
    places = self.values[indices]
    _write(self, op, buffer, places, self.mask([mask], len(places)), value)


def _alloc(self: _Interpreter, op: Operation) -> None:
    buffer_type = cast(MemRefType[Attribute], op.results[0].type)
    self.values[op.results[0]] = _unwritten(buffer_type.get_shape()[0], buffer_type.element_type)


def _lanes(self: _Interpreter, op: Operation) -> None:
    self.values[op.results[0]] = np.arange(kernel.lanes_of(op.results[0].type), dtype=_dtype(op.results[0].type))


def _mask(self: _Interpreter, op: Operation) -> None:
    lanes = kernel.lanes_of(op.results[0].type)
    on = self.values[op.operands[0]] + np.arange(lanes) * int(cast(Any, op.properties["step"]).data) >= 0
    self.values[op.results[0]] = on if isinstance(op.results[0].type, VectorType) else on[0]


def _compare(self: _Interpreter, op: kernel.CompareOp) -> None:
    operands = [self.values[operand] for operand in op.operands]
    if is_float(kernel.element_of(op.lhs.type)):
        number = kernel.FLOAT_PREDICATES.index(op.predicate.data)
        self.values[op.result] = _compare_floats(number, *operands)
    else:
        self.values[op.result] = _compare_integers(kernel.INTEGER_PREDICATES.index(op.predicate.data), operands)


def _convert(self: _Interpreter, op: kernel.ConvertOp) -> None:
    kind = kernel.CONVERSIONS[op.conversion.data]
    self.values[op.result] = _converted(kind, self.values[op.source], _dtype(op.result.type))


def _select(self: _Interpreter, op: kernel.SelectOp) -> None:
    self.values[op.result] = np.where(*(self.values[operand] for operand in op.operands))


def _for(self: _Interpreter, op: Operation) -> None:
    low, high, step = (int(self.values[operand]) for operand in op.operands)
    body = op.regions[0].blocks[0]
    for value in range(low, high, step):
        self.values[body.args[0]] = np.int64(value)
        self.block(body)


def _parallel(self: _Interpreter, op: Operation) -> None:
    """Run the iterations in reverse, so that one that relies on an earlier one gives a wrong result."""
    body = op.regions[0].blocks[0]
    for value in reversed(range(int(cast(Any, op.properties["extent"]).data))):
        self.values[body.args[0]] = np.int64(value)
        self.block(body)


def _if(self: _Interpreter, op: Operation) -> None:
    region = op.regions[0 if self.values[op.operands[0]] else 1]
    if region.blocks:
        self.block(region.blocks[0])


def _nothing(self: _Interpreter, op: Operation) -> None:
    pass


_STEPS: dict[type[Operation], Callable[[_Interpreter, Any], None]] = {
    kernel.AllocOp: _alloc,
    kernel.LoadOp: _load,
    kernel.StoreOp: _store,
    kernel.GatherOp: _gather,
    kernel.ScatterOp: _scatter,
    kernel.LanesOp: _lanes,
    kernel.MaskOp: _mask,
    kernel.CompareOp: _compare,
    kernel.ConvertOp: _convert,
    kernel.SelectOp: _select,
    kernel.PrefetchOp: _nothing,
    kernel.ParallelOp: _parallel,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: _nothing,
    func.ReturnOp: _nothing,
}


def _arithmetic(op: Operation, operands: list[Any]) -> Any:
    """Return the value of an arith, math or vector operation on scalars or lanes."""
    result = op.results[0].type
    dtype = _dtype(result)
    if isinstance(op, arith.ConstantOp):
        return _constant(op.value, result, dtype)
    if isinstance(op, arith.CmpiOp):
        return _compare_integers(int(op.predicate.value.data), operands)
    if isinstance(op, arith.CmpfOp):
        return _compare_floats(int(op.predicate.value.data), *operands)
    if isinstance(op, vector.BroadcastOp):
        return np.full(kernel.lanes_of(result), operands[0], dtype)
    if isinstance(op, vector.ReductionOp):
        return _reduce(str(op.kind.data), operands, dtype)
    if isinstance(op, vector.ShuffleOp):
        return np.concatenate(operands)[list(_integers(op.mask))]
    if isinstance(op, vector.ExtractOp):
        return operands[0][_position(op.static_position, operands[1:])]
    if isinstance(op, vector.InsertOp):
        changed = operands[1].copy()
        changed[_position(op.static_position, operands[2:])] = operands[0]
        return changed
    if isinstance(op, arith.BitcastOp | vector.BitcastOp):
        return np.asarray(operands[0]).view(dtype)
    if isinstance(op, (arith.FPToUIOp, *CONVERSIONS)):
        return _converted(type(op), operands[0], dtype)
    operation = _MORE_OPERATIONS.get(type(op)) or OPERATIONS.get(type(op))
    if operation is None:
        raise InterpretationError(f"operation {op.name} has no meaning in a kernel")
    return np.asarray(operation(*operands)).astype(dtype)[()]


def _converted(kind: type[Operation], value: Any, dtype: np.dtype[Any]) -> Any:
    if kind in (arith.FPToSIOp, arith.FPToUIOp):
        return to_integer(value, dtype)
    array = np.asarray(value)
    unsigned = kind in (arith.ExtUIOp, arith.UIToFPOp) and array.dtype != np.bool_
    return (array.view(f"u{array.dtype.itemsize}") if unsigned else array).astype(dtype)


def _constant(value: Attribute, result: Attribute, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, IntegerAttr | FloatAttr):
        return dtype.type(value.value.data)
    assert isinstance(value, DenseIntOrFPElementsAttr)
    return np.resize(np.array(value.get_values()).astype(dtype), kernel.lanes_of(result))


def _compare_integers(predicate: int, operands: list[Any]) -> Any:
    if predicate >= _FIRST_UNSIGNED:
        operands = [np.asarray(a).view(f"u{np.asarray(a).dtype.itemsize}") for a in operands]
    return _INTEGER_PREDICATES[predicate](*operands)


def _compare_floats(predicate: int, a: Any, b: Any) -> Any:
    if predicate in (0, 15):
        return np.full(np.shape(a), predicate == 15)[()]
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in (_UNORDERED, 2 * _UNORDERED):
        return unordered if predicate == 2 * _UNORDERED else ~unordered
    holds = _ORDERED[predicate if predicate < _UNORDERED else predicate - _UNORDERED](a, b)
    return holds & ~unordered if predicate < _UNORDERED else holds | unordered


def _reduce(kind: str, operands: list[Any], dtype: np.dtype[Any]) -> Any:
    join = _REDUCTIONS[kind]
    total = operands[0][0]
    for lane in operands[0][1:]:
        total = join(total, lane)
    return dtype.type(join(operands[1], total) if len(operands) > 1 else total)


def _integers(attribute: Attribute) -> tuple[int, ...]:
    return cast("DenseArrayBase[IntegerType]", attribute).get_values()


def _position(static: Attribute, dynamic: list[Any]) -> int:
    return int(dynamic[0]) if dynamic else _integers(static)[0]
