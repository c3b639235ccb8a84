"""Each arith, math and vector operation as OpenCL C against NumPy, and as CUDA C through the compiler."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu_programs import compile_cuda, elementwise, parse, run_opencl
from kernel_elements import DTYPE, FLOAT_BINARY, FLOAT_UNARY, FLOATS, INTEGER_BINARY, INTEGERS, sample

SIZE = 16


def plain(op: str) -> str:
    """An operation's name without its dialect's."""
    return op.partition(".")[2]


def check(
    bodies: dict[str, str],
    inputs: list[str],
    outputs: dict[str, str],
    lanes: int,
    arrays: list[np.ndarray],
    expected: dict[str, np.ndarray],
    rtol: float = 0.0,
) -> None:
    module = parse(elementwise(bodies, inputs, outputs, lanes, SIZE))
    for name, got in zip(bodies, run_opencl(module, *arrays), strict=True):
        assert got.dtype == DTYPE[outputs[name]]
        np.testing.assert_allclose(got, expected[name], rtol=rtol, atol=0, err_msg=name)
    compile_cuda(module, (75, 90) if lanes > 1 else (90,))


MATH: dict[str, Callable[..., Any]] = {
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.atan": np.arctan,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.cbrt": np.cbrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
}


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.few(2)
def test_float_arithmetic(kind: str, lanes: int) -> None:
    a, b = sample(kind, 1, special=True), sample(kind, 2, special=True)
    bodies = {plain(op): f"%r = {op} %x0, %x1 : $v{kind}$e" for op in FLOAT_BINARY}
    bodies |= {plain(op): f"%r = {op} %x0 : $v{kind}$e" for op in FLOAT_UNARY}
    with np.errstate(all="ignore"):
        expected = {plain(op): f(a, b) for op, f in FLOAT_BINARY.items()}
        expected |= {plain(op): f(a) for op, f in FLOAT_UNARY.items()}
    check(bodies, [kind, kind], dict.fromkeys(bodies, kind), lanes, [a, b], expected)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.few(1)
def test_functions(kind: str, lanes: int) -> None:
    a, b, c = (np.random.default_rng(n).uniform(0.2, 0.9, SIZE).astype(DTYPE[kind]) for n in (4, 5, 6))
    bodies = {plain(op): f"%r = {op} %x0 : $v{kind}$e" for op in MATH}
    bodies |= {"powf": f"%r = math.powf %x0, %x1 : $v{kind}$e", "fma": f"%r = math.fma %x0, %x1, %x2 : $v{kind}$e"}
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    expected = {plain(op): f(x) for op, f in MATH.items()} | {"powf": np.power(x, y), "fma": x * y + z}
    rtol = {"f16": 2e-3, "f32": 2e-6, "f64": 1e-14}[kind]
    check(bodies, [kind] * 3, dict.fromkeys(bodies, kind), lanes, [a, b, c], expected, rtol)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.few(2)
def test_integer_arithmetic(kind: str, lanes: int) -> None:
    a, b = sample(kind, 8), sample(kind, 9)
    b = (b % 7 + 1).astype(b.dtype) * np.where(b < 0, -1, 1).astype(b.dtype)
    bodies = {plain(op): f"%r = {op} %x0, %x1 : $v{kind}$e" for op in INTEGER_BINARY}
    expected = {plain(op): f(a, b) for op, f in INTEGER_BINARY.items()}
    if kind == "i32":
        c, unsigned = np.arange(SIZE, dtype=np.int32), a.view(np.uint32)
        bodies |= {op: f"%r = arith.{op} %x0, %x2 : $v{kind}$e" for op in ("shli", "shrsi", "shrui")}
        expected |= {"shli": a << c, "shrsi": a >> c, "shrui": (unsigned >> c.view(np.uint32)).view(np.int32)}
        check(bodies, [kind] * 3, dict.fromkeys(bodies, kind), lanes, [a, b, c], expected)
        return
    check(bodies, [kind] * 2, dict.fromkeys(bodies, kind), lanes, [a, b], expected)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.few(2)
def test_integers_wrap_around(kind: str, lanes: int) -> None:
    """What C says nothing about, and compilers build on: a product of a number by itself that is negative."""
    limits = np.iinfo(DTYPE[kind])
    a = sample(kind, 10)
    a[:6] = limits.min, limits.max, limits.max - 1, limits.min + 1, limits.max // 2 + 1, 1 << limits.bits // 2 - 1
    two, seven = (f"arith.constant {f'dense<{c}>' if lanes > 1 else c} : $v{kind}$e" for c in (2, 7))
    bodies = {
        "size_of_square": f"%c = arith.muli %x0, %x0 : $v{kind}$e\n%r = math.absi %c : $v{kind}$e",
        "part_of_double": f"%c = {two}\n%d = arith.muli %x0, %c : $v{kind}$e\n"
        f"%c7 = {seven}\n%r = arith.shrsi %d, %c7 : $v{kind}$e",
        "larger_sum": f"%c = {two}\n%d = arith.addi %x0, %c : $v{kind}$e\n%r = arith.maxsi %x0, %d : $v{kind}$e",
    }
    with np.errstate(over="ignore"):
        expected = {
            "size_of_square": np.abs(a * a),
            "part_of_double": a * a.dtype.type(2) >> a.dtype.type(7),
            "larger_sum": np.maximum(a, a + a.dtype.type(2)),
        }
    check(bodies, [kind], dict.fromkeys(bodies, kind), lanes, [a], expected)


UNSIGNED_BINARY: dict[str, Callable[..., Any]] = {"divui": np.floor_divide, "remui": np.remainder}
UNDEFINED = ("divsi_of", "remsi_of", "divui_of", "remui_of", "shli_of")


@pytest.mark.parametrize("kind", ["i32", "f32"])
@pytest.mark.few(1)
def test_nested_operations_keep_their_parentheses(kind: str) -> None:
    """Every operator as the left and as the right operand of every other."""
    operators = (
        ["addi", "subi", "muli", "divsi", "remsi", "divui", "remui", "andi", "shli"]
        if kind == "i32"
        else ["addf", "subf", "mulf", "divf"]
    )
    functions: dict[str, Callable[..., Any]] = {plain(op): f for op, f in INTEGER_BINARY.items()} | {
        "shli": np.left_shift
    }
    functions |= {op: lambda a, b, f=f: f(a.view("u4"), b.view("u4")).view("i4") for op, f in UNSIGNED_BINARY.items()}
    functions |= {plain(op): f for op, f in FLOAT_BINARY.items()}
    a = np.arange(20, 20 + SIZE).astype(DTYPE[kind])
    b, c = (np.arange(n, n + SIZE).astype(DTYPE[kind]) % 5 + 1 for n in (1, 3))
    bodies, expected = {}, {}
    for outer in operators:
        for inner in operators:
            bodies[f"{inner}_{outer}"] = f"%d = arith.{inner} %x0, %x1 : {kind}\n%r = arith.{outer} %d, %x2 : {kind}"
            bodies[f"{outer}_of_{inner}"] = f"%d = arith.{inner} %x0, %x1 : {kind}\n%r = arith.{outer} %x2, %d : {kind}"
            with np.errstate(all="ignore"):
                d = functions[inner](a, b)
                expected[f"{inner}_{outer}"] = functions[outer](d, c)
                expected[f"{outer}_of_{inner}"] = functions[outer](c, d)
    defined = {n: np.isfinite(e).all() and not n.startswith(UNDEFINED) for n, e in expected.items()}
    bodies = {name: body for name, body in bodies.items() if defined[name]}
    rtol = 0 if kind == "i32" else 1e-6
    check(bodies, [kind] * 3, dict.fromkeys(bodies, kind), 1, [a, b, c], expected, rtol)


CASTS = [
    *(("extf", "f16", "f32"), ("extf", "f32", "f64"), ("extf", "f16", "f64")),
    *(("truncf", "f32", "f16"), ("truncf", "f64", "f32")),
    *(("extsi", "i8", "i32"), ("extsi", "i32", "i64"), ("extui", "i8", "i32")),
    *(("trunci", "i32", "i8"), ("trunci", "i64", "i32"), ("sitofp", "i32", "f32"), ("sitofp", "i8", "f16")),
    *(("sitofp", "i64", "f64"), ("uitofp", "i8", "f32"), ("fptosi", "f32", "i32"), ("fptosi", "f64", "i8")),
    *(("fptosi", "f16", "i64"), ("bitcast", "f32", "i32"), ("fptoui", "f16", "i32"), ("fptoui", "f64", "i64")),
]


@pytest.mark.parametrize("before", ["f16", "f32", "f64", "i8", "i32", "i64"])
@pytest.mark.few(3)
def test_casts(before: str) -> None:
    a = sample(before, 11, special=before == "f16")
    casts = [(op, after) for op, source, after in CASTS if source == before]
    if any(op.startswith("fpto") for op, _ in casts):
        a = np.where(np.isfinite(a), a, 1).astype(a.dtype)
    bodies = {f"{op}_{after}": f"%r = arith.{op} %x0 : {before} to {after}" for op, after in casts}
    outputs = {f"{op}_{after}": after for op, after in casts}
    expected = {f"{op}_{after}": a.astype(DTYPE[after]) for op, after in casts}
    expected |= {name: np.abs(a).astype(DTYPE[outputs[name]]) for name in outputs if name.startswith("fptoui")}
    bodies |= {
        name: f"%d = math.absf %x0 : {before}\n{body.replace('%x0', '%d')}"
        for name, body in bodies.items()
        if name.startswith("fptoui")
    }
    if before == "f32":
        expected["bitcast_i32"] = a.view(np.int32)
    if before == "i8":
        expected |= {"extui_i32": a.view(np.uint8).astype(np.int32), "uitofp_f32": a.view(np.uint8).astype(np.float32)}
    check(bodies, [before], outputs, 1, [a], expected)


def test_integer_comparisons() -> None:
    a, b = np.repeat(np.arange(-2, 2, dtype=np.int32), 4), np.tile(np.arange(-2, 2, dtype=np.int32), 4)
    compare = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
    compare |= {"gt": np.greater, "ge": np.greater_equal}
    bodies, expected = {}, {}
    for predicate in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"):
        bodies[predicate] = f"%c = arith.cmpi {predicate}, %x0, %x1 : i32\n%r = arith.select %c, %x0, %x1 : i32"
        x, y = (a.view(np.uint32), b.view(np.uint32)) if predicate[0] == "u" else (a, b)
        expected[predicate] = np.where(compare[predicate.lstrip("su")](x, y), a, b)
    check(bodies, ["i32", "i32"], dict.fromkeys(bodies, "i32"), 1, [a, b], expected)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.few(2)
def test_float_comparisons(kind: str) -> None:
    a = np.repeat(np.array([-1, 0, np.nan, 2], DTYPE[kind]), 4)
    b = np.tile(np.array([-1, 0, np.nan, 2], DTYPE[kind]), 4)
    nan = np.isnan(a) | np.isnan(b)
    compare = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": ~nan & (a != b)}
    bodies: dict[str, str] = {}
    expected: dict[str, np.ndarray] = {}
    for predicate in ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"):
        bodies[predicate] = f"%r = arith.cmpf {predicate}, %x0, %x1 : {kind}"
        if predicate in ("ord", "uno"):
            expected[predicate] = nan if predicate == "uno" else ~nan
        else:
            expected[predicate] = compare[predicate[1:]] & ~nan if predicate[0] == "o" else compare[predicate[1:]] | nan
    check(bodies, [kind, kind], dict.fromkeys(bodies, "i1"), 1, [a, b], expected)


def test_truth_values() -> None:
    a, b = np.tile([True, False, True, False], 4), np.tile([True, True, False, False], 4)
    bodies = {op: f"%r = arith.{op} %x0, %x1 : i1" for op in ("andi", "ori", "xori")}
    bodies["not"] = "%c = arith.constant true\n%r = arith.xori %x0, %c : i1"
    expected = {"andi": a & b, "ori": a | b, "xori": a ^ b, "not": ~a}
    check(bodies, ["i1", "i1"], dict.fromkeys(bodies, "i1"), 1, [a, b], expected)
    bodies = {
        "sign": "%r = arith.extsi %x0 : i1 to i32",
        "zero": "%r = arith.extui %x0 : i1 to i32",
        "number": "%d = arith.extui %x0 : i1 to i32\n%r = arith.andi %d, %d : i32",
    }
    expected = {"sign": -a.astype(np.int32), "zero": a.astype(np.int32), "number": a.astype(np.int32)}
    check(bodies, ["i1"], dict.fromkeys(bodies, "i32"), 1, [a], expected)


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
@pytest.mark.few(2)
def test_lanes(kind: str) -> None:
    """Reductions, extraction, insertion, shuffles and broadcasts of lanes."""
    a = sample(kind, 14) if kind[0] == "i" else np.arange(SIZE).astype(DTYPE[kind])
    v = f"vector<4x{kind}>"
    bodies = {
        "sum": f"%d = vector.reduction <add>, %x0 : {v} into {kind}\n%r = vector.broadcast %d : {kind} to {v}",
        "last": f"%d = vector.extract %x0[3] : {kind} from {v}\n%r = vector.broadcast %d : {kind} to {v}",
        "moved": f"%d = vector.extract %x0[0] : {kind} from {v}\n%r = vector.insert %d, %x0[2] : {kind} into {v}",
        "turned": f"%r = vector.shuffle %x0, %x0[3, 2, 5, 4] : {v}, {v}",
    }
    greatest = "maximumf" if kind[0] == "f" else "maxsi"
    bodies["max"] = (
        f"%d = vector.reduction <{greatest}>, %x0 : {v} into {kind}\n%r = vector.broadcast %d : {kind} to {v}"
    )
    rows = a.reshape(4, 4)
    with np.errstate(all="ignore"):
        total = np.repeat(rows.sum(1, dtype=a.dtype), 4)
    moved = rows.copy()
    moved[:, 2] = rows[:, 0]
    expected = {"sum": total, "last": np.repeat(rows[:, 3], 4), "moved": moved.reshape(-1)}
    expected |= {"turned": rows[:, [3, 2, 1, 0]].reshape(-1), "max": np.repeat(rows.max(1), 4)}
    check(bodies, [kind], dict.fromkeys(bodies, kind), 4, [a], expected)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.few(2)
def test_float_literals(kind: str) -> None:
    """Every float comes out with the bits that the constant has."""
    with np.errstate(all="ignore"):
        tiny = np.finfo(DTYPE[kind]).smallest_normal
        values = np.array([0.1, -1 / 3, 1e-5, 65504.0, np.inf, -np.inf, np.nan, -0.0, 7.0, tiny], DTYPE[kind])
    bits = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}[kind]
    bodies = {
        f"c{n}": f"%r = arith.constant 0x{int(value.view(bits)):0{2 * value.itemsize}X} : {kind}"
        for n, value in enumerate(values)
    }
    expected = {f"c{n}": np.full(SIZE, value) for n, value in enumerate(values)}
    check(bodies, [kind], dict.fromkeys(bodies, kind), 1, [np.zeros(SIZE, DTYPE[kind])], expected)
