"""Networks whose convolutions are computed by Winograd's transforms: results, kernels, tuned templates, the choice."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.dialects.target import parse_target
from loopwright.graph.chosen_winograd import gains_untuned
from loopwright.graph.pipeline import PREPARE
from loopwright.graph.tasks import GROUPED, grouping_for, tasks_to_tune
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record

TARGET = "llvm cores=2 vector_bytes=32"


def transformed(net: lw.Network, tile_size: int = 4) -> lw.Network:
    return net.transform(f"{PREPARE},lw-graph-winograd{{tile_size={tile_size}}},lw-graph-fold-constants,dce")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("tile_size", [2, 4])
@pytest.mark.few(1)
def test_results_are_the_same_and_weights_are_transformed_ahead(layout: str, tile_size: int) -> None:
    net = lw.testing.network("resnet-18", layout=layout, **SMALL["resnet-18"])
    after = transformed(net, tile_size)
    names = [op.operator.data for op in after.module.walk() if isinstance(op, ApplyOp)]
    assert "conv2d_winograd" in names and "conv2d" in names and "winograd_weight_transform" not in names
    feeds = feeds_of(net)
    for got, want in zip(after.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4 * float(np.abs(want).max()))


@pytest.mark.slow(1.2)
def test_a_network_is_compiled_with_tuned_winograd_templates(tmp_path: Path, quick_measuring: None) -> None:
    net = lw.Network("small")
    data = net.input("data", (1, 6, 9, 7))
    weight = np.random.default_rng(0).uniform(-1, 1, (6, 6, 3, 3)).astype(np.float32)
    net.output(net.relu(net.conv2d(data, net.constant(weight, "w"), padding=1)))
    after, records = transformed(net), tmp_path / "records.jsonl"
    (task,), _ = lw.extract_template_tasks(after, TARGET)
    assert task.name == "conv2d_nchw_winograd_cpu"
    best = lw.tuners.RandomTuner(task).tune(2, callbacks=[lw.tuners.callbacks.log_to_file(records)]).best
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = lw.compile(after, TARGET, records, processes=1)
    assert [kernel.schedule for kernel in compiled.package.plan.kernels] == [best.schedule]
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(compiled.executor()(*feeds.values()), want, atol=1e-4 * float(np.abs(want).max()))


def test_what_is_padded_with_other_numbers_stays_direct() -> None:
    net = lw.Network("padded")
    weight = net.constant(np.ones((6, 6, 3, 3), np.float32), "w")
    net.output(net.conv2d(net.input("data", (1, 6, 9, 7)), weight, padding=1, pad_value=0.5))
    assert "winograd" not in str(transformed(net).module)


def test_other_tiles_are_refused() -> None:
    net = lw.testing.network("resnet-18", **SMALL["resnet-18"])
    with pytest.raises(ValueError, match="tile_size is 2 or 4, got 3"):
        net.transform("lw-graph-winograd{tile_size=3}")


# -- the choice by records ------------------------------------------------------------------------------------------


def two_convolutions(dtype: str = "float32", shared: bool = False) -> lw.Network:
    """Two convolutions that fit, the second one with another epilogue; with weights of their own, or the same."""
    net = lw.Network("two")
    rng = np.random.default_rng(0)
    weights = [net.constant(rng.uniform(-1, 1, (3, 3, 4, 4)).astype(dtype), name) for name in ("w0", "w1")]
    first = net.relu(net.conv2d(net.input("data", (1, 9, 7, 4), dtype), weights[0], padding=1, layout="NHWC"))
    second = net.conv2d(first, weights[0 if shared else 1], padding=1, layout="NHWC")
    net.output(net.add(second, first) if not shared else second)
    return net


def records_of(tasks: Sequence[lw.SearchTask], times_ms: Sequence[float]) -> list[Record]:
    return [
        Record(task.workload_key, task.compute_dag.hash, str(task.target), "s", (), task.default_schedule, (ms * 1e-3,))
        for task, ms in zip(tasks, times_ms, strict=True)
    ]


def tile_sizes(compiled: lw.CompiledNetwork) -> list[int]:
    """The extent of each step's tiles of output; 0 for the direct way."""
    kernels = [compiled.kernels[step.kernel] for step in compiled.plan.steps]
    extents = [json.loads(k.workload_key)[1][1][0] for k in kernels]
    return [extent - 2 if k.is_winograd else 0 for extent, k in zip(extents, kernels, strict=True)]


def test_each_way_of_a_convolution_is_a_task() -> None:
    net = two_convolutions()
    tasks, weights = lw.extract_tasks(net, TARGET, winograd=True)
    assert [task.name for task in tasks] == [
        "conv2d_relu", "conv2d_winograd_relu", "conv2d_winograd_relu",
        "conv2d_add", "conv2d_winograd_add", "conv2d_winograd_add",
    ]  # fmt: skip
    assert weights == [1] * 6
    hashes = [task.compute_dag.hash for task in tasks]
    assert [task.instead_of for task in tasks] == [None, hashes[0], hashes[0], None, hashes[3], hashes[3]]
    for number, size in ((1, 2), (2, 4)):
        by_pass, _ = lw.extract_tasks(transformed(net, size), TARGET)
        assert [t.workload_key for t in by_pass] == [tasks[k].workload_key for k in (number, number + 3)]
    only = lw.extract_tasks(net, TARGET, winograd=(4,))[0]
    assert [t.workload_key for t in only] == [tasks[k].workload_key for k in (0, 2, 3, 5)]
    assert [t.workload_key for t in lw.extract_tasks(net, TARGET)[0]] == [tasks[k].workload_key for k in (0, 3)]
    with pytest.raises(ValueError, match=r"extents of tiles among 2 and 4, got \(3,\)"):
        lw.extract_tasks(net, TARGET, winograd=(3,))


@pytest.mark.parametrize("target", [TARGET, "cuda model=h200", "opencl model=mali-t860"])
def test_searches_of_networks_try_the_ways_that_untuned_ones_take(target: str) -> None:
    """Transforms first: a search that ends early leaves no record of the direct way alone, which keeps them off."""
    net = two_convolutions()
    direct, calls = lw.extract_tasks(net, target)
    tasks, weights = tasks_to_tune(net, target)
    before = [task for task in tasks if task.instead_of is not None]
    assert len(before) == (0 if target.startswith("opencl") else len(direct))
    assert [task.workload_key for task in tasks[len(before) :]] == [task.workload_key for task in direct]
    assert weights[len(before) :] == calls
    assert {task.instead_of for task in before} <= {task.compute_dag.hash for task in direct}


def test_a_grouped_network_is_rewritten_as_one_that_is_not() -> None:
    for net in (two_convolutions(), lw.testing.network("resnet-18", layout="NCHW", **SMALL["resnet-18"])):
        late = net.transform(f"{GROUPED},lw-graph-winograd,lw-graph-fold-constants,dce")
        late.module.verify()
        feeds = feeds_of(net)
        for got, want in zip(late.evaluate(**feeds), transformed(net).evaluate(**feeds), strict=True):
            np.testing.assert_array_equal(got, want)
        assert any("conv2d_winograd" in line for line in str(late).splitlines() if "lw_graph.group" in line)


@pytest.mark.slow(1.2)
@pytest.mark.parametrize(
    ("times_ms", "chosen"),
    [
        ([3, 2, 1, 3, 1, 2], [4, 2]),
        ([3, 2, 1, 1, 2, 3], [4, 0]),
        ([1, 1, 2, 1, 1, 1], [0, 0]),  # as fast is not faster
    ],
)
@pytest.mark.few(1)
def test_a_convolution_is_computed_the_way_that_is_fastest_on_record(times_ms: list[float], chosen: list[int]) -> None:
    net = two_convolutions()
    records = records_of(lw.extract_tasks(net, TARGET, winograd=True)[0], times_ms)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = lw.compile(net, TARGET, records, processes=1)
    assert tile_sizes(compiled) == chosen and all(kernel.tuned for kernel in compiled.kernels)
    count = sum(map(bool, chosen))
    assert (f"(2 tuned, {count} by Winograd)" if count else "(2 tuned)") in repr(compiled)
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(compiled.executor()(*feeds.values()), want, atol=1e-4 * float(np.abs(want).max()))
    assert tile_sizes(lw.compile(net, TARGET, records, processes=1, winograd=False)) == [0, 0]


@pytest.mark.slow(1.2)
@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_without_times_that_compare_a_convolution_is_direct() -> None:
    net = two_convolutions()
    records = records_of(lw.extract_tasks(net, TARGET, winograd=True)[0], [3, 2, 1, 3, 2, 1])
    assert tile_sizes(lw.compile(net, TARGET, processes=1)) == [0, 0]
    assert tile_sizes(lw.compile(net, TARGET, records[1:], processes=1)) == [0, 4]  # the first has only Winograd's
    wide = replace(records[0], target=TARGET.replace("cores=2", "cores=64 model=x86-64-v3"))
    assert tile_sizes(lw.compile(net, TARGET, [wide, *records[1:]], processes=1)) == [0, 4]
    with lw.apply_history_best(records):
        assert tile_sizes(lw.compile(net, TARGET, processes=1)) == [4, 4]


def wide_convolution(
    channels: int = 128, layout: str = "NHWC", images: int = 1, dilation: int = 1, pixels: tuple[int, int] = (14, 13)
) -> lw.Network:
    net = lw.Network("wide")
    last = layout == "NHWC"
    weight = np.random.default_rng(0).normal(size=(3, 3, channels, channels)).astype(np.float32)
    data = net.input("data", (images, *pixels, channels) if last else (images, channels, *pixels))
    kept = net.constant(weight if last else np.ascontiguousarray(weight.transpose(3, 2, 0, 1)), "w")
    net.output(net.relu(net.conv2d(data, kept, padding=dilation, dilation=dilation, layout=layout)))
    return net


def volume_convolution(
    channels: int, planes: int, size: int, depth: int = 3, layout: str = "NDHWC", images: int = 1, stride: int = 1
) -> lw.Network:
    net = lw.Network("volume")
    last = layout == "NDHWC"
    weight = np.random.default_rng(0).normal(size=(depth, 3, 3, channels, channels)).astype(np.float32)
    shape = (planes, size, size, channels) if last else (channels, planes, size, size)
    kept = net.constant(weight if last else np.ascontiguousarray(weight.transpose(4, 3, 0, 1, 2)), "w")
    data, padding = net.input("data", (images, *shape)), (depth // 2, 1, 1)
    net.output(net.relu(net.conv3d(data, kept, padding=padding, stride=(stride, 1, 1), layout=layout)))
    return net


@pytest.mark.parametrize("tile_size", [2, 4])
@pytest.mark.parametrize(
    ("layout", "depth", "images"), [("NDHWC", 3, 2), ("NCDHW", 3, 2), ("NCDHW", 1, 1), ("NDHWC", 2, 1)]
)
@pytest.mark.few(2)
def test_volumes_are_computed_by_tiles_of_their_planes(tile_size: int, layout: str, depth: int, images: int) -> None:
    net = volume_convolution(3, 4, 5, depth, layout, images)
    after = transformed(net, tile_size)
    names = [op.operator.data for op in after.module.walk() if isinstance(op, ApplyOp)]
    assert names == ["conv3d_winograd", "relu"]
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(after.evaluate(**feeds)[0], want, atol=1e-4 * float(np.abs(want).max()))


def test_volumes_that_windows_leave_planes_of_out_of_stay_direct() -> None:
    assert "winograd" not in str(transformed(volume_convolution(3, 4, 5, stride=2)).module)


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
@pytest.mark.parametrize("dilation", [1, 2])
def test_untuned_convolutions_of_many_channels_take_tiles_of_2_on_cpus(dilation: int) -> None:
    net = wide_convolution(dilation=dilation)
    compiled = lw.compile(net, TARGET, processes=1)
    assert tile_sizes(compiled) == [2]
    assert tile_sizes(lw.compile(net, TARGET, processes=1, winograd=False)) == [0]
    (direct,), _ = lw.extract_tasks(net, TARGET)
    assert tile_sizes(lw.compile(net, TARGET, records_of([direct], [1]), processes=1)) == [0]
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(compiled.executor()(*feeds.values()), want, atol=1e-5 * float(np.abs(want).max()))


@pytest.mark.parametrize(
    ("net", "target", "gains"),
    [
        (wide_convolution(), TARGET, True),
        (wide_convolution(24), TARGET, False),
        (wide_convolution(32, pixels=(56, 56)), TARGET, True),
        (wide_convolution(dilation=2), TARGET, True),
        (wide_convolution(dilation=3), TARGET, False),  # 81 tiles of 4x4 for 182 results of 3x3
        (wide_convolution(pixels=(3, 3)), TARGET, False),
        (wide_convolution(layout="NCHW"), TARGET, False),
        (wide_convolution(32, pixels=(7, 6)), "cuda model=h200", False),
        (wide_convolution(256, images=128), "cuda model=h200", True),
        (wide_convolution(256, images=128, dilation=2), "cuda model=h200", True),
        (wide_convolution(256, images=128, dilation=6), "cuda model=h200", False),  # tiles of 576 results for 182
        (wide_convolution(256, "NCHW", images=128), "cuda model=h200", True),
        (wide_convolution(256, images=128), "opencl model=mali-t860", False),
        (volume_convolution(64, 16, 56), "cuda model=h200", True),
        (volume_convolution(64, 16, 56, layout="NCDHW"), "cuda model=h200", True),
        (volume_convolution(128, 8, 28, depth=1), "cuda model=h200", True),
        (volume_convolution(16, 4, 1), "cuda model=h200", False),  # tiles of four results for one
        (volume_convolution(64, 16, 56), TARGET, False),  # nobody has measured them on a CPU
    ],
)
def test_which_convolutions_gain_untuned(net: lw.Network, target: str, gains: bool) -> None:
    device = parse_target(target)
    (group,) = (op for op in net.transform(grouping_for(device)).module.walk() if isinstance(op, GroupOp))
    assert gains_untuned(group, device) is gains


def test_weights_of_two_kernels_are_transformed_for_those_that_take_it() -> None:
    net = two_convolutions(shared=True)
    times_ms = [3, 3, 1, 1, 2, 2]
    records = records_of(lw.extract_tasks(net, TARGET, winograd=True)[0], times_ms)
    compiled = lw.compile(net, TARGET, records, processes=1)
    assert tile_sizes(compiled) == [4, 0]
    assert sorted(info.shape for info in compiled.plan.constants) == [(3, 3, 4, 4), (6, 6, 4, 4)]
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(compiled.executor()(*feeds.values()), want, atol=1e-4 * float(np.abs(want).max()))


def test_sums_of_16_bits_are_never_by_transforms() -> None:
    net = two_convolutions("float16")
    assert [task.name for task in lw.extract_tasks(net, TARGET, winograd=True)[0]] == ["conv2d_relu", "conv2d_add"]
    assert str(transformed(net)) == str(net.transform(f"{PREPARE},lw-graph-fold-constants,dce"))


@pytest.mark.slow(1.2)
def test_templates_of_each_way_are_tuned_and_the_faster_is_compiled(tmp_path: Path) -> None:
    net = two_convolutions()
    tasks, weights = lw.extract_template_tasks(net, TARGET, winograd=(4,))
    assert [task.name for task in tasks] == ["conv2d_nhwc_cpu", "conv2d_nhwc_winograd_cpu"] and weights == [2, 2]
    assert [task.instead_of for task in tasks] == [None, tasks[0].compute_dag.hash]
    log = tmp_path / "records.jsonl"
    for task in tasks:
        lw.tuners.RandomTuner(task).tune(1, callbacks=[lw.tuners.callbacks.log_to_file(log)])
    direct, by_tiles = rec.load(log)
    for first, second, chosen in ((2.0, 1.0, [4, 4]), (1.0, 2.0, [0, 0])):
        timed = [replace(direct, times_s=(first,)), replace(by_tiles, times_s=(second,))]
        assert tile_sizes(lw.compile(net, TARGET, timed, processes=1)) == chosen
