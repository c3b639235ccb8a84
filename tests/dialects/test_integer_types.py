"""Integers of every width, with and without a sign: the interpreters and the backends agree with NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gpu_programs import opencl_device
from outputs import several

from loopwright import te, topi
from loopwright.dialects.combiner import combine_op, identity
from loopwright.dialects.element import DTYPES, dtype_name
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.task import SearchTask
from loopwright.search.workload import Workload

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
LENGTH = 37

Array = npt.NDArray[Any]


def clamped(values: Array, dtype: str) -> Array:
    """Floats as unsigned integers: toward zero, what is too large or too small at the limit."""
    return np.trunc(np.clip(values, 0, np.iinfo(dtype).max)).astype(dtype)


OPERATIONS: dict[str, tuple[Callable[..., te.Expr], Callable[..., Array]]] = {
    "add": (lambda a, b: a + b, np.add),
    "subtract": (lambda a, b: a - b, np.subtract),
    "multiply": (lambda a, b: a * b, np.multiply),
    "negative": (lambda a, b: -a, lambda a, b: np.negative(a)),
    "divide": (lambda a, b: a // te.maximum(b, 1), lambda a, b: a // np.maximum(b, 1)),
    "remainder": (lambda a, b: a % te.maximum(b, 1), lambda a, b: a % np.maximum(b, 1)),
    "maximum": (te.maximum, np.maximum),
    "minimum": (te.minimum, np.minimum),
    "less": (lambda a, b: te.select(a < b, a, b + 1), lambda a, b: np.where(a < b, a, b + 1)),
    "equal": (lambda a, b: te.select(a >= b, 1, 0), lambda a, b: (a >= b).astype("int32")),
    "and": (te.bitwise_and, np.bitwise_and),
    "or": (te.bitwise_or, np.bitwise_or),
    "xor": (te.bitwise_xor, np.bitwise_xor),
    "not": (lambda a, b: te.bitwise_not(a), lambda a, b: np.invert(a)),
    "left": (lambda a, b: te.shift_left(a, te.bitwise_and(b, 63)), lambda a, b: np.left_shift(a, b & 63)),
    "right": (lambda a, b: te.shift_right(a, te.bitwise_and(b, 63)), lambda a, b: np.right_shift(a, b & 63)),
    "largest": (lambda a, b: te.bitwise_xor(a, te.max_value(a.dtype)), lambda a, b: a ^ np.iinfo(a.dtype).max),
    "float": (lambda a, b: a.astype("float64") + 0.5, lambda a, b: a.astype("float64") + 0.5),
    **{f"to {t}": (lambda a, b, t=t: a.astype(t), lambda a, b, t=t: a.astype(t)) for t in (*SIGNED, *UNSIGNED)},
    **{
        f"from float to {t}": (
            lambda a, b, t=t: (a.astype("float32") * 3.5).astype(t),
            lambda a, b, t=t: clamped(a.astype("float32").astype(float) * 3.5, t),
        )
        for t in ("uint8", "uint16")
    },
}


def arrays(dtype: str) -> list[Array]:
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    found = [rng.integers(limits.min, limits.max, LENGTH, dtype, endpoint=True) for _ in range(2)]
    found[0][:4] = (limits.min, limits.max, 0, 7)
    found[1][:6] = (1, 0, limits.max, 2, limits.min, 3)
    return found


def task_of(dtype: str, names: Sequence[str], target: str) -> SearchTask:
    def define(*_: str) -> list[te.Tensor]:
        a, b = (te.placeholder((LENGTH,), dtype, name=name) for name in "ab")
        return [a, b, *(_stage(OPERATIONS[name][0], a, b) for name in names)]

    return SearchTask(Workload("integers", define), [dtype, *names], target)


def _stage(function: Callable[..., te.Expr], a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return te.compute((LENGTH,), lambda i: function(a[i], b[i]), name="c")


def expected(dtype: str, names: Sequence[str]) -> list[Array]:
    with np.errstate(all="ignore"):
        return [OPERATIONS[name][1](*arrays(dtype)) for name in names]


def check(results: Sequence[Array], dtype: str, names: Sequence[str]) -> None:
    for name, got, wanted in zip(names, results, expected(dtype, names), strict=True):
        assert got.dtype == wanted.dtype or name in ("less",), name
        np.testing.assert_array_equal(np.asarray(got), wanted, err_msg=f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", ["int16", *UNSIGNED])
@pytest.mark.few(3)
def test_operations_agree_with_numpy(dtype: str) -> None:
    names = list(OPERATIONS)
    task = task_of(dtype, names, "llvm cores=1")
    check(run_te(task.module, arrays(dtype)), dtype, names)
    loops = task.module.clone()
    apply_schedule(loops, "")
    check(run_loops(loops, arrays(dtype)), dtype, names)
    check(several(task.build()(*arrays(dtype))), dtype, names)


@pytest.mark.parametrize("dtype", ["int16", *UNSIGNED])
@pytest.mark.few(1)
def test_vectors_and_opencl_agree_with_numpy(dtype: str) -> None:
    opencl_device()
    names = [name for name in OPERATIONS if dtype != "uint64" or not name.startswith("from float")]
    for target in ("llvm cores=2", "opencl"):
        check(several(task_of(dtype, names, target).build()(*arrays(dtype))), dtype, names)


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("target", ["llvm cores=1", "opencl"])
@pytest.mark.few(4)
def test_reductions_of_unsigned_integers(dtype: str, target: str) -> None:
    if target == "opencl":
        opencl_device()
    data = arrays(dtype)[0][:36].reshape(4, 9)

    def define(*_: str) -> list[te.Tensor]:
        x = te.placeholder((4, 9), dtype, name="x")
        return [x, topi.max(x, 1), topi.min(x, 1)]

    task = SearchTask(Workload("extrema", define), [dtype], target)
    for results in (run_te(task.module, [data]), task.build()(data)):
        assert [np.asarray(r).tolist() for r in results] == [data.max(1).tolist(), data.min(1).tolist()]


def test_types_meet_in_one_that_holds_both() -> None:
    def meet(left: str, right: str) -> str:
        return (te.const(1, left) + te.const(1, right)).dtype

    for left in (*SIGNED, *UNSIGNED):
        for right in (*SIGNED, *UNSIGNED):
            if "uint64" in (left, right) and "u" not in (left[0] if right == "uint64" else right[0]):
                with pytest.raises(te.ExpressionError, match="no integer type holds both"):
                    meet(left, right)
            else:
                assert meet(left, right) == np.result_type(left, right).name
    assert meet("uint8", "float16") == "float16"
    with pytest.raises(te.ExpressionError, match="the number -1 does not fit uint8"):
        te.const(1, "uint8") + te.const(-1, "uint8")


@pytest.mark.parametrize(("source", "result"), [("float32", "uint32"), ("int32", "float32"), ("float64", "int64")])
@pytest.mark.parametrize("target", ["llvm cores=1", "opencl"])
@pytest.mark.few(3)
def test_bits_of_another_type(source: str, result: str, target: str) -> None:
    if target == "opencl":
        opencl_device()
    data = np.random.default_rng(0).standard_normal(LENGTH)
    data = data.astype(source) if source[0] == "f" else data.astype("float32").view(source)

    def define(*_: str) -> list[te.Tensor]:
        x = te.placeholder((LENGTH,), source, name="x")
        return [x, te.compute((LENGTH,), lambda i: te.bitcast(x[i], result), name="y")]

    task = SearchTask(Workload("bits", define), [source, result], target)
    assert "bits_as_" in str(task.compute_dag)
    loops = task.module.clone()
    apply_schedule(loops, "")
    for got in (*run_te(task.module, [data]), *run_loops(loops, [data]), task.build()(data)):
        assert np.array_equal(got, data.view(result))
    with pytest.raises(te.ExpressionError, match="numbers of type float32 and int16 differ in their bits"):
        te.bitcast(te.const(1.0), "int16")


def test_combiners_of_unsigned_types() -> None:
    for name in UNSIGNED:
        element = DTYPES[name]
        assert dtype_name(element) == name
        assert (identity("max", element), identity("min", element)) == (0, np.iinfo(name).max)
        assert combine_op("max", element).name == "arith.maxui"
