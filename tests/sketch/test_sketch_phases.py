"""Strided rows laid out by phases: what is so, that results are right, and that others are read as before."""

from collections.abc import Callable

import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi

WIDE = "llvm cores=1 vector_bytes=64 vector_registers=32"
NARROW = "llvm cores=1 vector_bytes=32 vector_registers=16"


def convolution(
    channels: int, size: int, filters: int, window: int, stride: int, groups: int = 1, batch: int = 1, pad: int = -1
) -> list[te.Tensor]:
    data = te.placeholder((batch, channels, size, size), name="data")
    kernel = te.placeholder((filters, channels // groups, window, window), name="kernel")
    pad = window // 2 if pad < 0 else pad
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, stride, pad, groups=groups))]


PHASES: dict[str, Callable[[], list[te.Tensor]]] = {
    "each channel apart": lambda: convolution(4, 23, 4, 5, 2, groups=4),
    "rows of an odd length": lambda: convolution(3, 27, 3, 3, 2, groups=3, batch=2),
    "groups": lambda: convolution(8, 17, 12, 3, 2, groups=4),
    "few filters": lambda: convolution(5, 21, 3, 5, 2),
    "no padding": lambda: convolution(4, 25, 4, 3, 2, groups=4, pad=0),
    "every third": lambda: convolution(2, 31, 2, 5, 3, groups=2),
    "rows of three": lambda: convolution(4, 6, 4, 5, 2, groups=4, batch=2),
    "rows of two": lambda: convolution(3, 3, 3, 3, 2, groups=3),
    "every fourth, fewer taps than two steps": lambda: convolution(2, 41, 2, 7, 4, groups=2),
}


@pytest.mark.parametrize("target", [WIDE, NARROW, "llvm cores=2 vector_bytes=32 vector_registers=16"])
@pytest.mark.parametrize("name", PHASES)
@pytest.mark.few(3)
def test_candidates_are_right(name: str, target: str) -> None:
    task = lw.SearchTask(PHASES[name], target=target)
    sketches = [sketch for sketch in task.sketches if sketch.name.startswith("phases_")]
    assert sketches
    for sketch in sketches:
        check_kernels(task, sketch, 1, 2)


def test_vectors_are_read_in_place() -> None:
    task = lw.SearchTask(PHASES["each channel apart"], target=NARROW)
    (sketch,) = [sketch for sketch in task.sketches if sketch.name.startswith("phases_")]
    assert sketch.name == "phases_xx_direct" and 'layout="i0","i1","i2","i3%2","i3/2"' in sketch.template
    assert "lw-cache-read" not in sketch.template
    copied = lw.SearchTask(PHASES["no padding"], target=NARROW)
    (sketch,) = [sketch for sketch in copied.sketches if sketch.name.startswith("phases_")]
    assert 'label="data_phases"' in sketch.template


@pytest.mark.parametrize(
    "tensors",
    [
        lambda: convolution(4, 23, 4, 5, 1, groups=4),  # neighbours are next to each other
        lambda: convolution(4, 23, 4, 1, 2, groups=4),  # each element is read once
        lambda: convolution(4, 49, 4, 7, 6, groups=4),  # too far apart to load vectors of
        lambda: convolution(4, 23, 32, 3, 2),  # filters enough for lanes along them
        lambda: convolution(4, 23, 32, 3, 2, groups=2),  # in each group
    ],
    ids=["unit", "one tap", "far", "filters", "groups"],
)
def test_others_are_read_as_they_are(tensors: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(tensors, target=WIDE)
    assert not [sketch.name for sketch in task.sketches if "phases" in sketch.name]


def test_results_of_another_rule_are_no_phases() -> None:
    def products() -> list[te.Tensor]:
        a, w, v = (
            te.placeholder(shape, name=name) for shape, name in (((4, 256), "a"), ((64, 256), "w"), ((64, 96), "v"))
        )
        return [a, w, v, topi.matmul(topi.nn.matmul(a, w, transpose_b=True), v)]

    names = {sketch.name for sketch in lw.SearchTask(products, target=NARROW).sketches}
    assert {"dots_j_direct", "dots_j_inner", "dots_j_root"} <= names
