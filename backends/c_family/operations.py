"""Arithmetic, mathematics and vector operations as C: a table from operation to template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard, cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, IntegerType, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation

from ...dialects import kernel
from ...dialects.kernel import FLOAT_PREDICATES, INTEGER_PREDICATES
from ..unsupported import UnsupportedError
from . import index_arithmetic as index
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
    XOR,
    Expr,
    call,
    cast_to,
    infix,
    negated,
    ternary,
)
from .printer import Handler, KernelPrinter
from .types import NARROW_FLOATS, is_float, kind_of

Template = Callable[[KernelPrinter, str, Sequence[Expr]], Expr]
"""From a printer, the kind of the first operand and one lane of each operand to one lane of the result."""


def lanewise(template: Template, repeats: bool = False) -> Handler:
    """Handle an operation lane by lane; `repeats` says that the template writes an operand more than once."""

    def handle(p: KernelPrinter, op: Operation) -> None:
        kind = kind_of(op.operands[0].type)
        operands = [p.atoms(operand) if repeats else p.lanes(operand) for operand in op.operands]
        p.define(op.results[0], [template(p, kind, lanes) for lanes in zip(*operands, strict=True)])

    return handle


def arithmetic(operator: str, precedence: int, fold: Callable[[int, int], int] | None = None) -> Handler:
    """Handle `a operator b`; results of narrow integers wrap, integer literals fold."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if fold is not None and a.number is not None and b.number is not None and kind != "i1":
            return p.literal(fold(a.number, b.number), kind)
        joined = infix(operator, precedence, a, b)
        return cut(p, kind, joined)

    return lanewise(template)


def wrapping(operator: str, precedence: int, fold: Callable[[int, int], int] | None = None) -> Handler:
    """Handle an integer `a operator b` whose result may be beyond its type, and then is its low bits."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if kind == "index" and operator in _ON_INDICES:
            return _ON_INDICES[operator](a, b)
        if fold is not None and a.number is not None and b.number is not None and kind != "i1":
            return p.literal(fold(a.number, b.number), kind)
        return wrapped(p, operator, precedence, kind, a, b)

    return lanewise(template)


def wrapped(p: KernelPrinter, operator: str, precedence: int, kind: str, a: Expr, b: Expr) -> Expr:
    """Return `a operator b`, of unsigned numbers where C leaves open what follows when a signed one overflows.

    Compilers build on that: of `x * x` they take it that it is not negative, of `x * 2 >> 7` that it is `x >> 6`.
    Arithmetic of narrower integers is done in int, which holds all results.
    """
    if operator == "+" and b.number is not None and b.number < 0:
        return wrapped(p, "-", precedence, kind, a, p.literal(-b.number, kind))
    if kind not in ("i32", "i64") or operator in "&|^":
        joined = infix(operator, precedence, a, b, associative=operator == "+" and kind[0] == "i")
        return cut(p, kind, joined)
    numbers = as_unsigned(p, kind, a), as_unsigned(p, kind, b)
    result = infix(operator, precedence, *numbers, associative=operator == "+")
    return cast_to(p.type_of(kind), result)._replace(unsigned=result)


def cut(p: KernelPrinter, kind: str, value: Expr) -> Expr:
    """Return the low bits of a result of narrow integers, which C computes in int."""
    return cast_to(p.type_of(kind), value) if kind in ("i8", "i16") else value


_ON_INDICES: dict[str, Callable[[Expr, Expr], Expr]] = {"+": index.add, "-": index.subtract, "*": index.multiply}


def unsigned(operator: str, precedence: int) -> Handler:
    """Handle `a operator b` on the operands' bits taken as unsigned numbers."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        if kind == "index" and operator in "/%" and _is_power_of_two(lanes[1].number):
            return _by_bits(operator, lanes[0], lanes[1].number)
        a, b = (as_unsigned(p, kind, lane) for lane in lanes)
        result = infix(operator, precedence, a, b)
        return cast_to(p.type_of(kind), result)._replace(
            unsigned=result if kind not in ("i8", "i16") else None, natural=kind == "index"
        )

    return lanewise(template)


def _is_power_of_two(number: int | None) -> TypeGuard[int]:
    return number is not None and number > 0 and number & (number - 1) == 0


def _by_bits(operator: str, a: Expr, b: int) -> Expr:
    """Return the quotient or remainder of an index, which is not negative, by a power of two."""
    sign, precedence, bits = (">>", SHIFT, b.bit_length() - 1) if operator == "/" else ("&", AND, b - 1)
    return Expr(f"{a.at_least(UNARY)} {sign} {bits}", precedence, a.reads, natural=True)


def as_unsigned(p: KernelPrinter, kind: str, value: Expr) -> Expr:
    """Return a value's bits as an unsigned number."""
    if value.unsigned is not None:
        return value.unsigned
    if value.number is not None and value.number >= 0 and p.type_of(kind) == "int":
        return Expr(f"{value.number}u", number=value.number)
    return cast_to(unsigned_type(p, kind), value)


def unsigned_type(p: KernelPrinter, kind: str) -> str:
    """Return the unsigned integer type of a kind's width."""
    name = p.type_of(kind)
    return "unsigned" if name == "int" else f"unsigned {name.removeprefix('signed ')}"


def function(name: str) -> Handler:
    """Handle a function of the math library."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        return math_call(p, name, kind, lanes)

    return lanewise(template)


def _exponential(p: KernelPrinter, op: Operation) -> None:
    """Print an exponential, approximated by the device where the operation allows it and the language has a word."""
    assert isinstance(op, math.ExpOp)
    name = "exp"
    if FastMathFlag.APPROX_FUNC in op.fastmath.data and kernel.element_of(op.result.type) == f32:
        name = p.language.fast_exponential(p.helpers) or name
    (function(name) if name == "exp" else _named(name))(p, op)


def _named(name: str) -> Handler:
    """Handle a call of a function by its full name."""
    return lanewise(lambda p, kind, lanes: call(name, *lanes))


def math_call(p: KernelPrinter, name: str, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return a call of the math library; half precision is computed in single."""
    if kind not in NARROW_FLOATS:
        return call(p.language.function(name, kind), *lanes)
    wide = [p.language.convert(lane, kind, "f32", p.long_index) for lane in lanes]
    return p.language.convert(call(p.language.function(name, "f32"), *wide), "f32", kind, p.long_index)


def helper(name: str, unsigned_operands: bool = False) -> Handler:
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
    source, result = kind_of(op.operands[0].type), kind_of(op.results[0].type)
    p.type_of(result)
    lanes = p.lanes(op.operands[0])
    if source == "i1" and result != "i1":
        minus, zero = p.literal(-1, result), p.literal(0, result)
        p.define(op.results[0], [ternary(lane, minus, zero) for lane in lanes])
        return
    p.define(op.results[0], [p.language.convert(lane, source, result, p.long_index) for lane in lanes])


def unsigned_conversion(p: KernelPrinter, op: Operation) -> None:
    """Handle extui and uitofp: the operand's bits are an unsigned number."""
    source, result = kind_of(op.operands[0].type), kind_of(op.results[0].type)
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
    source, result = kind_of(op.operands[0].type), kind_of(op.results[0].type)
    lanes = p.lanes(op.operands[0])
    if source in NARROW_FLOATS:
        lanes = tuple(p.language.convert(lane, source, "f32", p.long_index) for lane in lanes)
    unsigned_name, name = unsigned_type(p, result), p.type_of(result)
    p.define(op.results[0], [cast_to(name, p.language.float_to_unsigned(unsigned_name, lane)) for lane in lanes])


def truncation(p: KernelPrinter, op: Operation) -> None:
    """Handle trunci: the low bits; of a truth value the lowest."""
    result = kind_of(op.results[0].type)
    if result != "i1":
        conversion(p, op)
        return
    one = p.literal(1, kind_of(op.operands[0].type))
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
    kind, lanes = kind_of(result.type), kernel.lanes_of(result.type)
    p.define_literal(result, [p.literal(number, kind) for number in constant_lanes(value, lanes)])


def constant_lanes(value: Attribute, lanes: int) -> list[int | float]:
    """Return a constant's numbers."""
    if isinstance(value, IntegerAttr | FloatAttr):
        return [value.value.data] * lanes
    if isinstance(value, DenseIntOrFPElementsAttr):
        numbers = list(value.get_values())
        return [cast(float, number) for number in numbers * (lanes // len(numbers))]
    raise UnsupportedError(f"GPU backends print no constant {value}")


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def compare(p: KernelPrinter, op: Operation) -> None:
    """Handle cmpi, cmpf and lane comparisons."""
    a, b = op.operands
    kind = kind_of(a.type)
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


def exclusive_or(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return `a ^ b`; of a truth value and true `!a`."""
    a, b = lanes
    if kind != "i1":
        joined = infix("^", XOR, a, b)
        return cut(p, kind, joined)
    return negated(a) if b.text == "true" else infix("!=", EQUALITY, a, b)


def logical(operator: str, precedence: int, on_truth: int) -> Handler:
    """Handle and, or: of truth values the short-circuit forms."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if kind == "i1":
            return infix(operator * 2, on_truth, a, b, associative=True)
        joined = infix(operator, precedence, a, b, associative=True)
        return cut(p, kind, joined)

    return lanewise(template)


def broadcast(p: KernelPrinter, op: Operation) -> None:
    """Handle a scalar in every lane."""
    lanes = p.atoms(op.operands[0])
    p.define(op.results[0], lanes * (kernel.lanes_of(op.results[0].type) // len(lanes)))


_JOINS: dict[str, type[Operation]] = {
    "maximumf": arith.MaximumfOp,
    "minimumf": arith.MinimumfOp,
    "maxnumf": arith.MaxnumfOp,
    "minnumf": arith.MinnumfOp,
}
_JOIN_SIGNS = {"add": ("+", ADD), "mul": ("*", MULTIPLY), "and": ("&", AND), "or": ("|", OR), "xor": ("^", XOR)}


def reduction(p: KernelPrinter, op: Operation) -> None:
    """Handle a vector's lanes joined into one, pairwise."""
    source, *accumulators = op.operands
    name = str(cast(vector.CombiningKindAttr, op.properties["kind"]).data)
    lanes = [*p.lanes(source), *(lane for a in accumulators for lane in p.lanes(a))]
    kind = kind_of(source.type)
    while len(lanes) > 1:
        pairs = [_join(p, name, kind, lanes[i], lanes[i + 1]) for i in range(0, len(lanes) - 1, 2)]
        lanes = pairs + lanes[len(lanes) & ~1 :]
    p.define(op.results[0], lanes)


def _join(p: KernelPrinter, name: str, kind: str, a: Expr, b: Expr) -> Expr:
    if name in _JOIN_SIGNS:
        sign, precedence = _JOIN_SIGNS[name]
        return wrapped(p, sign, precedence, kind, a, b)
    if name in _JOINS:
        return p.language.extremum(p.helpers, name, kind, a, b)
    if name in ("maxsi", "minsi", "maxui", "minui"):
        a, b = (x if x.text.isidentifier() else p.variable(kind, "v", x) for x in (a, b))
        compared = (a, b) if name.endswith("si") else (as_unsigned(p, kind, a), as_unsigned(p, kind, b))
        return ternary(infix(">" if name.startswith("max") else "<", RELATION, *compared), a, b)
    raise UnsupportedError(f"GPU backends reduce no vector by {name}")


def extract(p: KernelPrinter, op: Operation) -> None:
    """Handle one lane of a vector, known when compiling."""
    if len(op.operands) > 1:
        raise UnsupportedError("GPU backends take out lanes at known places only")
    p.define(op.results[0], [p.lanes(op.operands[0])[integers(op, "static_position")[0]]])


def insert(p: KernelPrinter, op: Operation) -> None:
    """Handle a vector with one lane replaced, known when compiling."""
    if len(op.operands) > 2:
        raise UnsupportedError("GPU backends replace lanes at known places only")
    lanes = list(p.lanes(op.operands[1]))
    lanes[integers(op, "static_position")[0]] = p.scalar(op.operands[0])
    p.define(op.results[0], lanes)


def shuffle_lanes(p: KernelPrinter, op: Operation) -> None:
    """Handle a choice of lanes of two vectors."""
    both = (*p.atoms(op.operands[0]), *p.atoms(op.operands[1]))
    p.define(op.results[0], [both[max(pick, 0)] for pick in integers(op, "mask")])


def integers(op: Operation, name: str) -> tuple[int, ...]:
    """Return the numbers of an array property."""
    return cast("DenseArrayBase[IntegerType]", op.properties[name]).get_values()


def fused(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return `a * b + c`, rounded once."""
    return p.language.fma(p.helpers, kind, lanes)


def extremum(name: str) -> Handler:
    """Handle float min and max."""
    return lanewise(lambda p, kind, lanes: p.language.extremum(p.helpers, name, kind, *lanes))


def _absolute_integer(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    (a,) = lanes
    return ternary(infix("<", RELATION, a, Expr("0")), wrapped(p, "-", ADD, kind, p.literal(0, kind), a), a)


def _lane_numbers(p: KernelPrinter, op: Operation) -> None:
    p.define_literal(op.results[0], [p.literal(n, "index") for n in range(kernel.lanes_of(op.results[0].type))])


def _mask(p: KernelPrinter, op: Operation) -> None:
    assert isinstance(op, kernel.MaskOp)
    (start,) = p.atoms(op.start)
    lanes = []
    for lane in range(kernel.lanes_of(op.result.type)):
        lanes.append(index.compare(">=", RELATION, start, index.literal(-lane * op.step.data)))
    p.define(op.result, lanes)


def _bitcast(p: KernelPrinter, op: Operation) -> None:
    source, result = kind_of(op.operands[0].type), kind_of(op.results[0].type)
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
    vector.FMAOp: lanewise(fused),
    vector.BroadcastOp: broadcast,
    vector.ReductionOp: reduction,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    vector.ShuffleOp: shuffle_lanes,
    vector.BitcastOp: _bitcast,
    kernel.LanesOp: _lane_numbers,
    kernel.MaskOp: _mask,
    **{
        operation: function(name)
        for operation, name in (
            *((math.AbsFOp, "fabs"), (math.CeilOp, "ceil"), (math.FloorOp, "floor"), (math.RoundOp, "round")),
            *((math.RoundEvenOp, "rint"), (math.TruncOp, "trunc"), (math.SqrtOp, "sqrt"), (math.RsqrtOp, "rsqrt")),
            *((math.CopySignOp, "copysign"), (math.Exp2Op, "exp2"), (math.ExpM1Op, "expm1")),
            *((math.LogOp, "log"), (math.Log2Op, "log2"), (math.Log10Op, "log10"), (math.Log1pOp, "log1p")),
            *((math.TanhOp, "tanh"), (math.ErfOp, "erf"), (math.SinOp, "sin"), (math.CosOp, "cos")),
            *((math.TanOp, "tan"), (math.SinhOp, "sinh"), (math.CoshOp, "cosh"), (math.AsinOp, "asin")),
            *((math.AcosOp, "acos"), (math.AtanOp, "atan"), (math.AtanhOp, "atanh"), (math.AcoshOp, "acosh")),
            *((math.AsinhOp, "asinh"), (math.Atan2Op, "atan2"), (math.PowFOp, "pow"), (math.CbrtOp, "cbrt")),
        )
    },
}
