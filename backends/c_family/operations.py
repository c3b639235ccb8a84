"""Arithmetic, mathematics and vector operations as C: a table from operation to template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import IntegerAttr, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.kernel import FLOAT_PREDICATES, INTEGER_PREDICATES
from ..unsupported import UnsupportedError
from . import index_arithmetic as index
from .arithmetic import (
    arithmetic,
    as_unsigned,
    exclusive_or,
    lanewise,
    logical,
    unsigned,
    unsigned_type,
    wrapped,
    wrapping,
)
from .expression import (
    ADD,
    AND,
    BOTH,
    EITHER,
    EQUALITY,
    MULTIPLY,
    OR,
    RELATION,
    SHIFT,
    UNARY,
    Expr,
    call,
    cast_to,
    infix,
    negated,
    ternary,
)
from .printer import Handler, KernelPrinter
from .types import NARROW_FLOATS, element_name, is_float
from .vector_operations import broadcast, extract, insert, lane_numbers, mask, reduction, shuffle_lanes


def function(name: str) -> Handler:
    """Handle a function of the math library."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        return math_call(p, name, kind, lanes)

    return lanewise(template)


def _exponential(p: KernelPrinter, op: Operation) -> None:
    """Print an exponential or a power of 2, approximated where the operation allows it and the language has a word."""
    assert isinstance(op, math.ExpOp | math.Exp2Op)
    name = "exp" if isinstance(op, math.ExpOp) else "exp2"
    near = FastMathFlag.APPROX_FUNC in op.fastmath.data and kernel.element_of(op.result.type) == f32
    fast = p.language.fast_exponential(p.helpers, name) if near else ""
    (_named(fast) if fast else function(name))(p, op)


def _named(name: str) -> Handler:
    """Handle a call of a function by its full name."""
    return lanewise(lambda p, kind, lanes: call(name, *lanes))


def math_call(p: KernelPrinter, name: str, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return a call of the math library; half precision is computed in single."""
    if kind not in NARROW_FLOATS:
        return call(p.language.function(name, kind), *lanes)
    wide = [p.language.convert(lane, kind, "f32", p.long_index) for lane in lanes]
    return p.language.convert(call(p.language.function(name, "f32"), *wide), "f32", kind, p.long_index)


def helper(name: str) -> Handler:
    """Handle a call of a function that the preamble defines for the operands' type."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        if kind == "index":
            kind = "i64" if p.long_index else "i32"
        p.type_of(kind)
        p.helpers.add(f"{name} {kind}")
        return call(f"{name}_{kind}", *lanes)

    return lanewise(template)


def integer_extremum(name: str) -> Handler:
    """Handle signed min and max."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if a.number is not None and b.number is not None:
            return p.literal((max if name == "max" else min)(a.number, b.number), kind)
        return ternary(infix(">" if name == "max" else "<", RELATION, a, b), a, b)

    return lanewise(template, repeats=True)


def unsigned_extremum(operator: str) -> Handler:
    """Handle min and max of the operands' bits taken as unsigned numbers."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        unsigned_a, unsigned_b = (as_unsigned(p, kind, lane) for lane in lanes)
        return ternary(infix(operator, RELATION, unsigned_a, unsigned_b), a, b)

    return lanewise(template, repeats=True)


def conversion(p: KernelPrinter, op: Operation) -> None:
    """Handle a change of type."""
    source, result = element_name(op.operands[0].type), element_name(op.results[0].type)
    p.type_of(result)
    lanes = p.lanes(op.operands[0])
    if source == "i1" and result != "i1":
        minus, zero = p.literal(-1, result), p.literal(0, result)
        p.define(op.results[0], [ternary(lane, minus, zero) for lane in lanes])
        return
    keeps_nan = _keeps_nan(p, op)
    if keeps_nan:
        lanes = p.atoms(op.operands[0])
        if source in NARROW_FLOATS:
            lanes, source = tuple(p.language.convert(lane, source, "f32", p.long_index) for lane in lanes), "f32"
    made = [p.language.convert(lane, source, result, p.long_index) for lane in lanes]
    p.define(op.results[0], _zero_for_nan(p, op, lanes, made) if keeps_nan else made)


def _keeps_nan(p: KernelPrinter, op: Operation) -> bool:
    """True of floats that become integers, where the language has another one than 0 for NaN."""
    source, result = element_name(op.operands[0].type), element_name(op.results[0].type)
    return is_float(source) and not is_float(result) and not p.language.nan_becomes_zero(source, result, p.long_index)


def _zero_for_nan(p: KernelPrinter, op: Operation, lanes: Sequence[Expr], integers: Sequence[Expr]) -> list[Expr]:
    """Return the integers that lanes were converted to, and 0 for NaN."""
    zero = p.literal(0, element_name(op.results[0].type))
    numbers = [infix("==", EQUALITY, lane, lane) for lane in lanes]
    return [ternary(number, integer, zero) for number, integer in zip(numbers, integers, strict=True)]


def unsigned_conversion(p: KernelPrinter, op: Operation) -> None:
    """Handle extui and uitofp: the operand's bits are an unsigned number."""
    source, result = element_name(op.operands[0].type), element_name(op.results[0].type)
    lanes = p.lanes(op.operands[0])
    if source != "i1":
        lanes = tuple(cast_to(unsigned_type(p, source), lane) for lane in lanes)
    is_narrow = result in NARROW_FLOATS
    lanes = tuple(cast_to(p.type_of("f32" if is_narrow else result), lane) for lane in lanes)
    if is_narrow:
        lanes = tuple(p.language.convert(lane, "f32", result, p.long_index) for lane in lanes)
    p.define(op.results[0], lanes)


def to_unsigned(p: KernelPrinter, op: Operation) -> None:
    """Handle fptoui: toward zero, held in the bits of an integer."""
    source, result = element_name(op.operands[0].type), element_name(op.results[0].type)
    keeps_nan = _keeps_nan(p, op)
    lanes = p.atoms(op.operands[0]) if keeps_nan else p.lanes(op.operands[0])
    if source in NARROW_FLOATS:
        lanes = tuple(p.language.convert(lane, source, "f32", p.long_index) for lane in lanes)
    unsigned_name, name = unsigned_type(p, result), p.type_of(result)
    made = [cast_to(name, p.language.float_to_unsigned(unsigned_name, lane)) for lane in lanes]
    p.define(op.results[0], _zero_for_nan(p, op, lanes, made) if keeps_nan else made)


def truncation(p: KernelPrinter, op: Operation) -> None:
    """Handle trunci: the low bits; of a truth value the lowest."""
    result = element_name(op.results[0].type)
    if result != "i1":
        conversion(p, op)
        return
    one = p.literal(1, element_name(op.operands[0].type))
    bits = (infix("&", AND, lane, one) for lane in p.lanes(op.operands[0]))
    p.define(op.results[0], [infix("!=", EQUALITY, bit, Expr("0")) for bit in bits])


def convert_lanes(p: KernelPrinter, op: Operation) -> None:
    """Handle a change of type of lanes, as that of a scalar."""
    assert isinstance(op, kernel.ConvertOp)
    scalar = kernel.CONVERSIONS[op.conversion.data]
    if scalar not in OPERATIONS:
        raise UnsupportedError(f"GPU backends do not convert by {op.conversion.data}")
    OPERATIONS[scalar](p, op)


def constant(p: KernelPrinter, op: Operation) -> None:
    """Handle a constant: its literal, wherever it is used."""
    value, result = op.properties["value"], op.results[0]
    kind, lanes = element_name(result.type), kernel.lanes_of(result.type)
    numbers = kernel.constant_lanes(value, lanes)
    if numbers is None:
        raise UnsupportedError(f"GPU backends print no constant {value}")
    p.define_literal(result, [p.literal(number, kind) for number in numbers])


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def compare(p: KernelPrinter, op: Operation) -> None:
    """Handle cmpi, cmpf and lane comparisons."""
    a, b = op.operands
    kind = element_name(a.type)
    named = op.predicate.data if isinstance(op, kernel.CompareOp) else None
    number = cast("IntegerAttr", op.properties["predicate"]).value.data if named is None else 0
    predicate = named or (FLOAT_PREDICATES if is_float(kind) else INTEGER_PREDICATES)[number]
    if is_float(kind):
        lanes = [compare_floats(predicate, x, y) for x, y in zip(p.atoms(a), p.atoms(b), strict=True)]
    else:
        lanes = [compare_integers(p, kind, predicate, x, y) for x, y in zip(p.lanes(a), p.lanes(b), strict=True)]
    p.define(op.results[0], lanes)


def compare_integers(p: KernelPrinter, kind: str, predicate: str, a: Expr, b: Expr) -> Expr:
    """Return an integer comparison; predicates that begin with `u` take the bits as unsigned numbers."""
    sign = _SIGNS[predicate[-2:]]
    precedence = EQUALITY if sign in ("==", "!=") else RELATION
    if predicate[0] == "u":
        return infix(sign, precedence, as_unsigned(p, kind, a), as_unsigned(p, kind, b))
    return index.compare(sign, precedence, a, b) if kind == "index" else infix(sign, precedence, a, b)


def compare_floats(predicate: str, a: Expr, b: Expr) -> Expr:
    """Return a float comparison: `o...` is false and `u...` true where an operand is NaN."""
    if predicate in ("false", "true"):
        return Expr(predicate)
    if predicate in ("ord", "uno"):
        sign, join, level = ("==", "&&", BOTH) if predicate == "ord" else ("!=", "||", EITHER)
        return infix(join, level, infix(sign, EQUALITY, a, a), infix(sign, EQUALITY, b, b))
    sign = _SIGNS[predicate[1:]]
    if predicate == "one":
        return infix("||", EITHER, infix("<", RELATION, a, b), infix(">", RELATION, a, b))
    if predicate == "ueq":
        return negated(compare_floats("one", a, b))
    if predicate[0] == "u" and predicate != "une":
        opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[sign]
        return negated(infix(opposite, RELATION, a, b))
    return infix(sign, EQUALITY if sign in ("==", "!=") else RELATION, a, b)


def select(p: KernelPrinter, op: Operation) -> None:
    """Handle select; one condition may choose whole vectors."""
    condition, a, b = op.operands
    lanes = p.lanes(a)
    conditions = p.lanes(condition)
    if len(conditions) < len(lanes):
        conditions = p.atoms(condition) * len(lanes)
    p.define(op.results[0], [ternary(*each) for each in zip(conditions, lanes, p.lanes(b), strict=True)])


def negate(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return `-a`."""
    (a,) = lanes
    return Expr(f"-{a.at_least(UNARY + 1)}", UNARY, a.reads)


def fused(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return `a * b + c`, rounded once."""
    return p.language.fma(p.helpers, kind, lanes)


def extremum(name: str) -> Handler:
    """Handle float min and max."""
    return lanewise(lambda p, kind, lanes: p.language.extremum(p.helpers, name, kind, *lanes))


def _absolute_integer(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    (a,) = lanes
    return ternary(infix("<", RELATION, a, Expr("0")), wrapped(p, "-", ADD, kind, p.literal(0, kind), a), a)


def _bitcast(p: KernelPrinter, op: Operation) -> None:
    source, result = element_name(op.operands[0].type), element_name(op.results[0].type)
    if source == result:
        p.define(op.results[0], p.lanes(op.operands[0]))
        return
    p.define(op.results[0], [p.language.bitcast(lane, source, result) for lane in p.lanes(op.operands[0])])


def _c_remainder(a: int, b: int) -> int:
    return a - b * _c_quotient(a, b)


def _c_quotient(a: int, b: int) -> int:
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0


OPERATIONS: dict[type[Operation], Handler] = {
    arith.ConstantOp: constant,
    arith.AddiOp: wrapping("+", ADD, lambda a, b: a + b),
    arith.SubiOp: wrapping("-", ADD, lambda a, b: a - b),
    arith.MuliOp: wrapping("*", MULTIPLY, lambda a, b: a * b),
    arith.DivSIOp: arithmetic("/", MULTIPLY, _c_quotient),
    arith.RemSIOp: arithmetic("%", MULTIPLY, _c_remainder),
    arith.DivUIOp: unsigned("/", MULTIPLY),
    arith.RemUIOp: unsigned("%", MULTIPLY),
    arith.FloorDivSIOp: helper("floordiv"),
    arith.CeilDivSIOp: helper("ceildiv"),
    arith.AndIOp: logical("&", AND, BOTH),
    arith.OrIOp: logical("|", OR, EITHER),
    arith.XOrIOp: lanewise(exclusive_or),
    arith.ShLIOp: wrapping("<<", SHIFT),
    arith.ShRSIOp: arithmetic(">>", SHIFT),
    arith.ShRUIOp: unsigned(">>", SHIFT),
    arith.MaxSIOp: integer_extremum("max"),
    arith.MinSIOp: integer_extremum("min"),
    arith.MaxUIOp: unsigned_extremum(">"),
    arith.MinUIOp: unsigned_extremum("<"),
    arith.AddfOp: arithmetic("+", ADD),
    arith.SubfOp: arithmetic("-", ADD),
    arith.MulfOp: arithmetic("*", MULTIPLY),
    arith.DivfOp: arithmetic("/", MULTIPLY),
    arith.NegfOp: lanewise(negate),
    arith.MaximumfOp: extremum("maximumf"),
    arith.MinimumfOp: extremum("minimumf"),
    arith.MaxnumfOp: extremum("maxnumf"),
    arith.MinnumfOp: extremum("minnumf"),
    arith.CmpiOp: compare,
    arith.CmpfOp: compare,
    kernel.CompareOp: compare,
    kernel.ConvertOp: convert_lanes,
    kernel.SelectOp: select,
    arith.SelectOp: select,
    arith.ExtFOp: conversion,
    arith.TruncFOp: conversion,
    arith.ExtSIOp: conversion,
    arith.ExtUIOp: unsigned_conversion,
    arith.TruncIOp: truncation,
    arith.SIToFPOp: conversion,
    arith.UIToFPOp: unsigned_conversion,
    arith.FPToSIOp: conversion,
    arith.FPToUIOp: to_unsigned,
    arith.BitcastOp: _bitcast,
    arith.IndexCastOp: conversion,
    math.AbsIOp: lanewise(_absolute_integer, repeats=True),
    math.FmaOp: lanewise(fused),
    math.ExpOp: _exponential,
    math.Exp2Op: _exponential,
    vector.FMAOp: lanewise(fused),
    vector.BroadcastOp: broadcast,
    vector.ReductionOp: reduction,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    vector.ShuffleOp: shuffle_lanes,
    vector.BitcastOp: _bitcast,
    kernel.LanesOp: lane_numbers,
    kernel.MaskOp: mask,
    **{
        operation: function(name)
        for operation, name in (
            *((math.AbsFOp, "fabs"), (math.CeilOp, "ceil"), (math.FloorOp, "floor"), (math.RoundOp, "round")),
            *((math.RoundEvenOp, "rint"), (math.TruncOp, "trunc"), (math.SqrtOp, "sqrt"), (math.RsqrtOp, "rsqrt")),
            *((math.CopySignOp, "copysign"), (math.ExpM1Op, "expm1")),
            *((math.LogOp, "log"), (math.Log2Op, "log2"), (math.Log10Op, "log10"), (math.Log1pOp, "log1p")),
            *((math.TanhOp, "tanh"), (math.ErfOp, "erf"), (math.SinOp, "sin"), (math.CosOp, "cos")),
            *((math.TanOp, "tan"), (math.SinhOp, "sinh"), (math.CoshOp, "cosh"), (math.AsinOp, "asin")),
            *((math.AcosOp, "acos"), (math.AtanOp, "atan"), (math.AtanhOp, "atanh"), (math.AcoshOp, "acosh")),
            *((math.AsinhOp, "asinh"), (math.Atan2Op, "atan2"), (math.PowFOp, "pow"), (math.CbrtOp, "cbrt")),
        )
    },
}
