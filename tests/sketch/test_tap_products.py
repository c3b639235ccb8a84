"""Transposed convolutions as products: where they are offered, and that candidates are right."""

import pytest
from gpu_sketches import check_candidates
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi
from loopwright.search.estimates.col2im_model import Col2imModel
from loopwright.search.estimates.cpu_col2im_model import CpuCol2imModel
from loopwright.search.rules import _gpu_sliced_products

CUDA = "cuda model=h200"
CPU = "llvm cores={} vector_bytes={} vector_registers=32 l1_bytes=49152 l2_bytes=1048576 l3_bytes=33554432"


def layer(
    channels: int, size: int, filters: int, window: tuple[int, int, int], images: int = 1, last: bool = False
) -> list[te.Tensor]:
    """A transposed convolution with taps, stride and padding, and a relu behind it."""
    taps, stride, padding = window
    data = te.placeholder((images, size, size, channels) if last else (images, channels, size, size), name="data")
    kernel = te.placeholder((taps, taps, channels, filters) if last else (channels, filters, taps, taps), name="kernel")
    made = topi.nn.conv2d_transpose_nhwc if last else topi.nn.conv2d_transpose_nchw
    return [data, kernel, topi.nn.relu(made(data, kernel, stride, padding))]


def ways(tensors: list[te.Tensor], target: str = CUDA) -> set[bool]:
    """Where sketches are products, and where phases."""
    return {"lw-col2im" in sketch.template for sketch in lw.SearchTask(tensors, target=target).sketches}


def test_products_are_offered_where_they_are_faster() -> None:
    """Beside phases where these are near: an H200 takes 171 us and 545, 249 and 250, 35 and 19 of the first three."""
    assert ways(layer(768, 75, 96, (3, 2, 1))) == {True}
    assert ways(layer(128, 75, 256, (4, 2, 1))) == {True, False}
    assert ways(layer(24, 33, 384, (4, 2, 1))) == {False}
    assert ways(layer(768, 224, 512, (5, 3, 1))) == {False}  # 4.8 GB would be moved
    assert ways(layer(3, 64, 320, (5, 3, 1))) == {False}  # most time goes into what is added up


def test_a_cpu_takes_products_where_they_are_near() -> None:
    """One core of a Zen 5 takes 10.9 ms by phases and 4.5, 48 and 27, 8.0 and 16.0, 10.2 and 23.4, 3.9 and 6.8."""
    one, two = CPU.format(1, 64), CPU.format(2, 64)
    assert ways(layer(384, 56, 24, (4, 2, 1)), one) == ways(layer(384, 56, 24, (4, 2, 1)), two) == {True}
    assert ways(layer(320, 75, 384, (2, 2, 0)), one) == {True}
    assert ways(layer(320, 75, 384, (2, 2, 0), last=True), one) == {True}
    assert ways(layer(16, 64, 512, (4, 2, 1)), one) == {False}
    assert ways(layer(8, 112, 256, (4, 2, 1)), one) == {False}
    assert ways(layer(768, 7, 512, (4, 2, 1)), one) == {False}


def test_rows_of_the_kernel_lie_side_by_side_where_many_pixels_read_them() -> None:
    many, few = (lw.SearchTask(layer(160, n, 64, (4, 2, 1)), target=CPU.format(1, 64)) for n in (64, 5))
    assert all("by_rows=true" in sketch.template for sketch in many.sketches)
    assert not any("by_rows" in sketch.template for sketch in few.sketches)


def test_others_are_left_as_they_are() -> None:
    """Convolutions with one phase, other devices, and products."""
    data, kernel = te.placeholder((1, 64, 56, 56), name="data"), te.placeholder((64, 64, 3, 3), name="kernel")
    assert ways([data, kernel, topi.nn.conv2d_nchw(data, kernel, 2, 1)]) == {False}
    assert ways(layer(64, 56, 64, (3, 1, 1))) == {False}
    rows, three = te.placeholder((128, 768), name="rows"), te.placeholder((768, 3, 768), name="three")
    terms = te.reduce_axis((0, 768))
    heads = te.compute((3, 128, 768), lambda h, i, j: te.sum(rows[i, terms] * three[terms, h, j], axis=terms))
    assert ways([rows, three, heads]) == {False}
    assert ways(layer(768, 75, 96, (3, 2, 1)), "opencl model=mali-g71") == {False}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("window", [(3, 2, 1), (5, 3, 1), (2, 2, 0)])
@pytest.mark.few(3)
def test_candidates_are_right(last: bool, window: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(Col2imModel, "is_offered", True)
    task = lw.SearchTask(layer(70, 7, 8, window, 2, last), target=CUDA)
    found = [sketch for sketch in task.sketches if "col2im" in sketch.name]
    assert found
    for sketch in found:
        check_candidates(task, sketch, 1)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("window", [(3, 2, 1), (5, 3, 1), (2, 2, 0), (4, 2, 1)])
@pytest.mark.parametrize(("size", "cores", "vector_bytes"), [(7, 1, 64), (21, 2, 32)])
@pytest.mark.few(3)
def test_candidates_of_a_cpu_are_right(
    last: bool,
    window: tuple[int, int, int],
    size: int,
    cores: int,
    vector_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CpuCol2imModel, "is_offered", True)
    task = lw.SearchTask(layer(19, size, 11, window, 2, last), target=CPU.format(cores, vector_bytes))
    assert all("lw-col2im" in sketch.template for sketch in task.sketches)
    for sketch in task.sketches[:3]:
        check_kernels(task, sketch, size, 1)
