"""Convolutions by Winograd's transforms on a CPU: where they are taken, and that they are right."""

import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi
from loopwright.search.estimates.cpu_winograd_model import CpuWinogradModel

TARGET = "llvm cores={} vector_bytes={} vector_registers=32 l1_bytes=49152 l2_bytes=2097152"


def layer(
    images: int, channels: int, size: int, filters: int, window: int = 3, stride: int = 1, constant: bool = False
) -> list[te.Tensor]:
    """A convolution with relu."""
    data = te.placeholder((images, channels, size, size), name="data")
    kernel = te.placeholder((filters, channels, window, window), name="kernel", constant=constant)
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, stride, window // 2))]


def ways(tensors: list[te.Tensor], cores: int = 1, vector_bytes: int = 64) -> set[bool]:
    """Where sketches are by transforms, and where not."""
    task = lw.SearchTask(tensors, target=TARGET.format(cores, vector_bytes))
    return {"lw-winograd" in sketch.template for sketch in task.sketches}


def test_transforms_take_the_place_of_the_direct_way_where_they_save_clearly_more_than_they_cost() -> None:
    assert ways(layer(32, 256, 14, 256)) == ways(layer(32, 256, 14, 256), cores=2) == {True}
    assert ways(layer(1, 256, 56, 256)) == {True}
    assert ways(layer(16, 64, 56, 64)) == {False}  # measured: 23.8 ms by transforms, 18.5 directly
    assert ways(layer(8, 512, 40, 16)) == {False}  # 27.0 ms and 12.6


def test_volumes_are_taken_where_transforms_save_more_than_they_cost() -> None:
    def volume(channels: int, planes: int, size: int) -> list[te.Tensor]:
        data = te.placeholder((1, channels, planes, size, size), name="data")
        kernel = te.placeholder((channels, channels, 3, 3, 3), name="kernel")
        return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, 1)]

    assert ways(volume(64, 8, 56)) == {True}  # measured on a Zen 5: 22.4 ms, 35.4 directly
    assert ways(volume(16, 8, 32)) == {False}


def test_narrow_vectors_have_more_to_save() -> None:
    tensors = layer(2, 128, 56, 96)
    assert (ways(tensors), ways(tensors, vector_bytes=16)) == ({False}, {True})


def test_others_are_computed_directly() -> None:
    """Filters that a network transforms ahead, other windows and strides."""
    assert ways(layer(32, 256, 14, 256, constant=True)) == {False}
    assert ways(layer(32, 256, 14, 256, window=5)) == {False}
    assert ways(layer(32, 256, 28, 256, stride=2)) == {False}


@pytest.mark.parametrize(("images", "size", "cores"), [(1, 8, 1), (2, 7, 2), (3, 5, 2)])
@pytest.mark.few(1)
def test_candidates_are_right(images: int, size: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuWinogradModel, "gains", True)
    task = lw.SearchTask(layer(images, 21, size, 37), target=TARGET.format(cores, 32))
    assert all("lw-winograd" in sketch.template for sketch in task.sketches)
    for sketch in task.sketches[:2]:
        check_kernels(task, sketch, size, 1)
