"""Convolutions without the taps that read padding: the same results, fewer products, where they are worth it."""

from typing import Any

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.passes import skip_padding
from loopwright.graph.tasks import grouping_for

CPU = "llvm cores=1 vector_bytes=64 vector_registers=32"


def convolution(
    name: str, data: Any, window: Any, channels: int, filters: int, last: bool, **options: Any
) -> lw.Network:
    """A convolution of `channels` of two images, in the layout of their number of axes."""
    net: Any = lw.Network("convolution")
    layout = f"N{'DHW'[-len(data) :]}C" if last else f"NC{'DHW'[-len(data) :]}"
    layout = layout if len(data) > 1 else ("NWC" if last else "NCW")
    given = net.input("data", (2, *data, channels) if last else (2, channels, *data))
    ends = (channels, 1) if name == "depthwise_conv2d" else (filters, channels) if not last else (channels, filters)
    weight = np.random.default_rng(0).standard_normal((*window, *ends) if last else (*ends, *window), np.float32)
    net.output(getattr(net, name)(given, net.constant(weight, "w"), layout=layout, **options))
    return net


def windows(net: lw.Network) -> list[tuple[int, ...]]:
    """The taps of each convolution, by its weights' shape."""
    found = [op for op in net.module.walk() if isinstance(op, ApplyOp) and "conv" in op.operator.data]
    return [tuple(op.inputs[1].type.get_shape()) for op in found]  # type: ignore[attr-defined]


def check(net: lw.Network, pipeline: str, atol: float = 1e-5) -> lw.Network:
    after = net.transform(f"{pipeline},lw-graph-simplify,cse,dce")
    after.module.verify()
    feeds = feeds_of(net)
    for got, want in zip(after.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, atol=atol * float(np.abs(want).max()))
    return after


CASES: list[tuple[str, Any, Any, dict[str, Any], Any]] = [
    ("conv2d", (4, 5), (3, 3), {"padding": 5, "dilation": 5}, (1, 1)),
    ("conv2d", (4, 5), (3, 3), {"padding": 4, "dilation": 4}, (1, 3)),
    ("conv2d", (4, 5), (3, 3), {"padding": 1}, (3, 3)),
    ("conv2d", (4, 5), (3, 3), {"padding": (0, 9, 9, 1), "dilation": 3}, (2, 2)),
    ("conv2d", (1, 1), (3, 3), {"padding": 1, "stride": 2}, (1, 1)),
    ("conv2d", (2, 7), (5, 5), {"padding": (4, 0), "stride": (3, 2)}, (4, 5)),
    ("conv2d", (1, 2), (5, 5), {"padding": 2, "stride": 2}, (1, 2)),
    ("depthwise_conv2d", (2, 2), (5, 5), {"padding": 2}, (3, 3)),
    ("conv1d", (3,), (5,), {"padding": 6, "dilation": 3}, (1,)),
    ("conv3d", (1, 2, 3), (3, 3, 3), {"padding": 1}, (1, 3, 3)),
]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("name", "data", "window", "options", "left"), CASES)
@pytest.mark.few(4)
def test_taps_that_read_padding_alone_go(
    name: str, data: Any, window: Any, options: dict[str, Any], left: Any, last: bool
) -> None:
    after = check(convolution(name, data, window, 3, 4, last, **options), "lw-graph-skip-padding")
    ((*weight,),) = windows(after)
    assert tuple(weight[: len(left)] if last else weight[2:]) == left


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("extents", "padding", "dilation", "parts"),
    [((7, 6), 5, 5, 9), ((7, 3), (5, 4), (5, 4), 3), ((6, 7), (0, 4, 4, 4), (2, 4), 9), ((8, 8), (9, 9, 3, 3), 5, 9)],
)
@pytest.mark.few(2)
def test_taps_one_by_one(
    last: bool, extents: Any, padding: Any, dilation: Any, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skip_padding, "PER_BYTE", 0)
    monkeypatch.setattr(skip_padding, "MOST_LEFT", 1)
    net = convolution("conv2d", extents, (3, 3), 5, 4, last, padding=padding, dilation=dilation)
    after = check(net, "lw-graph-skip-padding{by_taps=true}")
    assert len(windows(after)) == parts
    assert {shape[:2] if last else shape[2:] for shape in windows(after)} == {(1, 1)}


@pytest.mark.parametrize(
    ("channels", "image", "dilation", "target", "count"),
    [
        (512, 16, 12, CPU, 9),
        (512, 16, 12, "cuda model=h200", 1),
        (512, 16, 2, CPU, 1),  # seven eighths of the products are with data
        (8, 16, 12, CPU, 1),  # what is moved takes longer
        (512, 16, 16, CPU, 1),  # of one tap
    ],
)
def test_where_taps_are_worth_it(channels: int, image: int, dilation: int, target: str, count: int) -> None:
    net = convolution("conv2d", (image, image), (3, 3), channels, 16, True, padding=dilation, dilation=dilation)
    after = net.transform(grouping_for(resolve_target(target)))
    assert len(windows(after)) == count


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_compiled_taps_give_what_the_convolution_does() -> None:
    net: Any = lw.Network("atrous")
    weight = np.random.default_rng(0).standard_normal((3, 3, 512, 16)).astype(np.float32)
    data = net.input("data", (1, 12, 12, 512))
    net.output(net.relu(net.conv2d(data, net.constant(weight, "w"), padding=9, dilation=9, layout="NHWC")))
    compiled = lw.compile(net, CPU, processes=1)
    assert sum("conv2d" in compiled.kernels[step.kernel].label for step in compiled.plan.steps) == 9
    assert len(compiled.kernels) < len(compiled.plan.steps)
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(compiled.executor()(*feeds.values()), want, atol=1e-5 * float(np.abs(want).max()))


@pytest.mark.parametrize(
    ("rows", "window", "options"),
    [
        (2, (3, 3), {"padding": (6, 5, 0, 5), "stride": (3, 1), "dilation": (1, 5)}),  # data begin behind the last row
        (1, (2, 2), {"padding": (3, 8), "dilation": 5}),  # data lie between the taps
    ],
)
@pytest.mark.few(2)
def test_what_reads_padding_alone_stays(
    rows: int, window: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skip_padding, "PER_BYTE", 0)
    net = convolution("conv2d", (rows, 4), window, 3, 4, True, **options)
    assert windows(check(net, "lw-graph-skip-padding{by_taps=true}")) == [(*window, 3, 4)]


def test_what_is_padded_with_other_numbers_keeps_its_taps() -> None:
    net = convolution("conv2d", (4, 5), (3, 3), 3, 4, True, padding=5, dilation=5, pad_value=0.5)
    assert windows(check(net, "lw-graph-skip-padding")) == [(3, 3, 3, 4)]
