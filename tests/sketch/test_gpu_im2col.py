"""Windows laid out for products on a GPU: where they are offered, and that candidates are right."""

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


def image(channels: int, size: int, filters: int, taps: int, stride: int, last: bool) -> list[te.Tensor]:
    """A convolution of an image, padded where windows share elements."""
    shape = (1, size, size, channels) if last else (1, channels, size, size)
    kernel = (taps, taps, channels, filters) if last else (filters, channels, taps, taps)
    data, weight = te.placeholder(shape, name="data"), te.placeholder(kernel, name="kernel")
    convolve = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    return [data, weight, topi.nn.relu(convolve(data, weight, stride, taps // 2 if taps > stride else 0))]


def volume(channels: int, depth: int, size: int, filters: int, stride: int = 1, last: bool = False) -> list[te.Tensor]:
    shape, taps = (depth, size, size), (3, 3, 3)
    data = te.placeholder((1, *shape, channels) if last else (1, channels, *shape), name="data")
    kernel = te.placeholder((*taps, channels, filters) if last else (filters, channels, *taps), name="kernel")
    convolve = topi.nn.conv3d_ndhwc if last else topi.nn.conv3d_ncdhw
    return [data, kernel, convolve(data, kernel, stride, 1)]


def ways(tensors: list[te.Tensor], target: str = CUDA) -> set[bool]:
    """Where sketches are products, and where tiles of windows."""
    return {"lw-im2col" in sketch.template for sketch in lw.SearchTask(tensors, target=target).sketches}


def test_windows_with_a_stride_are_products() -> None:
    """Those of few multiply-adds beside tiles of windows."""
    assert ways(layer(192, 12968, 512, 3, 2)) == {True}
    assert ways(layer(64, 10139, 96, 3, 4)) == {True, False}
    assert ways(layer(64, 384, 96, 3, 4)) == {False}


def test_windows_of_images_with_channels_last_and_patches_are_products() -> None:
    assert ways(image(96, 40, 160, 3, 2, last=True)) == {True, False}
    assert ways(image(256, 64, 192, 3, 2, last=True)) == {True}
    assert ways(image(96, 56, 192, 2, 2, last=False)) == {True, False}
    assert ways(image(3, 224, 768, 16, 16, last=False)) == {True}
    assert ways(volume(128, 8, 28, 256, 2, last=True)) == {True}


def test_others_are_tiles_of_windows() -> None:
    """Few filters, windows of which each element is read by many, or that move by one, and other devices."""
    assert ways(layer(512, 11600, 8, 9, 4)) == {False}
    assert ways(layer(80, 3928, 96, 15, 4)) == {False}
    assert ways(layer(112, 5824, 192, 5, 1)) == {False}
    assert ways(layer(192, 12968, 512, 3, 2), "llvm cores=2") == {False}
    assert ways(image(64, 56, 64, 3, 2, last=False)) == {False}
    assert ways(image(64, 56, 64, 5, 2, last=True)) == {False}
    assert ways(image(24, 40, 40, 3, 1, last=True)) == {False}
    assert ways(image(3, 224, 64, 3, 2, last=True)) == {False}
    assert ways(volume(8, 16, 20, 16)) == {False}
    assert ways(volume(64, 8, 28, 64, 2)) == {False}


def test_candidates_of_volumes_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_gpu_sliced_products, gpu_im2col):
        monkeypatch.setattr(module, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(volume(8, 3, 6, 36, 2, last=True), target=CUDA)
    (sketch, *_) = (sketch for sketch in task.sketches if "im2col" in sketch.name)
    check_candidates(task, sketch, 1)


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


@pytest.mark.parametrize(
    "tensors",
    [
        pytest.param(image(20, 9, 36, 3, 2, last=True), id="channels last"),
        pytest.param(image(5, 12, 36, 3, 3, last=False), id="patches"),
    ],
)
@pytest.mark.few(3)
def test_candidates_of_other_windows_are_right(tensors: list[te.Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_gpu_sliced_products, gpu_im2col):
        monkeypatch.setattr(module, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(tensors, target=CUDA)
    found = [sketch for sketch in task.sketches if "im2col" in sketch.name]
    assert found
    for sketch in found:
        check_candidates(task, sketch, 1)
