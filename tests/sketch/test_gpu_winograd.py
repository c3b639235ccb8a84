"""Convolutions of large images by Winograd's transforms on a GPU: where they are offered, and that they are right."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects.minimal_filtering import F2
from loopwright.search.estimates.gpu_model import part_of_places
from loopwright.search.estimates.winograd_model import WinogradModel

TARGET = "cuda model=h200"


def layer(
    images: int, channels: int, size: int, filters: int, window: int = 3, stride: int = 1, constant: bool = False
) -> list[te.Tensor]:
    """A convolution with a bias and relu."""
    data = te.placeholder((images, channels, size, size), name="data")
    kernel = te.placeholder((filters, channels, window, window), name="kernel", constant=constant)
    bias = te.placeholder((filters,), name="bias")
    found = topi.nn.conv2d_nchw(data, kernel, stride, window // 2)
    return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(found, bias))]


def volume(images: int, channels: int, extents: tuple[int, int, int], filters: int, window: int = 3) -> list[te.Tensor]:
    """A convolution of volumes."""
    data = te.placeholder((images, channels, *extents), name="data")
    kernel = te.placeholder((filters, channels, window, window, window), name="kernel")
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, window // 2)]


def ways(tensors: list[te.Tensor], target: str = TARGET) -> set[bool]:
    """Where sketches are by transforms, and where not."""
    return {"lw-winograd" in sketch.template for sketch in lw.SearchTask(tensors, target=target).sketches}


def test_transforms_are_offered_where_they_save_more_than_they_cost() -> None:
    """The direct way stays beside them where they save little more."""
    assert ways(layer(32, 256, 14, 256)) == {True}
    assert ways(layer(1, 64, 128, 64)) == {True, False}
    assert ways(layer(1, 64, 56, 64)) == {False}  # measured: 11.9 us by transforms, 11.4 directly
    assert ways(layer(8, 24, 56, 24)) == {False}  # 14.8 us and 13.5


def test_volumes_are_offered_transforms_wherever_these_save_multiply_adds() -> None:
    assert ways(volume(1, 64, (8, 56, 56), 64)) == {True}
    assert ways(volume(1, 24, (7, 20, 20), 128)) == {True, False}  # measured: 13.8 us by transforms, 22.5 directly
    assert ways(volume(1, 48, (2, 7, 7), 64, window=5)) == {False}  # 13.1 us and 10.7


def test_larger_windows_are_taken_in_tiles_that_round_little_more_than_sums() -> None:
    def sizes(tensors: list[te.Tensor]) -> set[str]:
        found = [sketch.template.split("tile_size=") for sketch in lw.SearchTask(tensors, target=TARGET).sketches]
        return {parts[1][0] for parts in found if len(parts) > 1}

    assert sizes(layer(8, 64, 56, 64, window=5)) == {"3"}
    assert sizes(layer(8, 64, 56, 64, window=7)) == {"4"}
    assert sizes(layer(8, 64, 56, 64, window=6)) == {"3"}
    assert not sizes(layer(8, 64, 56, 64, window=5, constant=True))  # a network may be asked for no transforms


def test_others_are_computed_directly() -> None:
    """Filters that a network transforms ahead, other windows and strides, other devices."""
    assert ways(layer(32, 256, 14, 256, constant=True)) == {False}
    assert ways(layer(4, 96, 28, 128, window=1)) == {False}
    assert ways(layer(32, 256, 28, 256, stride=2)) == {False}
    assert ways(layer(32, 64, 14, 64), "llvm cores=2") == {False}


@pytest.mark.parametrize(
    ("images", "size", "window", "planes"),
    [(1, 8, 3, 0), (2, 7, 7, 0), (2, 7, 3, 0), (2, 6, 3, 3), (3, 5, 3, 0), (1, 10, 5, 0), (1, 8, 5, 2)],
)
@pytest.mark.few(3)
def test_candidates_are_right(
    images: int, size: int, window: int, planes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WinogradModel, "gains", True)
    monkeypatch.setattr(WinogradModel, "precise", property(lambda self: self.matrices.output == window // 2 + 1))
    tensors = volume(images, 5, (planes, size, size), 9, window) if planes else layer(images, 5, size, 9, window)
    task = lw.SearchTask(tensors, target=TARGET)
    sketch = next(sketch for sketch in task.sketches if "winograd" in sketch.name)
    for row in (sketch.default, *sketch.sample(np.random.default_rng(size), 1)):
        found = lw.interpret(task.schedule_module(sketch.schedule(row)), *task.reference.inputs)
        atol = 1e-5 if window == 3 else task.reference.tolerances[0].atol
        np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-5, atol=atol)


def test_filters_behind_their_channels_are_read_in_order() -> None:
    """Into shared memory, as they lie; those with filters last are read by the threads that transform them."""

    def copied(last: bool, filters: int = 256) -> bool:
        data = te.placeholder((8, 14, 14, 256) if last else (8, 256, 14, 14), name="data")
        kernel = te.placeholder((3, 3, 256, filters) if last else (filters, 256, 3, 3), name="kernel")
        by_tiles = topi.nn.conv2d_winograd_nhwc if last else topi.nn.conv2d_winograd_nchw
        task = lw.SearchTask([data, kernel, by_tiles(data, kernel, 1, 2)], target=TARGET)
        return all('buffer="kernel" scope="shared"' in sketch.template for sketch in task.sketches)

    assert copied(last=False) and copied(last=False, filters=72)
    assert not copied(last=True)
    assert not copied(last=False, filters=1000)  # threads of a block would need rows of two channels


def test_parts_of_filters_fit_shared_memory() -> None:
    """Blocks of threads go on from the last channel of one part of a window to the first one of the next part."""
    task = lw.SearchTask(layer(1, 39, 24, 280, window=9), target=TARGET)
    by_parts = [sketch for sketch in task.sketches if "lw-winograd" in sketch.template]
    assert by_parts
    for sketch in by_parts:
        lower_to_kernel(task.schedule_module(sketch.schedule(sketch.default)))  # asked for 2,358,720 bytes
    staged = lw.SearchTask(layer(1, 64, 48, 256, window=9), target=TARGET).sketches
    assert any('buffer="kernel" scope="shared"' in sketch.template for sketch in staged)


def test_planes_that_lie_far_apart_are_in_shared_memory_one_at_a_time() -> None:
    """Tiles of a tap along planes are a plane of tiles further on, and what lies between would be copied with them."""
    data = te.placeholder((1, 16, 6, 32, 32), name="data")
    kernel = te.placeholder((4, 4, 3, 16, 32), name="kernel")
    volumes = topi.nn.conv3d_winograd_ncdhw(data, kernel, 1, 2, pre_computed=True)
    task = lw.SearchTask([data, kernel, volumes], target=TARGET)
    assert 'lw-split{block="bgemm" loop="pz" factors=0,1}' in task.default_schedule
    for sketch in task.sketches:
        for row in (sketch.default, *sketch.sample(np.random.default_rng(0), 1)):
            found = lw.interpret(task.schedule_module(sketch.schedule(row)), *task.reference.inputs)
            expected, tolerance = task.reference.expected[0], task.reference.tolerances[0]
            np.testing.assert_allclose(found, expected, **tolerance._asdict())


def test_places_of_windows_are_counted_once() -> None:
    for results, taps, stride, dilation in [(4, 3, 1, 1), (4, 3, 2, 1), (7, 5, 1, 2), (8, 3, 2, 4), (4, 3, 1, 12)]:
        places = {r * stride + t * dilation for r in range(results) for t in range(taps)}
        part = part_of_places(np.array([results * 1.0]), np.array([taps * 1.0]), stride, dilation)
        np.testing.assert_allclose(part * results * taps, [len(places)])


def test_filters_that_are_transformed_ahead_save_their_transform() -> None:
    target = lw.SearchTask(layer(1, 8, 8, 8), target=TARGET).target
    shape = ((14, 14), 512, 512)
    first, ahead = (WinogradModel(target, F2, 1, *shape, ahead=known) for known in (False, True))
    assert first.saved_s == ahead.saved_s and first.transforms_s > 1.5 * ahead.transforms_s
