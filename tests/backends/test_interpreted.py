"""Kernels that are interpreted take and give arrays as compiled ones do."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.interpreted import interpreted


def scheduled(target: str = "cuda model=h200") -> lw.Schedule:
    x, k = te.placeholder((6, 40), name="x"), te.placeholder((40,), name="k", constant=True)
    y = te.compute((6, 40), lambda i, j: x[i, 39 - j] * k[j], name="y")
    sch = lw.Schedule([x, k, y], target=target)
    if target.startswith("cuda"):
        sch.bind("y", "i", "blockIdx.x")
        sch.bind("y", "j", "threadIdx.x")
    return sch


@pytest.mark.parametrize("target", ["cuda model=h200", "llvm cores=2"])
def test_schedules_run_as_they_would_be_compiled(target: str) -> None:
    values, factors = np.random.default_rng(0).random((6, 40), np.float32), np.arange(40, dtype=np.float32)
    before = values.copy()
    np.testing.assert_array_equal(lw.interpret(scheduled(target), values, factors), values[:, ::-1] * factors)
    np.testing.assert_array_equal(values, before)


def test_tensors_are_taken_as_build_takes_them() -> None:
    x = te.placeholder((3, 4), name="x")
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(lw.interpret([x, topi.add(x, 1.0)], values), values + 1)


def test_packed_constants_are_given_as_they_are_declared() -> None:
    sch = scheduled("llvm cores=2")
    sch.transform_layout("y", "k", ("j/8", "j%8"))
    values, factors = np.ones((6, 40), np.float32), np.arange(40, dtype=np.float32)
    np.testing.assert_array_equal(lw.interpret(sch, values, factors), np.broadcast_to(factors, (6, 40)))


def test_wrong_inputs_are_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"takes 2 arrays \(x, k\), or 3 with its outputs \(y\), got 0"):
        lw.interpret(scheduled())
    with pytest.raises(TypeError, match="input 'x' must be float32, got float64"):
        lw.interpret(scheduled(), np.ones((6, 40)), np.ones(40, np.float32))
    with pytest.raises(ValueError, match=r"input 'k' must have shape \(40,\), got \(4,\)"):
        lw.interpret(scheduled(), np.ones((6, 40), np.float32), np.ones(4, np.float32))


def test_its_source_is_what_is_interpreted() -> None:
    kernel = interpreted(lower_to_kernel(scheduled()))
    assert "lw_kernel.launch grid [6, 1, 1] block [40, 1, 1]" in kernel.source and not kernel.assembly
    assert kernel.benchmark(repeat=2, number=1).median > 0
