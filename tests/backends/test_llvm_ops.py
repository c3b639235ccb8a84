"""Each arith, math and vector operation through LLVM against NumPy, and against the kernel interpreter."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kernel_elements import DTYPE, FLOAT_BINARY, FLOAT_UNARY, FLOATS, INTEGER_BINARY, INTEGERS, sample
from outputs import one
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp, VectorType, i1
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter

from loopwright.backends.build import build
from loopwright.backends.context import create_context
from loopwright.backends.unsupported import UnsupportedError
from loopwright.dialects.element import DTYPES, dtype_name
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.target import Target

TARGET = Target(vector_bytes=64)
SHAPES = [None, 5, 16]


def parse(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def program(body: str, inputs: Sequence[str], output: str, lanes: int | None, size: int = 16) -> str:
    """Return a kernel that loads x0, x1, ... (memory types given), runs `body`, which defines %r, and stores it."""
    arguments = [f'%a{n} : memref<{size}x{t}> {{lw.name = "a{n}"}}' for n, t in enumerate(inputs)]
    arguments.append(f'%out : memref<{size}x{output}> {{lw.name = "out", lw.output}}')
    lines = [f"func.func @op({', '.join(arguments)}) {{", "%zero = arith.constant 0 : index"]
    shaped = [f"vector<{lanes}x{t}>" if lanes else t for t in (*inputs, output)]
    for start in range(0, size - (lanes or 1) + 1, lanes or 1):
        for n, t in enumerate(inputs):
            lines.append(f"%x{n}s{start} = lw_kernel.load %a{n}[%zero + {start}] : memref<{size}x{t}> -> {shaped[n]}")
        for line in body.splitlines():
            for name in ("x0", "x1", "x2", "r", "c", "d"):
                line = re.sub(rf"%{name}\b", f"%{name}s{start}", line)
            lines.append(line)
        lines.append(f"lw_kernel.store %rs{start}, %out[%zero + {start}] : {shaped[-1]}, memref<{size}x{output}>")
    return "\n".join([*lines, "func.return", "}"])


def run(text: str, *arrays: np.ndarray, exact: bool = True, check_interpreter: bool = True) -> np.ndarray:
    """Run a program both ways; they must agree."""
    return run_module(parse(text), *arrays, exact=exact, check_interpreter=check_interpreter)


def run_module(module: ModuleOp, *arrays: np.ndarray, exact: bool = True, check_interpreter: bool = True) -> np.ndarray:
    result = one(build(module, TARGET)(*arrays))
    if check_interpreter:
        (expected,) = run_kernel(module, arrays)
        written = ~np.isnan(expected) if expected.dtype.kind == "f" else expected != np.iinfo(expected.dtype).min
        close(result[written], expected[written], exact)
    return result


def close(got: np.ndarray, expected: np.ndarray, exact: bool) -> None:
    assert got.dtype == expected.dtype
    if exact:
        np.testing.assert_array_equal(got, expected)
    else:
        tolerance = {2: 2e-3, 4: 5e-7, 8: 1e-15}[got.dtype.itemsize]
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=0)


def whole(lanes: int | None) -> slice:
    """The elements that a program with this many lanes writes."""
    return slice(0, 16 // (lanes or 1) * (lanes or 1))


def typed(kind: str, lanes: int | None) -> str:
    return f"vector<{lanes}x{kind}>" if lanes else kind


@pytest.mark.parametrize("lanes", SHAPES)
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", FLOAT_BINARY)
@pytest.mark.few(10)
def test_float_binary(op: str, kind: str, lanes: int | None) -> None:
    a, b = sample(kind, 1, special=True), sample(kind, 2, special=True)
    got = run(program(f"%r = {op} %x0, %x1 : {typed(kind, lanes)}", [kind, kind], kind, lanes), a, b)
    with np.errstate(all="ignore"):
        close(got[whole(lanes)], FLOAT_BINARY[op](a, b)[whole(lanes)], exact=True)


@pytest.mark.parametrize("lanes", SHAPES)
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", FLOAT_UNARY)
@pytest.mark.few(8)
def test_float_unary(op: str, kind: str, lanes: int | None) -> None:
    a = sample(kind, 3, special=True)
    got = run(program(f"%r = {op} %x0 : {typed(kind, lanes)}", [kind], kind, lanes), a)
    with np.errstate(all="ignore"):
        close(got[whole(lanes)], FLOAT_UNARY[op](a)[whole(lanes)], exact=True)


MATH: dict[str, tuple[Callable[..., Any], float, float]] = {
    "math.exp": (np.exp, -5, 5),
    "math.exp2": (np.exp2, -5, 5),
    "math.expm1": (np.expm1, 0.1, 2),
    "math.log": (np.log, 0.1, 0.9),
    "math.log2": (np.log2, 0.1, 0.9),
    "math.log10": (np.log10, 0.1, 0.9),
    "math.log1p": (np.log1p, 0.1, 3),
    "math.sin": (np.sin, -1.5, 1.5),
    "math.cos": (np.cos, -1.5, 1.5),
    "math.tan": (np.tan, -1.5, 1.5),
    "math.atan": (np.arctan, -3, 3),
    "math.sinh": (np.sinh, -2, 2),
    "math.cosh": (np.cosh, -2, 2),
    "math.tanh": (np.tanh, -4, 4),
    "math.cbrt": (np.cbrt, 0.1, 3),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 3),
}


@pytest.mark.parametrize("lanes", [None, 16])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", MATH)
@pytest.mark.few(12)
def test_function(op: str, kind: str, lanes: int | None) -> None:
    function, low, high = MATH[op]
    a = np.random.default_rng(4).uniform(low, high, 16).astype(DTYPE[kind])
    got = run(program(f"%r = {op} %x0 : {typed(kind, lanes)}", [kind], kind, lanes), a, check_interpreter=False)
    close(got, function(a.astype(np.float64)).astype(a.dtype), exact=False)


@pytest.mark.parametrize("lanes", [None, 16])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.few(3)
def test_power_and_fma(kind: str, lanes: int | None) -> None:
    a, b, c = (np.random.default_rng(n).uniform(0.5, 2, 16).astype(DTYPE[kind]) for n in (5, 6, 7))
    shape = typed(kind, lanes)
    got = run(program(f"%r = math.powf %x0, %x1 : {shape}", [kind] * 2, kind, lanes), a, b, exact=False)
    close(got, np.power(a, b), exact=False)
    text = program(f"%r = math.fma %x0, %x1, %x2 : {shape}", [kind] * 3, kind, lanes)
    close(run(text, a, b, c, exact=False), (a.astype(np.longdouble) * b + c).astype(a.dtype), exact=False)


@pytest.mark.parametrize("lanes", SHAPES)
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_BINARY)
@pytest.mark.few(14)
def test_integer_binary(op: str, kind: str, lanes: int | None) -> None:
    a, b = sample(kind, 8), sample(kind, 9)
    if "div" in op or "rem" in op:
        b = (b % 7 + 1).astype(b.dtype) * np.where(b < 0, -1, 1).astype(b.dtype)
    got = run(program(f"%r = {op} %x0, %x1 : {typed(kind, lanes)}", [kind, kind], kind, lanes), a, b)
    close(got[whole(lanes)], INTEGER_BINARY[op](a, b)[whole(lanes)], exact=True)


@pytest.mark.parametrize("lanes", SHAPES)
@pytest.mark.parametrize("op", ["shli", "shrsi", "shrui"])
def test_shifts(op: str, lanes: int | None) -> None:
    a, b = sample("i32", 10), np.arange(16, dtype=np.int32)
    text = program(f"%r = arith.{op} %x0, %x1 : {typed('i32', lanes)}", ["i32", "i32"], "i32", lanes)
    got = run(text, a, b, check_interpreter=op != "shrui")
    expected = {"shli": a << b, "shrsi": a >> b, "shrui": (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32)}[op]
    close(got[whole(lanes)], expected[whole(lanes)], exact=True)


CAST_OPS = {o.name: o for o in arith.Arith.operations}
CASTS = [
    *(("arith.extf", "f16", "f32"), ("arith.extf", "f32", "f64"), ("arith.extf", "f16", "f64")),
    *(("arith.truncf", "f32", "f16"), ("arith.truncf", "f64", "f32"), ("arith.truncf", "f64", "f16")),
    *(("arith.extsi", "i8", "i32"), ("arith.extsi", "i32", "i64"), ("arith.extui", "i8", "i32")),
    *(("arith.trunci", "i32", "i8"), ("arith.trunci", "i64", "i32")),
    *(("arith.sitofp", "i32", "f32"), ("arith.sitofp", "i8", "f16"), ("arith.sitofp", "i64", "f64")),
    *(("arith.uitofp", "i8", "f32"), ("arith.fptosi", "f32", "i32"), ("arith.fptosi", "f64", "i8")),
    *(("arith.fptosi", "f16", "i64"), ("arith.bitcast", "f32", "i32")),
]


def casting(op: str, before: str, after: str, lanes: int | None) -> ModuleOp:
    """A kernel that casts; xDSL's own parser takes these operations on scalars only."""
    cast = "builtin.unrealized_conversion_cast"
    text = program(f"%r = {cast} %x0 : {typed(before, lanes)} to {typed(after, lanes)}", [before], after, lanes)
    module = parse(text)
    for stand_in in [o for o in module.walk() if isinstance(o, UnrealizedConversionCastOp)]:
        types = [result.type for result in stand_in.results]
        Rewriter.replace_op(stand_in, CAST_OPS[op].create(operands=list(stand_in.operands), result_types=types))
    return module


@pytest.mark.parametrize("lanes", SHAPES)
@pytest.mark.parametrize(("op", "before", "after"), CASTS)
@pytest.mark.few(28)
def test_casts(op: str, before: str, after: str, lanes: int | None) -> None:
    a = sample(before, 11, special=op == "arith.fptosi" or before == "f16")
    got = run_module(casting(op, before, after, lanes), a)[whole(lanes)]
    if op == "arith.fptosi":
        finite = np.isfinite(a[whole(lanes)])
        close(got[finite], a[whole(lanes)][finite].astype(DTYPE[after]), exact=True)
    elif op not in ("arith.bitcast", "arith.extui", "arith.uitofp"):
        close(got, a.astype(DTYPE[after])[whole(lanes)], exact=True)


@pytest.mark.parametrize("before", ["f16", "f32", "f64"])
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("lanes", [None, 1, 16])
@pytest.mark.few(24)
def test_integers_of_floats_saturate(before: str, element: str, signed: bool, lanes: int | None) -> None:
    """Toward zero, NaN to 0; lanes as numbers by themselves."""
    bits = int(element[1:])
    ends = [0.5, -0.5, 1.9, -1.9, 2.0**bits, -(2.0**bits), 2.0 ** (bits - 1), 2.0 ** (bits - 1) - 0.5]
    ends += [-(2.0 ** (bits - 1)) - 0.9, 3e9, -3e9, 1e30, -1e30, np.inf, -np.inf, np.nan]
    a = np.array(ends).clip(-np.finfo(DTYPE[before]).max, np.finfo(DTYPE[before]).max).astype(DTYPE[before])
    a[-3:-1] = np.inf, -np.inf
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    whole_numbers = [0 if np.isnan(x) else high if x >= high else low if x <= low else int(x) for x in a.tolist()]
    expected = np.array(whole_numbers, f"{'' if signed else 'u'}int{bits}")[whole(lanes)]
    module = casting("arith.fptosi" if signed else "arith.fptoui", before, element, lanes)
    got = run_module(module, a, check_interpreter=signed)[whole(lanes)]  # to which integers in memory have a sign
    np.testing.assert_array_equal(got, expected.view(got.dtype))


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
@pytest.mark.few(5)
def test_integer_comparison(predicate: str) -> None:
    a, b = np.repeat(np.arange(-2, 2, dtype=np.int32), 4), np.tile(np.arange(-2, 2, dtype=np.int32), 4)
    body = f"%c = arith.cmpi {predicate}, %x0, %x1 : i32\n%r = arith.select %c, %x0, %x1 : i32"
    got = run(program(body, ["i32", "i32"], "i32", None), a, b)
    x, y = (a.view(np.uint32), b.view(np.uint32)) if predicate[0] == "u" else (a, b)
    compare = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
    compare |= {"gt": np.greater, "ge": np.greater_equal}
    close(got, np.where(compare[predicate.lstrip("su")](x, y), a, b), exact=True)


@pytest.mark.parametrize("predicate", ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "une", "uno"])
@pytest.mark.few(6)
def test_float_comparison(predicate: str) -> None:
    a = np.repeat(np.array([-1, 0, np.nan, 2], np.float32), 4)
    b = np.tile(np.array([-1, 0, np.nan, 2], np.float32), 4)
    body = f"%c = arith.cmpf {predicate}, %x0, %x1 : f32\n%d = arith.extui %c : i1 to i32"
    body += "\n%r = arith.sitofp %d : i32 to f32"
    got = run(program(body, ["f32", "f32"], "f32", None), a, b)
    nan = np.isnan(a) | np.isnan(b)
    compare = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": ~nan & (a != b)}
    if predicate in ("ord", "uno"):
        expected = nan if predicate == "uno" else ~nan
    else:
        expected = compare[predicate[1:]] & ~nan if predicate[0] == "o" else compare[predicate[1:]] | nan
    close(got, expected.astype(np.float32), exact=True)


def test_vector_comparison_and_selection() -> None:
    """xDSL's arith compares scalars in text; the operations themselves carry vector types."""
    text = program("%r = arith.maximumf %x0, %x1 : vector<16xf32>", ["f32", "f32"], "f32", 16)
    module = parse(text)
    (maximum,) = (op for op in module.walk() if isinstance(op, arith.MaximumfOp))
    a, b = maximum.operands
    properties = arith.CmpfOp(a, b, "ogt").properties
    condition = arith.CmpfOp.create(operands=[a, b], result_types=[VectorType(i1, [16])], properties=properties)
    chosen = arith.SelectOp.create(operands=[condition.results[0], a, b], result_types=[a.type])
    block = maximum.parent_block()
    assert block is not None
    block.insert_ops_before([condition, chosen], maximum)
    maximum.results[0].replace_all_uses_with(chosen.results[0])
    x, y = sample("f32", 12), sample("f32", 13)
    close(one(build(module, TARGET)(x, y)), np.maximum(x, y), exact=True)
    close(run_kernel(module, [x, y])[0], np.maximum(x, y), exact=True)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.sum,
    "mul": np.prod,
    "maximumf": np.max,
    "minimumf": np.min,
    "maxsi": np.max,
    "minsi": np.min,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


REDUCED = [(name, kind) for name in ("add", "mul", "maximumf", "minimumf") for kind in ("f16", "f32", "f64")]
REDUCED += [(name, kind) for name in REDUCTIONS if not name.endswith("f") for kind in ("i8", "i32")]


@pytest.mark.parametrize("start", ["", ", %c "])
@pytest.mark.parametrize("lanes", [3, 16])
@pytest.mark.parametrize(("name", "kind"), REDUCED)
@pytest.mark.few(10)
def test_reduction(name: str, kind: str, lanes: int, start: str) -> None:
    floats = kind[0] == "f"
    a = sample(kind, 14)
    constant = f"arith.constant {'3.0' if floats else '3'} : {kind}"
    text = (
        f'func.func @op(%a : memref<16x{kind}> {{lw.name = "a"}}, %o : memref<1x{kind}> {{lw.output}}) {{\n'
        f"%zero = arith.constant 0 : index\n%c = {constant}\n"
        f"%x = lw_kernel.load %a[%zero] : memref<16x{kind}> -> vector<{lanes}x{kind}>\n"
        f"%r = vector.reduction <{name}>, %x{start} : vector<{lanes}x{kind}> into {kind}\n"
        f"lw_kernel.store %r, %o[%zero] : {kind}, memref<1x{kind}>\nfunc.return\n}}"
    )
    values = a[:lanes].tolist() + ([3.0 if floats else 3] if start else [])
    exact = not (floats and name in ("add", "mul"))
    got = build(parse(text), TARGET)(a)
    expected = REDUCTIONS[name](np.array(values, a.dtype if exact else np.float64))
    tolerance = {"f16": 2e-2, "f32": 1e-5, "f64": 1e-13}.get(kind, 0)
    np.testing.assert_allclose(got[0], np.array(expected).astype(a.dtype), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got, run_kernel(parse(text), [a])[0], rtol=tolerance, atol=tolerance)


def test_maximum_of_nan_is_nan_against_a_constant() -> None:
    body = "%r = arith.maximumf %x0, %c : vector<16xf32>"
    a = np.array([np.nan, -1, 2, -np.inf, np.inf, -0.0, 0, 1e-40] * 2, np.float32)
    text = program("%c = arith.constant dense<0.0> : vector<16xf32>\n" + body, ["f32"], "f32", 16)
    got = run(text, a)
    np.testing.assert_array_equal(got, np.maximum(a, np.float32(0)))


def test_shuffle_extract_insert_and_dense_constants() -> None:
    text = program(
        "%c = vector.shuffle %x0, %x1 [0, 9, 2, 11, 4, 13, 6, 15] : vector<8xf32>, vector<8xf32>\n"
        "%d = vector.extract %c[3] : f32 from vector<8xf32>\n"
        "%r = vector.insert %d, %x0 [0] : f32 into vector<8xf32>",
        ["f32", "f32"],
        "f32",
        8,
    )
    a, b = sample("f32", 15), sample("f32", 16)
    got = run(text, a, b)
    expected = a.copy()
    expected[0], expected[8] = b[3], b[11]
    close(got, expected, exact=True)
    values = ", ".join(f"{n}.5" for n in range(8))
    body = f"%c = arith.constant dense<[{values}]> : vector<8xf32>\n%r = arith.addf %x0, %c : vector<8xf32>"
    text = program(body, ["f32"], "f32", 8)
    close(run(text, a), a + np.tile(np.arange(8, dtype=np.float32) + np.float32(0.5), 2), exact=True)


def test_no_contraction_across_a_named_rounding() -> None:
    """Products and sums may fuse, as C compilers do; the result stays within one rounding of the separate ones."""
    a, b = sample("f32", 17), sample("f32", 18)
    body = "%c = arith.mulf %x0, %x1 : vector<16xf32>\n%r = arith.addf %c, %x0 : vector<16xf32>"
    got = run(program(body, ["f32", "f32"], "f32", 16), a, b, check_interpreter=False)
    np.testing.assert_allclose(got, a.astype(np.float64) * b + a, rtol=1e-6, atol=1e-6)


def test_unknown_operations_are_named() -> None:
    call = "func.call @op(%a) : (memref<4xf32>) -> ()"
    module = parse(f'func.func @op(%a : memref<4xf32> {{lw.name = "a", lw.output}}) {{\n{call}\nfunc.return\n}}')
    with pytest.raises(UnsupportedError, match=r"cannot print func\.call"):
        build(module, TARGET)


def test_dtype_names_cover_every_type_tested() -> None:
    assert {dtype_name(t) for t in DTYPES.values()} >= {np.dtype(t).name for t in DTYPE.values()}


@pytest.mark.parametrize("name", ["maximumf", "minimumf"])
@pytest.mark.parametrize("lanes", [None, 16])
def test_extremes_of_pairs_are_numpys(name: str, lanes: int | None) -> None:
    """NaN of either side comes through, whichever it is; infinities and zeros are ordered."""
    values = np.array([-np.inf, -2.5, 0.0, 1e-45, 3.0, np.inf, np.nan, -np.nan], np.float32)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    text = program(f"%r = arith.{name} %x0, %x1 : {typed('f32', lanes)}", ["f32", "f32"], "f32", lanes, len(a))
    expected = {"maximumf": np.maximum, "minimumf": np.minimum}[name](a, b)
    close(one(build(parse(text), TARGET)(a, b)), expected, exact=True)
