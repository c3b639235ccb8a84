"""The operations of kernels that have no side effects, as functions of their operands' NumPy values.

The lanes of a vector are the first axis of its value. Where threads run side by side they are the last axis: a scalar
is one number, or an array `(threads,)`; a vector of n lanes is `(n,)`, or `(n, threads)`, or `(n, 1)` where all threads
have the same. Values are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith, vector
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerType, VectorType
from xdsl.ir import Attribute, Operation

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


def dtype_of(value_type: Attribute) -> np.dtype[Any]:
    """The NumPy type of a value, or of the lanes of a vector; addresses are 64-bit integers."""
    element = kernel.element_of(value_type)
    return np.dtype(np.int64 if isinstance(element, IndexType) else dtype_name(element))


def function_of(op: Operation) -> Callable[..., Any]:
    """Return an operation without side effects as a function of its operands' values."""
    found = _FUNCTIONS.get(type(op))
    if found is not None:
        return found(op)
    result = op.results[0].type
    dtype = dtype_of(result)
    if isinstance(op, (arith.FPToSIOp, arith.FPToUIOp, *CONVERSIONS)):
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
    return partial(_converted, kernel.CONVERSIONS[op.conversion.data], dtype=dtype_of(op.result.type))


def _shuffle(op: vector.ShuffleOp) -> Callable[..., Any]:
    chosen = list(_integers(op.mask))
    return lambda *operands: np.concatenate(_side_by_side(operands))[chosen]


def _side_by_side(vectors: Sequence[Array]) -> Sequence[Array]:
    """Vectors of as many threads each."""
    threads = {v.shape[1:] for v in vectors}
    if len(threads) == 1:
        return vectors
    widest = max(threads)
    return [np.broadcast_to(v, (len(v), *widest)) for v in vectors]


def _broadcast(op: vector.BroadcastOp) -> Callable[..., Any]:
    return partial(np.full, kernel.lanes_of(op.results[0].type), dtype=dtype_of(op.results[0].type))


def _extract(op: vector.ExtractOp) -> Callable[..., Any]:
    return lambda lanes, *place: _one(lanes[_position(op.static_position, place)])


def _one(value: Any) -> Any:
    """Return the number that is the same for all threads, if the lane of a vector is one."""
    return value[0] if np.shape(value) == (1,) else value


def _insert(op: vector.InsertOp) -> Callable[..., Any]:
    def inserted(value: Any, lanes: Array, *place: Any) -> Array:
        changed = np.array(np.broadcast_to(lanes, (len(lanes), *np.broadcast_shapes(np.shape(value), lanes.shape[1:]))))
        changed[_position(op.static_position, place)] = value
        return changed

    return inserted


def _bitcast(op: Operation) -> Callable[..., Any]:
    dtype = dtype_of(op.results[0].type)
    if isinstance(op.results[0].type, VectorType):
        return lambda value: np.ascontiguousarray(np.asarray(value).T).view(dtype).T
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
    vector.ReductionOp: lambda op: partial(_reduce, str(op.kind.data), dtype_of(op.results[0].type)),
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
    return _one(dtype.type(join(first[0], total) if first else total))


def _integers(attribute: Attribute) -> tuple[int, ...]:
    return cast("DenseArrayBase[IntegerType]", attribute).get_values()


def _position(static: Attribute, dynamic: Sequence[Any]) -> int:
    return int(dynamic[0]) if dynamic else _integers(static)[0]
