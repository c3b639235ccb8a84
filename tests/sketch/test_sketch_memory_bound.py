"""Operators that memory limits, through the sketches for CPUs: elements one by one, transposes, columns, rows."""

from collections.abc import Callable

import effort
import numpy as np
import pytest
from sketch_rows import require_features_of_ir

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.presets import preset_target
from loopwright.dialects.target import TargetAttr
from loopwright.search.sketch.population import Rows
from loopwright.search.sketch.sketch import Sketch

TARGET = "llvm cores=2 vector_bytes=64 vector_registers=32"


def of(
    shape: tuple[int, ...], function: Callable[[te.Tensor], te.Tensor], dtype: str = "float32"
) -> Callable[[], list[te.Tensor]]:
    def tensors() -> list[te.Tensor]:
        data = te.placeholder(shape, dtype, "data")
        return [data, function(data)]

    return tensors


def bias(*shape: int) -> Callable[[], list[te.Tensor]]:
    def tensors() -> list[te.Tensor]:
        data, scale = te.placeholder(shape, name="data"), te.placeholder((shape[1], 1, 1), name="scale")
        return [data, scale, topi.nn.relu(data + scale)]

    return tensors


def turned(*axes: int) -> Callable[[te.Tensor], te.Tensor]:
    return lambda x: topi.transpose(x, axes)


def turned_and(function: Callable[[te.Tensor], te.Tensor]) -> Callable[[te.Tensor], te.Tensor]:
    return lambda x: function(topi.transpose(x))


def windows(layout: str) -> Callable[[te.Tensor], te.Tensor]:
    return lambda x: topi.nn.max_pool(x, 3, 2, 1, layout=layout)


def normalised(*axes: int) -> Callable[[te.Tensor], te.Tensor]:
    """Mean 0 and variance 1 over some axes, as instance and batch normalisation have it."""

    def function(x: te.Tensor) -> te.Tensor:
        centred = x - topi.mean(x, axes, keepdims=True)
        return centred * topi.rsqrt(topi.mean(centred * centred, axes, keepdims=True) + 1e-5)

    return function


WORKLOADS = {
    "relu": of((37, 1009), topi.nn.relu),
    "relu_small": of((3, 5), topi.nn.relu),
    "relu_short_rows": of((4000, 7), topi.nn.relu),
    "relu_of_one": of((1, 1), topi.nn.relu),
    "relu_scalar": of((), topi.nn.relu),
    "gelu_f16": of((50, 499), topi.nn.gelu, "float16"),
    "abs_int8": of((50, 499), topi.abs, "int8"),
    "bias_7x7": bias(2, 200, 7, 7),
    "bias_odd": bias(1, 13, 41, 43),
    "sliced": of((131, 300), lambda x: topi.strided_slice(x, (0, 1), (131, 300), (1, 2))),
    "resized": of((1, 11, 20, 23), lambda x: topi.image.resize2d(x, (43, 47))),
    "repeated": of((41, 30), lambda x: te.compute((41, 500), lambda i, j: x[i, j % 30], name="repeated")),
    "exp_of_every_ninth": of(
        (41, 4500), lambda x: te.compute((41, 500), lambda i, j: te.exp(x[i, j * 9]), name="ninth")
    ),
    "shuffled_pixels": of(
        (1, 8, 29, 31),
        lambda x: topi.reshape(
            topi.transpose(topi.reshape(x, (1, 2, 2, 2, 29, 31)), (0, 1, 4, 2, 5, 3)), (1, 2, 58, 62)
        ),
    ),
    "mean_columns": of((1009, 301), lambda x: topi.mean(x, 0)),
    "concatenated": of((60, 301), lambda x: topi.concatenate([x, topi.exp(x)], axis=1)),
    "transposed": of((131, 157), turned(1, 0)),
    "transposed_narrow": of((5000, 5), turned(1, 0)),
    "transposed_wide": of((6, 5003), turned(1, 0)),
    "transposed_f16": of((128, 160), turned(1, 0), "float16"),
    "transposed_int8": of((129, 160), turned(1, 0), "int8"),
    "transposed_f64": of((129, 160), turned(1, 0), "float64"),
    "transposed_exp": of((131, 157), turned_and(topi.exp)),
    "nhwc_to_nchw": of((2, 13, 7, 101), turned(0, 3, 1, 2)),
    "nchw_to_nhwc": of((2, 33, 17, 19), turned(0, 2, 3, 1)),
    "axes_turned_round": of((9, 47, 53), turned(2, 1, 0)),
    "sum_columns": of((101, 300), lambda x: topi.sum(x, 0)),
    "sum_columns_wide": of((11, 5003), lambda x: topi.sum(x, 0)),
    "sum_columns_narrow": of((7001, 3), lambda x: topi.sum(x, 0)),
    "sum_columns_int8": of((101, 300), lambda x: topi.sum(x, 0), "int8"),
    "sum_columns_f16": of((101, 300), lambda x: topi.sum(x, 0, dtype="float32"), "float16"),
    "sum_middle": of((7, 61, 101), lambda x: topi.sum(x, 1)),
    "sum_outer_axes": of((7, 31, 127), lambda x: topi.sum(x, (0, 1))),
    "sum_all_but_middle": of((7, 61, 101), lambda x: topi.sum(x, (0, 2))),
    "max_rows": of((60, 1009), lambda x: topi.max(x, 1)),
    "sum_short_rows": of((1501, 20), lambda x: topi.sum(x, 1)),
    "sum_rows_of_9": of((1501, 9), lambda x: topi.sum(x, 1)),
    "softmax_short_rows": of((1501, 20), lambda x: topi.nn.softmax(x)),
    "softmax_rows_of_5": of((1501, 5), lambda x: topi.nn.softmax(x)),
    "softmax_f16": of((301, 33), lambda x: topi.nn.softmax(x), "float16"),
    "argmax_rows_of_20": of((1501, 20), lambda x: topi.argmax(x, 1)),
    "argmin_rows_of_3": of((37, 41, 3), lambda x: topi.argmin(x, 2)),
    "argmax_short_rows": of((1501, 65), lambda x: topi.argmax(x, 1)),
    "argmax_rows": of((60, 1009), lambda x: topi.argmax(x, 1)),
    "argmax_columns": of((1009, 61), lambda x: topi.argmax(x, 0)),
    "argmin_both": of((200, 101), lambda x: topi.argmin(x)),
    "max_pool_nhwc": of((1, 29, 31, 37), windows("NHWC")),
    "max_pool_nchw": of((1, 5, 61, 63), windows("NCHW")),
    "avg_pool_large": of((1, 40, 42, 33), lambda x: topi.nn.avg_pool(x, 12, 5, 0, layout="NHWC")),
    "global_pool_nhwc": of((2, 7, 9, 201), lambda x: topi.nn.global_avg_pool(x, "NHWC")),
    "global_pool_nchw": of((2, 201, 7, 9), lambda x: topi.nn.global_avg_pool(x)),
    "softmax_columns": of((151, 201), lambda x: topi.nn.softmax(x, 0)),
    "softmax_middle": of((5, 71, 67), lambda x: topi.nn.softmax(x, 1)),
    "softmax_outer_large": of((301, 6, 43), lambda x: topi.nn.softmax(x, 0)),
    "softmax_channels_7x7": of((9, 33, 7, 7), lambda x: topi.nn.softmax(x, 1)),
    "log_softmax_columns": of((33, 509), lambda x: topi.nn.log_softmax(x, 0)),
    "instance_norm": of((2, 19, 17, 13), normalised(2, 3)),
    "instance_norm_7x7": of((2, 64, 7, 7), normalised(2, 3)),
    "instance_norm_nhwc": of((3, 17, 13, 50), normalised(1, 2)),
    "batch_norm_nchw": of((3, 19, 17, 13), normalised(0, 2, 3)),
    "batch_norm_nhwc": of((3, 7, 5, 130), normalised(0, 1, 2)),
    "normalised_columns": of((61, 257), normalised(0)),
    "normalised_all": of((61, 257), normalised(0, 1)),
    "layer_norm_two_axes": of((31, 7, 37), lambda x: topi.nn.layer_norm(x, axis=(1, 2))),
    "lrn": of((1, 23, 29, 31), topi.nn.lrn),
}


@pytest.fixture(params=WORKLOADS)
def task(request: pytest.FixtureRequest) -> lw.SearchTask:
    return lw.SearchTask(WORKLOADS[request.param], target=TARGET)


def rows_of(sketch: Sketch, seed: int, count: int) -> Rows:
    """The defaults, and rows from anywhere within the limits."""
    rows = sketch.population.sample(np.random.default_rng(seed), count)
    return np.unique(np.concatenate([sketch.default[None], rows]), axis=0) if sketch.holes else sketch.default[None]


@pytest.mark.few(2)
def test_candidates_are_right(task: lw.SearchTask) -> None:
    reference = task.reference
    for sketch in task.sketches:
        assert sketch.legal(sketch.default[None])[0]
        for row in rows_of(sketch, 3, int(min(4, 2 * effort.level()))):
            got = task.build(sketch.schedule(row))(*reference.inputs)
            np.testing.assert_allclose(
                np.asarray(got, np.float64),
                np.asarray(reference.expected[0], np.float64),
                **reference.tolerances[0]._asdict(),
                err_msg=sketch.schedule(row),
            )


@pytest.mark.few(6)
def test_features_are_those_of_the_ir(task: lw.SearchTask) -> None:
    module, device = task.module, preset_target(TARGET)
    module.attributes["lw.target"] = TargetAttr(device)
    for sketch in task.sketches:
        rows = rows_of(sketch, 4, 2)
        require_features_of_ir(module, device, sketch, rows)


def product_and(follow: Callable[[te.Tensor], te.Tensor], m: int, n: int, k: int) -> Callable[[], list[te.Tensor]]:
    def tensors() -> list[te.Tensor]:
        a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        return [a, b, follow(topi.matmul(a, b))]

    return tensors


TURNED = [topi.transpose, turned_and(topi.nn.gelu), turned_and(topi.nn.relu)]


@pytest.mark.parametrize("follow", TURNED)
@pytest.mark.few(1)
def test_epilogues_that_turn_are_in_the_tile_or_apart(follow: Callable[[te.Tensor], te.Tensor]) -> None:
    task = lw.SearchTask(product_and(follow, 67, 129, 31), target=TARGET)
    apart = [sketch for sketch in task.sketches if sketch.name.endswith("_apart")]
    assert len(apart) * 2 == len(task.sketches)
    test_features_are_those_of_the_ir(task)


@pytest.mark.parametrize("follow", TURNED)
@pytest.mark.slow(1.2)
@pytest.mark.few(1)
def test_epilogues_that_turn_are_right(follow: Callable[[te.Tensor], te.Tensor]) -> None:
    test_candidates_are_right(lw.SearchTask(product_and(follow, 67, 129, 31), target=TARGET))


def test_other_epilogues_are_in_the_tile() -> None:
    task = lw.SearchTask(product_and(topi.nn.gelu, 67, 129, 31), target=TARGET)
    assert not any("apart" in sketch.name for sketch in task.sketches)


def test_rows_a_power_of_two_apart_are_not_scattered() -> None:
    task = lw.SearchTask(product_and(topi.transpose, 512, 512, 16), target=TARGET)
    assert task.sketches[0].name.endswith("_apart")
