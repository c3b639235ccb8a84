"""Constant operands in sketches: laid out for the lanes before any run, where one block reads them."""

from collections.abc import Callable

import numpy as np
import pytest
from sketch_kernels import check_kernels

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


def layer(pixels: int, channels: int, filters: int) -> list[te.Tensor]:
    """A convolution of one tap with channels last."""
    data = te.placeholder((1, pixels, pixels, channels), name="data")
    kernel = te.placeholder((1, 1, channels, filters), name="kernel", constant=True)
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, 1, 0))]


@pytest.mark.parametrize(
    ("cores", "cache_bytes", "tensors", "first"),
    [
        (1, 1 << 20, layer(7, 512, 2048), True),  # 4 MB of filters, 100 KB of pixels
        (1, 1 << 24, layer(7, 512, 2048), False),  # filters that the cache keeps
        (2, 1 << 24, layer(7, 512, 2048), True),  # but each thread would read all of them
        (2, 1 << 20, layer(14, 512, 512), False),  # pixels and their results are as many
        (1, 1 << 20, layer(56, 256, 1024), False),
    ],
)
def test_tasks_take_one_block_of_filters_after_the_other_where_filters_are_more(
    cores: int, cache_bytes: int, tensors: list[te.Tensor], first: bool
) -> None:
    target = f"llvm cores={cores} vector_bytes=64 vector_registers=32 l2_bytes={cache_bytes}"
    (template,) = (s.template for s in lw.SearchTask(tensors, target=target).sketches if s.name == "ff_ahead")
    assert ('"ff0","yy0","xx0"' in template, '"yy0","xx0","ff0"' in template) == (first, not first)


@pytest.mark.parametrize("cores", [1, 2])
def test_candidates_by_filters_are_right(cores: int) -> None:
    """With a cache that holds none of them, pixels that no tile divides, and filters that no vectors divide."""
    task = lw.SearchTask(layer(3, 133, 701), target=f"llvm cores={cores} vector_bytes=32 l2_bytes=4096")
    sketch = next(s for s in task.sketches if s.name == "ff_ahead")
    assert '"ff0","yy0","xx0"' in sketch.template
    check_kernels(task, sketch, 0, 3, atol=1e-5)
