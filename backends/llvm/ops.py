"""Arithmetic, mathematics and vector operations as LLVM text: a table from operation to instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.kernel import FLOAT_PREDICATES as _CMPF
from ...dialects.kernel import INTEGER_PREDICATES as _CMPI
from ..unsupported import UnsupportedError
from .float_division import divide
from .function import Function
from .math import POLYNOMIALS, polynomial
from .memory import splat
from .saturation import saturated
from .types import constant_text, float_text, lanes_of, shape_text, splat_text

Handler = Callable[[Function, Operation], None]


def _constant(f: Function, op: Operation) -> None:
    f.names[op.results[0]] = constant_text(op.properties["value"], op.results[0].type)


def _binary(instruction: str, on_index: str = "") -> Handler:
    """Handle `a op b`; `on_index` replaces the instruction for addresses, which do not overflow."""

    def emit(f: Function, op: Operation) -> None:
        a, b = op.operands
        kind = f.type(a.type)
        text = on_index if on_index and isinstance(a.type, IndexType) else instruction
        f.names[op.results[0]] = f.put(f"{text} {kind} {f.names[a]}, {f.names[b]}")

    return emit


def _intrinsic(name: str, *more: tuple[str, str]) -> Handler:
    """Handle an operation that is `llvm.<name>` on its operands, then on `more`."""

    def emit(f: Function, op: Operation) -> None:
        kind = f.type(op.results[0].type)
        arguments = [(kind, f.names[a]) for a in op.operands]
        f.names[op.results[0]] = f.intrinsic(name, kind, [kind], *arguments, *more)

    return emit


def _extremum(name: str) -> Handler:
    """Handle maximumf and minimumf: NaN if either is; zeros as NumPy, for which both are one.

    The second operand where it is NaN, else the larger one, which is the first where that is NaN, as x86 compares. A
    reduction has its new term second, so that only comparisons wait for one another: `llvm.maximum` asks for a NaN in
    the first (5x5 windows of 256x20x20, padded in a cache: 102 us of a Zen 5 for 147). Constants are left to it,
    as it knows that they are none.
    """
    larger = {"maximum": "ogt", "minimum": "olt"}[name]

    def emit(f: Function, op: Operation) -> None:
        kind, lanes = f.type(op.results[0].type), lanes_of(op.results[0].type)
        first, second = (f.names[operand] for operand in op.operands)
        if not first.startswith("%") or not second.startswith("%"):
            symbol = f.declared(name, kind, kind, kind)
            f.names[op.results[0]] = f.put(f"call nsz {kind} {symbol}({kind} {first}, {kind} {second})")
            return
        truth = "i1" if lanes is None else shape_text(lanes, "i1")
        above = f.put(f"fcmp {larger} {kind} {second}, {first}")
        known = f.put(f"fcmp ord {kind} {second}, {second}")
        chosen = f.put(f"select {truth} {above}, {kind} {second}, {kind} {first}")
        f.names[op.results[0]] = f.put(f"select {truth} {known}, {kind} {chosen}, {kind} {second}")

    return emit


def _cast(instruction: str) -> Handler:
    def emit(f: Function, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        before, after = f.type(source.type), f.type(result.type)
        value = f.names[source]
        f.names[result] = value if before == after else f.put(f"{instruction} {before} {value} to {after}")

    return emit


def _truncate(f: Function, op: Operation) -> None:
    """Handle truncf; double to half goes through single rounded to odd, which keeps the result correctly rounded."""
    source, result = op.operands[0], op.results[0]
    before, after = f.type(source.type), f.type(result.type)
    value = f.names[source]
    if "double" in before and "half" in after:
        value, before = round_to_odd(f, value, before), before.replace("double", "float")
    f.names[result] = value if before == after else f.put(f"fptrunc {before} {value} to {after}")


def round_to_odd(f: Function, value: str, kind: str) -> str:
    single, integer = kind.replace("double", "float"), kind.replace("double", "i32")
    truth = kind.replace("double", "i1")
    lanes = int(kind[1:].partition(" ")[0]) if kind[0] == "<" else None
    near = f.put(f"fptrunc {kind} {value} to {single}")
    back = f.put(f"fpext {single} {near} to {kind}")
    inexact = f.put(f"fcmp one {kind} {back}, {value}")
    sizes = [f.intrinsic("fabs", kind, [kind], (kind, v)) for v in (back, value)]
    above = f.put(f"fcmp ogt {kind} {sizes[0]}, {sizes[1]}")
    bits = f.put(f"bitcast {single} {near} to {integer}")
    lowered = f.put(f"sub {integer} {bits}, {f.put(f'zext {truth} {above} to {integer}')}")
    odd = f.put(f"or {integer} {lowered}, {splat_text('1', 'i32', lanes)}")
    chosen = f.put(f"select {truth} {inexact}, {integer} {odd}, {integer} {bits}")
    return f.put(f"bitcast {integer} {chosen} to {single}")


def _to_integer(name: str) -> Handler:
    """Handle float to integer: toward zero, saturating, NaN to 0."""

    def emit(f: Function, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        before, after = f.type(source.type), f.type(result.type)
        value, lanes = f.names[source], lanes_of(source.type)
        if lanes is None or lanes == 1:
            f.names[result] = f.intrinsic(name, after, [after, before], (before, value))
        else:
            f.names[result] = saturated(f, value, (before, after), lanes, name == "fptosi.sat")

    return emit


def _index_cast(f: Function, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    before, after = f.type(source.type), f.type(result.type)
    value, instruction = f.names[source], "trunc" if _bits(after) < _bits(before) else "sext"
    f.names[result] = value if before == after else f.put(f"{instruction} {before} {value} to {after}")


def _bits(text: str) -> int:
    return int(text.rstrip(">").rpartition("i")[2])


def _floordiv(f: Function, op: Operation) -> None:
    a, b, kind, q, inexact = _divided(f, op)
    differ = f.put(f"icmp slt {kind} {f.put(f'xor {kind} {a}, {b}')}, {_zero(op)}")
    _step(f, op, kind, q, "sub", f.put(f"and {_truth(op)} {inexact}, {differ}"))


def _ceildiv(f: Function, op: Operation) -> None:
    a, b, kind, q, inexact = _divided(f, op)
    alike = f.put(f"icmp sge {kind} {f.put(f'xor {kind} {a}, {b}')}, {_zero(op)}")
    _step(f, op, kind, q, "add", f.put(f"and {_truth(op)} {inexact}, {alike}"))


def _divided(f: Function, op: Operation) -> tuple[str, str, str, str, str]:
    a, b = f.names[op.operands[0]], _divisor(f, op, signed=True)
    kind = f.type(op.results[0].type)
    q = f.put(f"sdiv {kind} {a}, {b}")
    r = f.put(f"srem {kind} {a}, {b}")
    return a, b, kind, q, f.put(f"icmp ne {kind} {r}, {_zero(op)}")


def _divisor(f: Function, op: Operation, signed: bool) -> str:
    """Return the divisor, 1 for one that traps: 0, which lanes hold that a mask leaves out, and -1 below the least.

    The least number by 1 is what its quotient by -1 goes around to. Addresses divide by what is neither.
    """
    dividend, b = (f.names[operand] for operand in op.operands)
    given = op.operands[1].type
    lanes, kind = lanes_of(given), f.type(given)
    if lanes is None and isinstance(given, IndexType):
        return b
    element = kind.rpartition(" ")[2].rstrip(">")

    def number(value: int) -> str:
        return str(value) if lanes is None else splat_text(str(value), element, lanes)

    traps = f.put(f"icmp eq {kind} {b}, {number(0)}")
    if signed:
        minus, least = (
            f.put(f"icmp eq {kind} {value}, {number(n)}") for value, n in ((b, -1), (dividend, -(1 << _bits(kind) - 1)))
        )
        traps = f.put(f"or {_truth(op)} {traps}, {f.put(f'and {_truth(op)} {minus}, {least}')}")
    return f.put(f"select {_truth(op)} {traps}, {kind} {number(1)}, {kind} {b}")


def _division(instruction: str) -> Handler:
    def emit(f: Function, op: Operation) -> None:
        kind, divisor = f.type(op.results[0].type), _divisor(f, op, instruction.startswith("s"))
        f.names[op.results[0]] = f.put(f"{instruction} {kind} {f.names[op.operands[0]]}, {divisor}")

    return emit


def _step(f: Function, op: Operation, kind: str, q: str, direction: str, condition: str) -> None:
    one = f.put(f"zext {_truth(op)} {condition} to {kind}")
    f.names[op.results[0]] = f.put(f"{direction} {kind} {q}, {one}")


def _zero(op: Operation) -> str:
    return "0" if lanes_of(op.results[0].type) is None else "zeroinitializer"


def _truth(op: Operation) -> str:
    lanes = lanes_of(op.operands[0].type)
    return "i1" if lanes is None else f"<{lanes} x i1>"


def _compare(instruction: str, predicates: tuple[str, ...]) -> Handler:
    def emit(f: Function, op: Operation) -> None:
        a, b = op.operands
        predicate = predicates[cast(IntegerAttr, op.properties["predicate"]).value.data]
        text = f"{instruction} {predicate} {f.type(a.type)} {f.names[a]}, {f.names[b]}"
        f.names[op.results[0]] = f.put(text)

    return emit


def _compare_lanes(f: Function, op: Operation) -> None:
    assert isinstance(op, kernel.CompareOp)
    a, b = op.operands
    instruction = "fcmp" if isinstance(kernel.element_of(a.type), AnyFloat) else "icmp"
    text = f"{instruction} {op.predicate.data} {f.type(a.type)} {f.names[a]}, {f.names[b]}"
    f.names[op.results[0]] = f.put(text)


def _convert_lanes(f: Function, op: Operation) -> None:
    assert isinstance(op, kernel.ConvertOp)
    HANDLERS[kernel.CONVERSIONS[op.conversion.data]](f, op)


def _select(f: Function, op: Operation) -> None:
    condition, a, b = op.operands
    kind = f.type(a.type)
    text = f"select {f.type(condition.type)} {f.names[condition]}, {kind} {f.names[a]}, {kind} {f.names[b]}"
    f.names[op.results[0]] = f.put(text)


def _negate(f: Function, op: Operation) -> None:
    f.names[op.results[0]] = f.put(f"fneg {f.type(op.results[0].type)} {f.names[op.operands[0]]}")


def _broadcast(f: Function, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    if lanes_of(source.type) is not None:
        raise UnsupportedError("the LLVM backend broadcasts scalars only")
    kind = f.type(result.type)
    f.names[result] = splat(f, f.names[source], f.type(source.type), kind, lanes_of(result.type) or 1)


_REDUCTIONS = {
    "maximumf": "fmaximum",
    "minimumf": "fminimum",
    "maxnumf": "fmax",
    "minnumf": "fmin",
    "maxsi": "smax",
    "minsi": "smin",
    "maxui": "umax",
    "minui": "umin",
}
_JOIN_INTRINSICS = {
    "maximumf": "maximum",
    "minimumf": "minimum",
    "maxnumf": "maxnum",
    "minnumf": "minnum",
    "maxsi": "smax",
    "minsi": "smin",
    "maxui": "umax",
    "minui": "umin",
}


def _reduction(f: Function, op: Operation) -> None:
    source, *accumulators = op.operands
    kind, result = f.type(source.type), f.type(op.results[0].type)
    name = str(cast(vector.CombiningKindAttr, op.properties["kind"]).data)
    accumulator = f.names[accumulators[0]] if accumulators else None
    is_float = result[0] != "i"
    if is_float and name in ("add", "mul"):
        identity = splat_text("-0.0" if name == "add" else "1.0", result, None)
        symbol = f.declared(f"vector.reduce.f{name}", result, result, kind, overloads=[kind])
        text = f"call reassoc {result} {symbol}({result} {accumulator or identity}, {kind} {f.names[source]})"
        f.names[op.results[0]] = f.put(text)
        return
    flags = "nsz " if name in ("maximumf", "minimumf") else ""
    symbol = f.declared(f"vector.reduce.{_REDUCTIONS.get(name, name)}", result, kind, overloads=[kind])
    value = f.put(f"call {flags}{result} {symbol}({kind} {f.names[source]})")
    if accumulator is not None and name in _JOIN_INTRINSICS:
        symbol = f.declared(_JOIN_INTRINSICS[name], result, result, result)
        value = f.put(f"call {flags}{result} {symbol}({result} {accumulator}, {result} {value})")
    elif accumulator is not None:
        value = f.put(f"{name} {result} {accumulator}, {value}")
    f.names[op.results[0]] = value


def _extract(f: Function, op: Operation) -> None:
    source, *places = op.operands
    place = _position(f, op, "static_position", places)
    f.names[op.results[0]] = f.put(f"extractelement {f.type(source.type)} {f.names[source]}, i64 {place}")


def _insert(f: Function, op: Operation) -> None:
    scalar, source, *places = op.operands
    place = _position(f, op, "static_position", places)
    kind = f.type(source.type)
    text = f"insertelement {kind} {f.names[source]}, {f.type(scalar.type)} {f.names[scalar]}, i64 {place}"
    f.names[op.results[0]] = f.put(text)


def _position(f: Function, op: Operation, name: str, places: list[SSAValue]) -> str:
    if places:
        return f.names[places[0]]
    return str(kernel.numbers_of(op, name)[0])


def _shuffle(f: Function, op: Operation) -> None:
    a, b = op.operands
    picks = kernel.numbers_of(op, "mask")
    order = ", ".join(f"i32 {pick}" if pick >= 0 else "i32 poison" for pick in picks)
    text = f"shufflevector {f.type(a.type)} {f.names[a]}, {f.type(b.type)} {f.names[b]}"
    f.names[op.results[0]] = f.put(f"{text}, <{len(picks)} x i32> <{order}>")


def _add(f: Function, op: Operation) -> None:
    """Handle a sum; that of one and an erf that nothing else reads is a function of its own."""
    kind = f.type(op.results[0].type)
    for one, other in zip(op.operands, reversed(op.operands), strict=True):
        erf = other.owner
        if kind.endswith(("float", "float>")) and isinstance(erf, math.ErfOp) and other.has_one_use():
            lanes = lanes_of(one.type)
            if f.names[one] == splat_text(float_text(1.0, "float"), "float", lanes) and lanes != 1:
                f.names[op.results[0]] = _apply(f, "one_plus_erf", kind, [f.names[erf.operands[0]]])
                return
    _binary("fadd contract")(f, op)


def _math(name: str) -> Handler:
    """Handle a function: a polynomial in single precision, else `llvm.<name>`, which is libm lane by lane."""

    def emit(f: Function, op: Operation) -> None:
        f.names[op.results[0]] = _in_single(f, op, lambda kind, values: _apply(f, name, kind, values))

    return emit


def _in_single(f: Function, op: Operation, compute: Callable[[str, list[str]], str]) -> str:
    """Return `compute(type, operands)`, half precision done in single."""
    kind = f.type(op.results[0].type)
    values = [f.names[operand] for operand in op.operands]
    if "half" not in kind:
        return compute(kind, values)
    wide = kind.replace("half", "float")
    values = [f.put(f"fpext {kind} {value} to {wide}") for value in values]
    return f.put(f"fptrunc {wide} {compute(wide, values)} to {kind}")


def _apply(f: Function, name: str, kind: str, values: list[str]) -> str:
    lanes = int(kind[1:].partition(" ")[0]) if kind[0] == "<" else None
    if name in POLYNOMIALS and "float" in kind and lanes != 1:
        symbol, texts = polynomial(name, lanes or 1, f.module.has_avx512)
        f.module.symbols.update(texts)
        return f.put(f"call {kind} {symbol}({kind} {values[0]})")
    if name in _NO_INTRINSIC:
        return _lane_by_lane(f, name, kind, lanes, values)
    return f.intrinsic(name, kind, [kind], *((kind, value) for value in values))


_NO_INTRINSIC = ("erf", "expm1", "log1p", "cbrt", "acosh", "asinh", "atanh")


def _lane_by_lane(f: Function, name: str, kind: str, lanes: int | None, values: list[str]) -> str:
    element = kind.rpartition(" ")[2].rstrip(">")
    symbol = f"@{name}" if element == "double" else f"@{name}f"
    if lanes is None:
        return f.call(element, symbol, *((element, value) for value in values))
    result = "poison"
    for lane in range(lanes):
        scalars = [f.put(f"extractelement {kind} {value}, i32 {lane}") for value in values]
        value = f.call(element, symbol, *((element, scalar) for scalar in scalars))
        result = f.put(f"insertelement {kind} {result}, {element} {value}, i32 {lane}")
    return result


def _rsqrt(f: Function, op: Operation) -> None:
    def compute(kind: str, values: list[str]) -> str:
        root = f.intrinsic("sqrt", kind, [kind], (kind, values[0]))
        lanes = int(kind[1:].partition(" ")[0]) if kind[0] == "<" else None
        element = kind.rpartition(" ")[2].rstrip(">")
        return f.put(f"fdiv {kind} {splat_text('1.0', element, lanes)}, {root}")

    f.names[op.results[0]] = _in_single(f, op, compute)


HANDLERS: dict[type[Operation], Handler] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: _binary("add", "add nsw"),
    arith.SubiOp: _binary("sub", "sub nsw"),
    arith.MuliOp: _binary("mul", "mul nsw"),
    arith.DivSIOp: _division("sdiv"),
    arith.DivUIOp: _division("udiv"),
    arith.RemSIOp: _division("srem"),
    arith.RemUIOp: _division("urem"),
    arith.FloorDivSIOp: _floordiv,
    arith.CeilDivSIOp: _ceildiv,
    arith.AndIOp: _binary("and"),
    arith.OrIOp: _binary("or"),
    arith.XOrIOp: _binary("xor"),
    arith.ShLIOp: _binary("shl"),
    arith.ShRSIOp: _binary("ashr"),
    arith.ShRUIOp: _binary("lshr"),
    arith.MaxSIOp: _intrinsic("smax"),
    arith.MinSIOp: _intrinsic("smin"),
    arith.MaxUIOp: _intrinsic("umax"),
    arith.MinUIOp: _intrinsic("umin"),
    arith.AddfOp: _add,
    arith.SubfOp: _binary("fsub contract"),
    arith.MulfOp: _binary("fmul contract"),
    arith.DivfOp: divide,
    arith.NegfOp: _negate,
    arith.MaximumfOp: _extremum("maximum"),
    arith.MinimumfOp: _extremum("minimum"),
    arith.MaxnumfOp: _intrinsic("maxnum"),
    arith.MinnumfOp: _intrinsic("minnum"),
    arith.CmpiOp: _compare("icmp", _CMPI),
    arith.CmpfOp: _compare("fcmp", _CMPF),
    kernel.CompareOp: _compare_lanes,
    kernel.ConvertOp: _convert_lanes,
    kernel.SelectOp: _select,
    arith.SelectOp: _select,
    arith.ExtFOp: _cast("fpext"),
    arith.TruncFOp: _truncate,
    arith.ExtSIOp: _cast("sext"),
    arith.ExtUIOp: _cast("zext"),
    arith.TruncIOp: _cast("trunc"),
    arith.SIToFPOp: _cast("sitofp"),
    arith.UIToFPOp: _cast("uitofp"),
    arith.FPToSIOp: _to_integer("fptosi.sat"),
    arith.FPToUIOp: _to_integer("fptoui.sat"),
    arith.BitcastOp: _cast("bitcast"),
    arith.IndexCastOp: _index_cast,
    math.AbsFOp: _intrinsic("fabs"),
    math.AbsIOp: _intrinsic("abs", ("i1", "false")),
    math.CeilOp: _intrinsic("ceil"),
    math.FloorOp: _intrinsic("floor"),
    math.RoundOp: _intrinsic("round"),
    math.RoundEvenOp: _intrinsic("roundeven"),
    math.TruncOp: _intrinsic("trunc"),
    math.SqrtOp: _intrinsic("sqrt"),
    math.CopySignOp: _intrinsic("copysign"),
    math.FmaOp: _math("fma"),
    math.CtPopOp: _intrinsic("ctpop"),
    math.RsqrtOp: _rsqrt,
    math.PowFOp: _math("pow"),
    vector.FMAOp: _math("fma"),
    vector.BroadcastOp: _broadcast,
    vector.ReductionOp: _reduction,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ShuffleOp: _shuffle,
    vector.BitcastOp: _cast("bitcast"),
    **{
        op: _math(op.name.partition(".")[2])
        for op in (
            *(math.ExpOp, math.Exp2Op, math.ExpM1Op, math.LogOp, math.Log2Op, math.Log10Op, math.Log1pOp),
            *(math.TanhOp, math.ErfOp, math.SinOp, math.CosOp, math.TanOp, math.SinhOp, math.CoshOp),
            *(math.AsinOp, math.AcosOp, math.AtanOp, math.Atan2Op, math.AcoshOp, math.AsinhOp, math.AtanhOp),
            math.CbrtOp,
        )
    },
}


def unsupported(op: Operation) -> UnsupportedError:
    """Return the error that says what cannot be printed."""
    return UnsupportedError(f"the LLVM backend cannot print {op.name}: {_first_line(op)}")


def _first_line(op: Operation) -> str:
    return str(op).partition("\n")[0]
