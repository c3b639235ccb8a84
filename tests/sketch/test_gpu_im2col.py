"""Convolutions along one axis as products on a GPU: where they are offered, and that candidates are right."""

import pytest
from gpu_sketches import check_candidates

import loopwright as lw
from loopwright import te, topi
from loopwright.search.rules import _gpu_sliced_products, gpu_im2col

CUDA = "cuda model=h200"


def layer(channels: int, length: int, filters: int, taps: int, stride: int, images: int = 1) -> list[te.Tensor]:
    """A convolution with a relu behind it."""
    data = te.placeholder((images, channels, length), name="data")
    kernel = te.placeholder((filters, channels, taps), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv1d_ncw(data, kernel, stride))]


def ways(tensors: list[te.Tensor], target: str = CUDA) -> set[bool]:
    """Where sketches are products, and where tiles of windows."""
    return {"lw-im2col" in sketch.template for sketch in lw.SearchTask(tensors, target=target).sketches}


def test_windows_with_a_stride_are_products() -> None:
    """Those of few multiply-adds beside tiles of windows."""
    assert ways(layer(192, 12968, 512, 3, 2)) == {True}
    assert ways(layer(64, 10139, 96, 3, 4)) == {True, False}
    assert ways(layer(64, 384, 96, 3, 4)) == {False}


def test_others_are_tiles_of_windows() -> None:
    """Few filters, windows of which each element is read by many, or that move by one, images, and other devices."""
    assert ways(layer(512, 11600, 8, 9, 4)) == {False}
    assert ways(layer(80, 3928, 96, 15, 4)) == {False}
    assert ways(layer(112, 5824, 192, 5, 1)) == {False}
    assert ways(layer(192, 12968, 512, 3, 2), "llvm cores=2") == {False}
    data, kernel = te.placeholder((1, 64, 56, 56), name="data"), te.placeholder((64, 64, 3, 3), name="kernel")
    assert ways([data, kernel, topi.nn.conv2d_nchw(data, kernel, 2, 1)]) == {False}


@pytest.mark.parametrize(("length", "taps", "stride"), [(80, 3, 2), (141, 5, 4)])
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.few(3)
def test_candidates_are_right(
    length: int, taps: int, stride: int, images: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (_gpu_sliced_products, gpu_im2col):
        monkeypatch.setattr(module, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(layer(40, length, 36, taps, stride, images), target=CUDA)
    found = [sketch for sketch in task.sketches if "im2col" in sketch.name]
    assert found
    for sketch in found:
        check_candidates(task, sketch, 1)
