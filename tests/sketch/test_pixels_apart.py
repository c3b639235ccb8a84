"""Strided depthwise convolutions with lanes along channels: what has them, and that results are right."""

from collections.abc import Callable

import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi

WIDE = "llvm cores=1 vector_bytes=64 vector_registers=32"
NARROW = "llvm cores=1 vector_bytes=32 vector_registers=16"
THREADS = "llvm cores=2 vector_bytes=32 vector_registers=16"


def depthwise(
    channels: int,
    size: tuple[int, int],
    window: int,
    stride: int | tuple[int, int] = 2,
    batch: int = 1,
    pad: int | None = None,
    dilation: int = 1,
    times: int = 1,
    constant: bool = False,
    dtype: str = "float32",
    epilogue: bool = True,
) -> list[te.Tensor]:
    data = te.placeholder((batch, channels, *size), dtype, name="data")
    kernel = te.placeholder((channels * times, 1, window, window), dtype, name="kernel", constant=constant)
    pad = dilation * (window // 2) if pad is None else pad
    found = topi.nn.conv2d_nchw(data, kernel, stride, pad, dilation, channels)
    return [data, kernel, topi.nn.relu(found) if epilogue else found]


CASES: dict[str, Callable[[], list[te.Tensor]]] = {
    "padded": lambda: depthwise(16, (13, 13), 3),
    "large windows of short rows": lambda: depthwise(32, (21, 6), 7),
    "a batch": lambda: depthwise(16, (9, 11), 5, batch=3),
    "channels that leave lanes idle": lambda: depthwise(24, (11, 11), 3),
    "not padded": lambda: depthwise(16, (12, 15), 3, pad=0),
    "every third, and dilated": lambda: depthwise(16, (19, 23), 3, stride=3, dilation=2),
    "strided along rows alone": lambda: depthwise(16, (10, 17), 3, stride=(1, 2)),
    "constant filters": lambda: depthwise(32, (11, 11), 3, constant=True),
    "doubles": lambda: depthwise(16, (9, 9), 3, dtype="float64"),
    "sums as they are": lambda: depthwise(16, (9, 9), 3, epilogue=False),
    "results of one pixel": lambda: depthwise(16, (3, 4), 3, pad=0),
}


@pytest.mark.parametrize("target", [WIDE, NARROW, THREADS])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(4)
def test_candidates_are_right(name: str, target: str) -> None:
    task = lw.SearchTask(CASES[name], target=target)
    sketches = [sketch for sketch in task.sketches if "_pixels" in sketch.name]
    assert sketches or name == "results of one pixel"
    for sketch in sketches:
        check_kernels(task, sketch, 3, 3)


@pytest.mark.parametrize(
    "tensors",
    [
        lambda: depthwise(16, (13, 13), 3, stride=1),  # neighbours are next to each other
        lambda: depthwise(16, (13, 13), 3, stride=(2, 1)),
        lambda: depthwise(8, (13, 13), 3),  # fewer channels than lanes
        lambda: depthwise(16, (13, 13), 3, times=2),  # two filters of a channel
        lambda: depthwise(16, (13, 13), 1, pad=0),  # each element is read once
    ],
    ids=["unit", "rows one after the other", "few channels", "two filters", "one tap"],
)
def test_others_have_other_lanes(tensors: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(tensors, target=WIDE)
    assert not [sketch.name for sketch in task.sketches if "_pixels" in sketch.name]


def test_pixels_are_laid_out_in_tiles_with_their_padding() -> None:
    task = lw.SearchTask(CASES["padded"], target=NARROW)
    (sketch,) = [sketch for sketch in task.sketches if "_pixels" in sketch.name]
    assert sketch.name == "ff_root_pixels"
    assert 'lw-compute-inline{block="pad_temp"}' in sketch.template
    assert 'lw-transform-layout{block="pad_temp_pixels" buffer="pad_temp_pixels" layout="ax0","ax2","ax3","ax1"}' in (
        sketch.template
    )
    ahead = lw.SearchTask(CASES["constant filters"], target=NARROW)
    assert [sketch.name for sketch in ahead.sketches if "_pixels" in sketch.name] == ["ff_ahead_pixels"]


def test_they_are_chosen_where_rows_leave_lanes_idle() -> None:
    """Twelve us for 75, and 82 for 638, where rows are lanes (one core of a Zen 5)."""
    for channels, size, batch in ((384, (13, 6), 2), (96, (80, 7), 8)):
        task = lw.SearchTask(lambda c=channels, s=size, n=batch: depthwise(c, s, 5, batch=n), target=WIDE)
        assert "pad_temp_pixels" in task.default_schedule
