"""Kernels lowered from schedules verify, print as text that parses back to the same, and mean what was asked for."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from late_notes import noting
from lowered_runs import lowered
from sample_workloads import SAMPLES
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.context import create_context
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.kernel import CompareOp, ConvertOp, GatherOp, LaunchOp, ScatterOp, SelectOp

CPU = "llvm cores=2 vector_bytes=64"
GPU = (
    "cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 max_vthreads=8 vector_bytes=16 "
    "compute_capability=80"
)
INTERPRETED_FLOPS = 120_000
"""Larger samples are not interpreted: about a second each, and their compiled forms are run elsewhere."""
EXTENT, LANES = 37, 16
FLOATS, INTEGERS = ("float16", "float32", "float64"), ("int8", "int32", "int64")

Value = Callable[[te.Expr, te.Expr], te.Expr]
"""From an element and its index to an element of the result."""


def shallow_conv_nhwc() -> list[te.Tensor]:
    """The sample with 2 input channels of its 7, which make 7,100 operations of one of its four sketches."""
    data, kernel = te.placeholder((1, 9, 10, 2), name="data"), te.placeholder((3, 3, 2, 19), name="kernel")
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, (2, 2), (1, 1), (1, 1))]


def small_matmul_f16() -> list[te.Tensor]:
    """The sample with half of its extents, whose interpreted kernels took six seconds."""
    a, b = te.placeholder((9, 19), "float16", name="A"), te.placeholder((19, 20), "float16", name="B")
    return [a, b, topi.matmul(a, b, out_dtype="float32")]


SMALLER = {"conv_nhwc": shallow_conv_nhwc, "matmul_f16": small_matmul_f16}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(1)
def test_default_candidates(name: str) -> None:
    task = lw.SearchTask({**SAMPLES, **SMALLER}[name], target=CPU)
    reference = task.reference
    for sketch in task.sketches:
        schedule = sketch.schedule(sketch.default)
        kernel = lowered(task.schedule_module(schedule))
        if task.flops > INTERPRETED_FLOPS:
            continue
        for got, expected in zip(run_kernel(kernel, list(reference.inputs)), reference.expected, strict=True):
            np.testing.assert_allclose(
                got.astype(np.float64),
                np.asarray(expected, np.float64),
                **reference.tolerances[0]._asdict(),
                err_msg=schedule,
            )


# -- lanes ------------------------------------------------------------------------------------------------------------


def vectorized(tensors: list[te.Tensor], lanes: int = LANES, loop: str = "i") -> lw.Schedule:
    """A schedule whose last stage runs one loop in lanes; extents that they do not divide leave a masked tail."""
    schedule = lw.Schedule(tensors, target=CPU)
    block = tensors[-1].name
    _, inner = schedule.split(block, loop, (None, lanes))
    schedule.vectorize(block, inner)
    return schedule


def numbers(dtype: str, *shape: int) -> np.ndarray:
    """Numbers in [-3, 3] of a type; truth values at random."""
    rng = np.random.default_rng(7)
    if dtype.startswith("float"):
        return rng.uniform(-3, 3, shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(bool) if dtype == "bool" else rng.integers(-3, 4, shape).astype(dtype)


def check(tensors: list[te.Tensor], schedule: lw.Schedule, tolerance: float = 1e-6) -> ModuleOp:
    """Lower the schedule, hold its kernel to the workload's own meaning, and return the kernel."""
    workload = te.create_module(tensors)
    inputs = [numbers(t.dtype, *t.shape) for t in tensors[:-1]]
    kernel = lowered(schedule.module)
    with np.errstate(all="ignore"):
        (wanted,) = run_te(workload, inputs)
    (got,) = run_kernel(kernel, inputs)
    with noting(kernel):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    return kernel


def elementwise(dtype: str, value: Value) -> ModuleOp:
    """Check a function of one element and its index, run in lanes."""
    x = te.placeholder((EXTENT,), dtype, "x")
    out = te.compute((EXTENT,), lambda i: value(x[i], i), name="out")
    return check([x, out], vectorized([x, out]), 2e-3 if "float16" in (dtype, out.dtype) else 1e-6)


def of_lanes(kernel: ModuleOp) -> Iterable[Operation]:
    """The operations that give vectors."""
    return (op for op in kernel.walk() if op.results and isinstance(op.results[0].type, VectorType))


CASTS = [(a, b) for a in (*FLOATS, *INTEGERS, "bool") for b in (*FLOATS, *INTEGERS) if a != b]


@pytest.mark.parametrize(("before", "after"), CASTS, ids=[f"{a}-{b}" for a, b in CASTS])
@pytest.mark.few(18)
def test_casts(before: str, after: str) -> None:
    kernel = elementwise(before, lambda x, i: x.astype(after))
    kinds = {type(op) for op in of_lanes(kernel)}
    if before in FLOATS and after in FLOATS:
        assert kinds & {arith.ExtFOp, arith.TruncFOp}
    else:
        assert (SelectOp if before == "bool" and after in FLOATS else ConvertOp) in kinds


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_comparisons_and_choices(dtype: str) -> None:
    kernel = elementwise(
        dtype,
        lambda x, i: te.select(
            te.any(te.all(x > 0, x <= 2), te.logical_not(x >= -1), x == -1, x != x), x + 1, te.select(x < 1, x, x * 2)
        ),
    )
    assert {SelectOp, CompareOp} <= {type(op) for op in of_lanes(kernel)}


INDEX_VALUES: dict[str, Value] = {
    "linear": lambda x, i: x + i.astype("float32") * 3,
    "int32": lambda x, i: (i * 5 + 2).astype("int32"),
    "int64": lambda x, i: (i * 5 + 2).astype("int64"),
    "floordiv_mod": lambda x, i: x * (i // 5 + i % 7).astype("float32"),
    "predicate": lambda x, i: te.select(te.all(i >= 3, i < 30), x, 0.5),
    "predicate_of_mod": lambda x, i: te.select(i % 3 >= 1, x, 0.5),
    "predicate_value": lambda x, i: te.select(te.any(i < 5, x > 0), x, 0.5),
}


@pytest.mark.parametrize("name", INDEX_VALUES)
def test_indices_as_values(name: str) -> None:
    elementwise("float32", INDEX_VALUES[name])


FUNCTIONS: dict[str, Value] = {
    name: (lambda x, i, name=name: getattr(te, name)(x))
    for name in (
        *("exp", "exp2", "sin", "cos", "tan", "tanh", "erf", "floor", "ceil", "round", "trunc", "sigmoid", "abs"),
        *("log", "log2", "sqrt", "rsqrt"),
    )
} | {
    "power": lambda x, i: te.power(te.abs(x), 1.5),
    "fmod": lambda x, i: te.fmod(x, 1.25),
    "maximum": lambda x, i: te.maximum(x, 0.5) - te.minimum(x, -0.5),
    "negate_divide": lambda x, i: -x / (x * x + 1),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.few(12)
def test_functions(name: str, dtype: str) -> None:
    kernel = elementwise(dtype, FUNCTIONS[name])
    assert any(op.name.startswith(("math.", "arith.")) for op in of_lanes(kernel))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype: str) -> None:
    elementwise(dtype, lambda x, i: (x * 3 - 1) // 2 + (x - 5) % 3 + te.maximum(x, 1) * te.minimum(x, 2) + te.abs(x))


# -- reductions -------------------------------------------------------------------------------------------------------

REDUCTIONS = [(name, dtype) for name in ("sum", "prod", "max", "min") for dtype in ("float32", "float64", *INTEGERS)]


@pytest.mark.parametrize(("name", "dtype"), REDUCTIONS, ids=[f"{n}-{d}" for n, d in REDUCTIONS])
@pytest.mark.few(10)
def test_lanes_joined_into_one(name: str, dtype: str) -> None:
    x = te.placeholder((3, EXTENT), dtype, "x")
    k = te.reduce_axis((0, EXTENT), "k")
    out = te.compute((3,), lambda i: getattr(te, name)(x[i, k], axis=k), name="out")
    kernel = check([x, out], vectorized([x, out], loop="k"), 1e-4)
    assert any(op.name == "vector.reduction" for op in kernel.walk())
    assert any(isinstance(op, SelectOp) for op in kernel.walk())


@pytest.mark.parametrize(("dtype", "wide"), [("float32", "float32"), ("float16", "float32"), ("int8", "int32")])
def test_products_joined_into_one(dtype: str, wide: str) -> None:
    x, y = te.placeholder((3, EXTENT), dtype, "x"), te.placeholder((3, EXTENT), dtype, "y")
    k = te.reduce_axis((0, EXTENT), "k")
    product = te.compute((3,), lambda i: te.sum(x[i, k].astype(wide) * y[i, k].astype(wide), axis=k), name="out")
    check([x, y, product], vectorized([x, y, product], loop="k"), 1e-4)


def test_pairs_combined_in_lanes() -> None:
    x = te.placeholder((5, EXTENT), "float32", "x")
    best = te.comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.select(a[1] >= b[1], a[1], b[1])),
        lambda first, second: (te.const(-1, first), te.min_value(second)),
        name="best",
    )
    k = te.reduce_axis((0, 5), "k")
    found = te.compute((EXTENT,), lambda i: best((k.astype("int32"), x[k, i]), axis=k), name="found")
    place = found[0]
    out = te.compute((EXTENT,), lambda i: place[i] * 2, name="out")
    schedule = lw.Schedule([x, out], target=CPU)
    _, inner = schedule.split("found", "i", (None, LANES))
    schedule.reorder("found", ["k", inner])
    schedule.vectorize("found", inner)
    kernel = check([x, out], schedule)
    assert any(isinstance(op, SelectOp) for op in of_lanes(kernel))


# -- memory -----------------------------------------------------------------------------------------------------------


def test_lanes_that_do_not_step_evenly() -> None:
    x = te.placeholder((8, 8), "float32", "x")
    out = te.compute((EXTENT,), lambda i: x[i % 8, i // 8] + x[7 - i % 8, 0], name="out")
    kernel = check([x, out], vectorized([x, out]))
    assert any(isinstance(op, GatherOp) for op in kernel.walk())


def test_lanes_written_across_rows() -> None:
    x = te.placeholder((7, 5), "float32", "x")
    turned = te.compute((7, 5), lambda i, j: x[i, j] + 1, name="turned")
    out = te.compute((7, 5), lambda i, j: turned[i, j] * 2, name="out")
    schedule = lw.Schedule([x, out], target=CPU)
    schedule.transform_layout("turned", "turned", ("j", "i"))
    _, inner = schedule.split("turned", schedule.fuse("turned", ["i", "j"]), (None, LANES))
    schedule.vectorize("turned", inner)
    kernel = check([x, out], schedule)
    assert any(isinstance(op, ScatterOp) for op in kernel.walk())


def test_masked_lanes_of_a_local_buffer() -> None:
    x, y = te.placeholder((3, EXTENT), "float32", "x"), te.placeholder((EXTENT,), "float32", "y")
    k = te.reduce_axis((0, 3), "k")
    out = te.compute((EXTENT,), lambda i: te.sum(te.select(i < 30, x[k, i] * y[i], 1.0), axis=k), name="out")
    schedule = lw.Schedule([x, y, out], target=CPU)
    schedule.cache_write("out", "out", scope="local")
    _, inner = schedule.split("out", "i", (None, LANES))
    schedule.reorder("out", ["k", inner])
    schedule.vectorize("out", inner)
    check([x, y, out], schedule)


# -- GPUs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["cast", "choice", "convert"])
def test_vectors_of_a_gpu(value: str) -> None:
    values: dict[str, Callable[[te.Expr], te.Expr]] = {
        "cast": lambda x: x.astype("float32") * 2,
        "choice": lambda x: te.select(x > 1, x, te.const(0.5, "float16")),
        "convert": lambda x: x.astype("int32"),
    }
    x = te.placeholder((8, 64), "float16", "x")
    out = te.compute((8, 64), lambda i, j: values[value](x[i, j]), name="out")
    schedule = lw.Schedule([x, out], target=GPU)
    _, thread, inner = schedule.split("out", "j", (None, 8, 4))
    schedule.bind("out", "i", "blockIdx.x")
    schedule.bind("out", thread, "threadIdx.x")
    schedule.vectorize("out", inner)
    kernel = lowered(schedule.module)
    assert any(isinstance(op, LaunchOp) for op in kernel.walk())
    assert any(op.name.startswith(("lw_kernel.select", "lw_kernel.convert", "arith.extf")) for op in of_lanes(kernel))


# -- what is refused --------------------------------------------------------------------------------------------------

MALFORMED = {
    'lw_kernel.convert "extsi" %wide : vector<4xi32> -> vector<4xi8>': "'extsi' does not convert",
    'lw_kernel.convert "extsi" %wide : vector<4xi32> -> vector<4xi32>': "'extsi' does not convert",
    'lw_kernel.convert "trunci" %wide : vector<4xi32> -> vector<4xi64>': "'trunci' does not convert",
    'lw_kernel.convert "sitofp" %real : vector<4xf32> -> vector<4xf64>': "'sitofp' does not convert",
    'lw_kernel.convert "fptosi" %real : vector<4xf32> -> vector<4xf64>': "'fptosi' does not convert",
    'lw_kernel.convert "index_cast" %wide : vector<4xi32> -> vector<4xi64>': "'index_cast' does not convert",
    'lw_kernel.convert "sitofp" %wide : vector<4xi32> -> vector<8xf32>': "differ in their lanes",
    'lw_kernel.convert "extf" %real : vector<4xf32> -> vector<4xf64>': "'extf' is none of extsi",
    '"lw_kernel.select"(%mask, %real, %wide) : (vector<4xi1>, vector<4xf32>, vector<4xi32>) -> vector<4xf32>': "select",
    '"lw_kernel.select"(%wide, %mask, %mask) : (vector<4xi32>, vector<4xi1>, vector<4xi1>) -> vector<4xi1>': "select",
    'lw_kernel.compare "slt" %real, %real : vector<4xf32>': "'slt' does not compare",
    'lw_kernel.compare "olt" %wide, %wide : vector<4xi32>': "'olt' does not compare",
}


@pytest.mark.parametrize("operation", MALFORMED)
def test_malformed_operations_of_lanes(operation: str) -> None:
    module = Parser(
        create_context(),
        f"""func.func @f(%wide : vector<4xi32>, %real : vector<4xf32>, %mask : vector<4xi1>) {{
          %r = {operation}
          func.return
        }}""",
    ).parse_module()
    with pytest.raises(VerifyException, match=MALFORMED[operation]):
        module.verify()
