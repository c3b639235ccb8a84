"""Scalar operations on whole NumPy arrays at once: what a body of arith and math operations means for every point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ..element import dtype_name, is_float
from ..te import YieldOp

Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = dict[SSAValue, Array]


def _erf(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(x))


def _power(a: Array, b: Array) -> Array:
    """The power of IEEE 754: NumPy takes the square root for a half that is the exponent of all elements.

    That of -infinity is NaN, and that of -0 is -0, where the powers are infinity and 0.
    """
    signless = (b == 0.5) & ((a == 0) | (a == -np.inf))
    return np.asarray(np.power(np.where(signless, np.abs(a), a), b))


def _truncated_quotient(a: Array, b: Array) -> Array:
    return np.asarray((np.abs(a) // np.abs(b)) * (np.sign(a) * np.sign(b)))


def _on_unsigned(function: np.ufunc) -> Callable[[Array, Array], Array]:
    """Return a function of the bits of two integers taken as unsigned numbers."""

    def applied(a: Array, b: Array) -> Array:
        held = np.asarray(a).dtype
        result = function(*(np.asarray(x).view(f"u{held.itemsize}") for x in (a, b)))
        return np.asarray(result).view(held)

    return applied


OPERATIONS: dict[type[Operation], Callable[..., Any]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.FloorDivSIOp: np.floor_divide,
    arith.DivUIOp: _on_unsigned(np.floor_divide),
    arith.RemUIOp: _on_unsigned(np.remainder),
    arith.DivSIOp: _truncated_quotient,
    arith.RemSIOp: np.fmod,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.MaxUIOp: _on_unsigned(np.maximum),
    arith.MinUIOp: _on_unsigned(np.minimum),
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift,
    arith.ShRSIOp: np.right_shift,
    arith.ShRUIOp: _on_unsigned(np.right_shift),
    arith.SelectOp: np.where,
    math.AbsFOp: np.abs,
    math.AbsIOp: np.abs,
    math.CeilOp: np.ceil,
    math.FloorOp: np.floor,
    math.RoundEvenOp: np.rint,
    math.RoundOp: lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    math.TruncOp: np.trunc,
    math.ExpOp: np.exp,
    math.Exp2Op: np.exp2,
    math.LogOp: np.log,
    math.Log2Op: np.log2,
    math.SqrtOp: np.sqrt,
    math.RsqrtOp: lambda x: 1 / np.sqrt(x),
    math.SinOp: np.sin,
    math.CosOp: np.cos,
    math.TanhOp: np.tanh,
    math.ErfOp: _erf,
    math.PowFOp: _power,
    math.FmaOp: lambda a, b, c: a * b + c,
    math.CopySignOp: np.copysign,
}
CONVERSIONS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.IndexCastOp,
)
_ORDER = (np.less, np.less_equal, np.greater, np.greater_equal)
_INTEGER_COMPARE = (np.equal, np.not_equal, *_ORDER, *_ORDER)
_FLOAT_COMPARE: dict[int, Callable[..., Any]] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    13: np.not_equal,
}
"""By arith's predicate numbers: floats oeq, ogt, oge, olt, ole, une; integers eq, ne, lt, le, gt, ge, then unsigned."""


_SPECIAL = (arith.ConstantOp, arith.CmpiOp, arith.FPToSIOp, arith.FPToUIOp, arith.BitcastOp, *CONVERSIONS)


def has_meaning(op: Operation) -> bool:
    """True where `Arithmetic.scalar` evaluates an operation."""
    if isinstance(op, arith.CmpfOp):
        return int(op.predicate.value.data) in _FLOAT_COMPARE
    if isinstance(op, arith.ConstantOp):
        return isinstance(op.value, FloatAttr | IntegerAttr)
    return isinstance(op, _SPECIAL) or type(op) in OPERATIONS


class Arithmetic:
    """Evaluates bodies; with `wide`, floats are held in double precision and rounded only where the body says so."""

    def __init__(self, wide: bool) -> None:
        self.wide = wide

    def dtype(self, element: Attribute) -> np.dtype[Any]:
        """The NumPy type that values of an element type are held in."""
        return np.dtype("float64" if self.wide and is_float(element) else dtype_name(element))

    def hold(self, array: Array, element: Attribute) -> Array:
        """Convert a tensor's elements to the type that values are held in."""
        return array.astype(self.dtype(element), copy=False)

    def body(self, ops: Iterable[Operation], values: Values, leaf: Callable[[Operation], Array | None]) -> list[Array]:
        """Evaluate a body to its yield; `leaf` evaluates the operations that are no arithmetic."""
        for op in ops:
            if isinstance(op, YieldOp):
                return [values[v] for v in op.values]
            found = leaf(op)
            values[op.results[0]] = self.scalar(op, [values[v] for v in op.operands]) if found is None else found
        raise AssertionError("a body ends with a yield")

    def scalar(self, op: Operation, operands: list[Array]) -> Array:
        """Evaluate one arith or math operation; TypeError for operations without a meaning here."""
        element = op.results[0].type
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, FloatAttr | IntegerAttr)
            exact = np.asarray(op.value.value.data).astype(dtype_name(element))
            return self.hold(exact, element)
        if isinstance(op, arith.CmpiOp):
            return np.asarray(_INTEGER_COMPARE[int(op.predicate.value.data)](*operands))
        if isinstance(op, arith.CmpfOp):
            return np.asarray(_FLOAT_COMPARE[int(op.predicate.value.data)](*operands))
        if self.wide and isinstance(op, arith.ExtFOp):
            return operands[0]
        if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
            return np.asarray(to_integer(operands[0], self.dtype(element)))
        if isinstance(op, arith.BitcastOp):
            bits = operands[0].astype(dtype_name(op.operands[0].type))
            return self.hold(np.asarray(bits.view(dtype_name(element))), element)
        if isinstance(op, CONVERSIONS):
            narrow = operands[0].astype(dtype_name(element))
            return self.hold(narrow, element)
        operation = OPERATIONS.get(type(op))
        if operation is None:
            raise TypeError(f"operation '{op.name}' has no meaning on arrays here")
        return np.asarray(operation(*operands))


def to_integer(value: Any, dtype: np.dtype[Any]) -> Any:
    """Floats as integers: toward zero, saturating, NaN to 0."""
    limits = np.iinfo(dtype)
    wide = np.nan_to_num(np.trunc(np.asarray(value, np.float64)), nan=0.0)
    inside = (wide > float(limits.min)) & (wide < float(limits.max))
    whole = np.where(inside, wide, 0.0).astype(dtype)
    beyond = np.where(wide > 0, dtype.type(limits.max), dtype.type(limits.min))
    return np.where(inside | (wide == 0), whole, beyond)[()]
