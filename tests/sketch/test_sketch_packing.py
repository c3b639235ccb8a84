"""Constant operands in sketches: laid out for the lanes before any run, where one block reads them."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

CPU = "llvm cores=2 vector_bytes=32"


def dense(constant: bool = True) -> list[te.Tensor]:
    data = te.placeholder((5, 37), name="data")
    weight = te.placeholder((41, 37), name="weight", constant=constant)
    bias = te.placeholder((41,), name="bias", constant=constant)
    return [data, weight, bias, topi.nn.relu(topi.nn.dense(data, weight) + bias)]


def pointwise() -> list[te.Tensor]:
    """A vector operand that may also be read as it is."""
    data = te.placeholder((1, 5, 6, 12), name="data")
    kernel = te.placeholder((1, 1, 12, 21), name="kernel", constant=True)
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, 0)]


def gram() -> list[te.Tensor]:
    """Read twice by one block: once for the rows, once for the lanes."""
    weight = te.placeholder((21, 33), name="weight", constant=True)
    return [weight, topi.matmul(weight, weight, transpose_b=True)]


def names(workload: Callable[[], list[te.Tensor]]) -> dict[str, str]:
    return {s.name: s.template for s in lw.SearchTask(workload, target=CPU).sketches}


def test_constants_are_packed_ahead_and_others_are_copied() -> None:
    ahead, copied = names(dense), names(lambda: dense(False))
    assert list(ahead) == ["j_ahead"]
    assert 'buffer="weight" layout="j/<T_dense_panel_width>","k","j%<T_dense_panel_width>"' in ahead["j_ahead"]
    assert "lw-cache-read" not in ahead["j_ahead"]
    assert set(copied) == {"j_root", "j_inner", "dots"} and "lw-transform-layout" not in copied["j_root"]
    assert set(names(pointwise)) == {"ff_direct", "ff_ahead"}
    assert "lw-transform-layout" not in "".join(names(gram).values())


@pytest.mark.parametrize("workload", [dense, pointwise, gram])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_packed_candidates_are_right_however_constants_come(workload: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(workload, target=CPU)
    inputs, expected = task.reference.inputs, task.reference.expected[0]
    constants = [t for t in task.build().arguments if t.constant]
    for sketch in task.sketches:
        for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 1)]:
            schedule = sketch.schedule(row)
            np.testing.assert_allclose(task.build(schedule)(*inputs), expected, rtol=1e-4, atol=1e-5, err_msg=schedule)
            params = {c.name: inputs[i] for i, c in enumerate(task.build(schedule).arguments) if c.constant}
            assert len(params) == len(constants)
            rest = [a for a in inputs if not any(a is p for p in params.values())]
            got = task.build(schedule, params=params)(*rest)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5, err_msg=schedule)
