"""Convolutions of one tap as products on a GPU: right in both layouts, with strides, groups and epilogues."""

import numpy as np
import pytest
from effort import usual
from gpu_programs import check_interpreted
from gpu_sketches import check_candidates, sliced

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.rules import _gpu_sliced_products

CUDA = "cuda model=h200"


def layer(
    n: int,
    c: int,
    size: tuple[int, int],
    out: int,
    stride: int = 1,
    groups: int = 1,
    last: bool = False,
    constant: bool = False,
) -> list[te.Tensor]:
    """A convolution of one tap with a bias, a residual and relu, with channels last or first."""
    if last:
        x, w = (
            te.placeholder((n, *size, c), name="x"),
            te.placeholder((1, 1, c // groups, out), name="w", constant=constant),
        )
        bias = te.placeholder((1, 1, 1, out), name="bias")
        sums = topi.nn.conv2d_nhwc(x, w, stride, 0, 1, groups)
    else:
        x, w = (
            te.placeholder((n, c, *size), name="x"),
            te.placeholder((out, c // groups, 1, 1), name="w", constant=constant),
        )
        bias = te.placeholder((1, out, 1, 1), name="bias")
        sums = topi.nn.conv2d_nchw(x, w, stride, 0, 1, groups)
    residual = te.placeholder(sums.shape, name="residual")
    return [x, w, bias, residual, topi.nn.relu(topi.add(topi.add(sums, bias), residual))]


def one_dimensional() -> list[te.Tensor]:
    x, w = te.placeholder((2, 64, 45), name="x"), te.placeholder((36, 64, 1), name="w")
    return [x, w, topi.nn.conv1d_ncw(x, w, 1)]


def rows_of_a_batch() -> list[te.Tensor]:
    """Rows of several images times one matrix, as layers of transformers have them."""
    x, w, k = te.placeholder((3, 13, 64), name="x"), te.placeholder((64, 36), name="w"), te.reduce_axis((0, 64), "k")
    return [x, w, te.compute((3, 13, 36), lambda b, i, j: te.sum(x[b, i, k] * w[k, j], axis=k), name="products")]


WORKLOADS = {
    "channels first": lambda: layer(1, 64, (7, 7), 36),
    "whole vectors of pixels": lambda: layer(2, 64, (6, 6), 40),
    "channels of no whole vectors": lambda: layer(2, 67, (6, 7), 33),
    "channels last": lambda: layer(2, 64, (5, 4), 36, last=True),
    "channels last of no whole vectors": lambda: layer(3, 67, (5, 3), 33, last=True),
    "every other pixel": lambda: layer(2, 64, (11, 13), 33, 2),
    "every other pixel, channels last": lambda: layer(2, 64, (9, 11), 36, 2, last=True),
    "groups": lambda: layer(2, 128, (5, 7), 80, groups=2),
    "few filters": lambda: layer(2, 64, (6, 7), 12),
    "one dimension": one_dimensional,
    "rows of a batch": rows_of_a_batch,
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(3)
def test_layers_of_one_tap_are_right_as_products(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted, free of races, and of one axis of pixels."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    found = sliced(task)
    assert found
    for sketch in found:
        assert "lw-collapse{" in sketch.template
        check_candidates(task, sketch, 2)


@pytest.mark.parametrize("last", [False, True])
def test_long_sums_are_also_divided_among_blocks(last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(lambda: layer(2, 256, (13, 11), 36, 2, last=last), target=CUDA)
    (sketch,) = (sketch for sketch in sliced(task) if "split" in sketch.name)
    check_candidates(task, sketch, 2)


@pytest.mark.parametrize("last", [False, True])
def test_constant_weights_stay_as_they_are(last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As rows their terms lie side by side, as columns their filters: callers give them in their own shape."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(lambda: layer(1, 64, (7, 9), 36, last=last, constant=True), target=CUDA)
    (sketch,) = sliced(task)
    assert "lw-transform-layout" not in sketch.template
    module = task.module.clone()
    apply_schedule(module, sketch.schedule(sketch.default))
    (expected,) = task.reference.expected
    np.testing.assert_allclose(lw.interpret(module, *task.reference.inputs), expected, atol=1e-4)


def test_tiles_stay_within_the_filters_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(lambda: layer(1, 128, (8, 8), 80, groups=2), target=CUDA)
    (sketch,) = sliced(task)
    columns = sketch.columns(sketch.sample(np.random.default_rng(0), 64))
    (threads,) = (columns[name] for name in columns if name.endswith("rows_threads"))
    (inner,) = (columns[name] for name in columns if name.endswith("rows_inner"))
    assert (40 % (threads * inner) == 0).all()


@pytest.mark.parametrize(("window", "stride", "groups"), [(3, 1, 1), (1, 1, 512), (1, 2, 4)])
def test_windows_depthwise_layers_and_strided_groups_are_no_products(window: int, stride: int, groups: int) -> None:
    x, w = te.placeholder((8, 512, 28, 28), name="x"), te.placeholder((512, 512 // groups, window, window), name="w")
    assert not sliced(lw.SearchTask(lambda: [x, w, topi.nn.conv2d_nchw(x, w, stride, 0, 1, groups)], target=CUDA))


@pytest.mark.parametrize("name", ["channels first", "every other pixel, channels last", "groups"])
def test_sizes_of_a_product_are_those_of_its_nest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lw-collapse` does to extents, which estimates read, the same as to loops."""
    from loopwright.dialects.target import Target
    from loopwright.passes.parametric.read import nest_of_module
    from loopwright.passes.parametric.replay import replay_steps
    from loopwright.passes.parametric.sizes import SizeGraph, Sizes
    from loopwright.passes.pipeline_text import lower_to_loops, parse_schedule

    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    template = sliced(task)[0].template
    steps = [step for step in parse_schedule(template) if step.name in ("lw-compute-inline", "lw-collapse")]
    done, begun = task.module.clone(), task.module.clone()
    apply_schedule(done, steps)
    lower_to_loops(begun)
    replayed, read = nest_of_module(begun, Target("cuda")), nest_of_module(done, Target("cuda"))
    replay_steps(replayed, steps, Sizes(SizeGraph().column))
    for one, other in zip(replayed.root.stages(), read.root.stages(), strict=True):
        assert one.name == other.name
        assert [(i.name, i.extent, i.is_reduce) for i in one.iterators] == [
            (i.name, i.extent, i.is_reduce) for i in other.iterators
        ]
        assert [(x.name, x.extent) for x in one.loops] == [(x.name, x.extent) for x in other.loops]
        assert [(a.buffer.name, a.buffer.shape) for a in one.accesses] == [
            (a.buffer.name, a.buffer.shape) for a in other.accesses
        ]


@pytest.mark.parametrize("last", [False, True])
def test_layers_behind_others_that_are_tiled_are_left_to_other_structures(
    last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels do not become one axis then, as extents are open: an image's rows are no rows of a product."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    if last:
        x, v = te.placeholder((1, 5, 9, 64), name="x"), te.placeholder((3, 3, 64, 1), name="v")
        w = te.placeholder((1, 1, 64, 40), name="w")
        sums = topi.nn.conv2d_nhwc(topi.nn.relu(topi.nn.depthwise_conv2d_nhwc(x, v, 1, 1)), w)
    else:
        x, v = te.placeholder((1, 64, 5, 9), name="x"), te.placeholder((64, 1, 3, 3), name="v")
        w = te.placeholder((40, 64, 1, 1), name="w")
        sums = topi.nn.conv2d_nchw(topi.nn.relu(topi.nn.depthwise_conv2d_nchw(x, v, 1, 1)), w)
    task = lw.SearchTask(lambda: [x, v, w, topi.nn.relu(sums)], target=CUDA)
    check_interpreted(task.module, task.reference, [task.default_schedule])


@pytest.mark.parametrize("last", [False, True])
def test_layers_that_read_pixels_which_have_become_one_axis_are_tiled_along_it(
    last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    shapes = (
        ((2, 5, 7, 40), (1, 1, 40, 36), (1, 1, 36, 40)) if last else ((2, 40, 5, 7), (36, 40, 1, 1), (40, 36, 1, 1))
    )
    x, v, w = (te.placeholder(shape, name=name) for shape, name in zip(shapes, "xvw", strict=True))
    conv = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    task = lw.SearchTask(lambda: [x, v, w, topi.nn.relu(conv(topi.nn.relu(conv(x, v)), w))], target=CUDA)
    assert any("lw-collapse{" in sketch.template for sketch in task.sketches)
    schedules = [sketch.schedule(sketch.default) for sketch in task.sketches if "lw-collapse{" in sketch.template]
    check_interpreted(task.module, task.reference, [task.default_schedule, *schedules[: usual(4)]])


def test_two_layers_with_results_for_one_block_are_not_both_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The taker of both sums has been tiled for the first one when the second one is asked for."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    x, v, w = (
        te.placeholder(shape, name=name)
        for shape, name in (((1, 4, 11, 64), "x"), ((1, 1, 64, 33), "v"), ((1, 1, 64, 33), "w"))
    )
    gate, sums = topi.nn.conv2d_nhwc(x, v, 2), topi.nn.conv2d_nhwc(x, w, 2)
    task = lw.SearchTask(lambda: [x, v, w, topi.multiply(gate, topi.sigmoid(sums))], target=CUDA)
    check_interpreted(task.module, task.reference, [task.default_schedule])
