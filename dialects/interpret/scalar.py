"""Scalar arithmetic as Python source: one template for each arith and math operation, shared by the interpreters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Operation

from ..element import dtype_name, is_float, is_unsigned

_BINARY: dict[type[Operation], str] = {
    arith.AddfOp: "{0}+{1}",
    arith.SubfOp: "{0}-{1}",
    arith.MulfOp: "{0}*{1}",
    arith.DivfOp: "fdiv({0},{1})",
    arith.MaximumfOp: "fmax({0},{1})",
    arith.MinimumfOp: "fmin({0},{1})",
    arith.MaxnumfOp: "fmaxnum({0},{1})",
    arith.MinnumfOp: "fminnum({0},{1})",
    arith.NegfOp: "-{0}",
    arith.AddiOp: "{0}+{1}",
    arith.SubiOp: "{0}-{1}",
    arith.MuliOp: "{0}*{1}",
    arith.DivSIOp: "truncdiv({0},{1})",
    arith.FloorDivSIOp: "{0}//{1}",
    arith.RemSIOp: "truncrem({0},{1})",
    arith.DivUIOp: "{0}//{1}",
    arith.RemUIOp: "{0}%{1}",
    arith.MaxSIOp: "max({0},{1})",
    arith.MinSIOp: "min({0},{1})",
    arith.MaxUIOp: "max({0},{1})",
    arith.MinUIOp: "min({0},{1})",
    arith.AndIOp: "{0}&{1}",
    arith.OrIOp: "{0}|{1}",
    arith.XOrIOp: "{0}^{1}",
    arith.ShLIOp: "{0}<<{1}",
    arith.ShRSIOp: "{0}>>{1}",
    arith.ShRUIOp: "{0}>>{1}",
    arith.SelectOp: "({1} if {0} else {2})",
    arith.SIToFPOp: "float({0})",
    arith.UIToFPOp: "float({0})",
    arith.FPToSIOp: "{0}",
    arith.FPToUIOp: "{0}",
    arith.BitcastOp: "{0}",
    arith.ExtFOp: "{0}",
    arith.TruncFOp: "{0}",
    arith.ExtSIOp: "{0}",
    arith.ExtUIOp: "{0}",
    arith.TruncIOp: "{0}",
    arith.IndexCastOp: "{0}",
    math_dialect.AbsFOp: "abs({0})",
    math_dialect.AbsIOp: "abs({0})",
    math_dialect.CeilOp: "fceil({0})",
    math_dialect.FloorOp: "ffloor({0})",
    math_dialect.RoundOp: "fround({0})",
    math_dialect.RoundEvenOp: "fround({0})",
    math_dialect.TruncOp: "ftrunc({0})",
    math_dialect.ExpOp: "fexp({0})",
    math_dialect.Exp2Op: "fexp({0}*0.6931471805599453)",
    math_dialect.LogOp: "flog({0})",
    math_dialect.Log2Op: "flog({0})/0.6931471805599453",
    math_dialect.SqrtOp: "fsqrt({0})",
    math_dialect.RsqrtOp: "fdiv(1.0,fsqrt({0}))",
    math_dialect.TanhOp: "ftanh({0})",
    math_dialect.ErfOp: "ferf({0})",
    math_dialect.SinOp: "fsin({0})",
    math_dialect.CosOp: "fcos({0})",
    math_dialect.PowFOp: "fpow({0},{1})",
    math_dialect.FmaOp: "{0}*{1}+{2}",
    math_dialect.CopySignOp: "fcopysign({0},{1})",
}
# arith's predicate numbers: eq, ne, slt, sle, sgt, sge and (ordered) eq, gt, ge, lt, le, ne.
_INTEGER_COMPARE = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FLOAT_COMPARE = {
    1: "==",
    2: ">",
    3: ">=",
    4: "<",
    5: "<=",
    6: "!=",
    8: "==",
    9: ">",
    10: ">=",
    11: "<",
    12: "<=",
    13: "!=",
}


def python_expression(op: Operation, operands: list[str]) -> str:
    """The result of a scalar operation as Python source over its operands' names; TypeError for unknown operations."""
    if isinstance(op, arith.ConstantOp):
        value = op.value
        if isinstance(value, FloatAttr):
            return f"float('{value.value.data!r}')"
        assert isinstance(value, IntegerAttr)
        number = value.value.data
        return repr(number != 0 if value.type == i1 else number)
    if isinstance(op, arith.CmpiOp):
        return f"({operands[0]} {_INTEGER_COMPARE[op.predicate.value.data]} {operands[1]})"
    if isinstance(op, arith.CmpfOp):
        return f"({operands[0]} {_FLOAT_COMPARE[op.predicate.value.data]} {operands[1]})"
    template = _BINARY.get(type(op))
    if template is None:
        raise TypeError(f"operation '{op.name}' has no scalar meaning here")
    text = template.format(*operands)
    result = op.results[0].type
    if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
        limits = np.iinfo(dtype_name(result))
        return f"fwhole({operands[0]},{limits.min},{limits.max})"
    if isinstance(op, arith.BitcastOp) and (is_float(result) or is_float(op.operands[0].type)):
        return f"rebits({operands[0]},'{dtype_name(op.operands[0].type)}','{dtype_name(result)}')"
    if isinstance(result, IntegerType) and result.width.data > 1 and type(op) in _WRAPPING:
        return wrapped(text, result)
    return text


_WRAPPING = {
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp, arith.TruncIOp, math_dialect.AbsIOp),
    *(arith.BitcastOp, arith.ExtSIOp),
}


def wrapped(text: str, element: Attribute) -> str:
    """`text` reduced to the range of an integer type, two's complement where it is signed."""
    assert isinstance(element, IntegerType)
    if is_unsigned(element):
        return f"(({text})%{1 << element.width.data})"
    half = 1 << (element.width.data - 1)
    return f"((({text})+{half})%{2 * half}-{half})"


def _guard(function: Callable[[float], float], at_overflow: float = math.inf) -> Callable[[float], float]:
    def guarded(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return at_overflow
        except ValueError:
            return math.nan

    return guarded


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if a == 0 else math.nan


def _truncated_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


FUNCTIONS: dict[str, object] = {
    "fdiv": _divide,
    "fmax": lambda a, b: a if a != a or a > b else b,
    "fmin": lambda a, b: a if a != a or a < b else b,
    "fmaxnum": lambda a, b: b if a != a or (b == b and b > a) else a,
    "fminnum": lambda a, b: b if a != a or (b == b and b < a) else a,
    "rebits": lambda a, source, result: np.asarray(a, source).view(result).item(),
    "fwhole": lambda a, low, high: 0 if a != a else int(min(max(a, low), high)),
    "truncdiv": _truncated_quotient,
    "truncrem": lambda a, b: a - _truncated_quotient(a, b) * b,
    "fceil": lambda a: float(math.ceil(a)) if math.isfinite(a) else a,
    "ffloor": lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    "fround": lambda a: float(round(a)) if math.isfinite(a) else a,
    "ftrunc": lambda a: float(math.trunc(a)) if math.isfinite(a) else a,
    "fexp": _guard(math.exp),
    "flog": lambda a: math.log(a) if a > 0 else (-math.inf if a == 0 else math.nan),
    "fsqrt": _guard(math.sqrt),
    "ftanh": math.tanh,
    "ferf": math.erf,
    "fsin": _guard(math.sin),
    "fcos": _guard(math.cos),
    "fpow": _power,
    "fcopysign": math.copysign,
}
"""Functions that the templates call."""
