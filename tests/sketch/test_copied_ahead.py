"""Copies ahead of tiles on CPUs, which estimates count, and the order of a register tile's loops."""

from collections.abc import Callable

import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.targets import resolve_target
from loopwright.search.estimates.copy_model import VECTOR_CYCLES, copy_cycles
from loopwright.search.estimates.tile_model import ACROSS_PACK_CYCLES, APART_PACK_CYCLES, PACK_CYCLES
from loopwright.search.rules._copied_ahead import cycles_ahead
from loopwright.search.rules._tile_model import tile_model
from loopwright.search.rules._tile_plan import plan_tiles
from loopwright.search.rules._tile_variants import Variant
from loopwright.search.sketch.draft import Draft
from loopwright.search.structure.anchor import find_anchor

CPU = "llvm cores=1 vector_bytes=32 vector_registers=16 l1_bytes=32768 l2_bytes=1048576 l3_bytes=8388608"


def convolution(
    batch: int, channels: int, size: int, filters: int, window: int, stride: int = 1, groups: int = 1
) -> Callable[[], list[te.Tensor]]:
    def tensors() -> list[te.Tensor]:
        data = te.placeholder((batch, channels, size, size), name="data")
        kernel = te.placeholder((filters, channels // groups, window, window), name="kernel")
        found = topi.nn.conv2d_nchw(data, kernel, stride, window // 2, 1, groups)
        return [data, kernel, topi.nn.relu(found)]

    return tensors


@pytest.mark.parametrize(
    ("bytes_moved", "rate"), [(1 << 16, 32), (1 << 19, 32), ((1 << 19) + 2, 8), (1 << 22, 8), ((1 << 22) + 2, 5)]
)
def test_copies_come_from_the_cache_that_keeps_both_sides(bytes_moved: int, rate: int) -> None:
    target = resolve_target(CPU)
    half = bytes_moved // 2
    assert copy_cycles(target, half, half, 7) == pytest.approx(7 * VECTOR_CYCLES + bytes_moved / rate)


@pytest.mark.parametrize(
    ("window", "stride", "axes", "cycles"),
    [
        (3, 1, 2, ACROSS_PACK_CYCLES),  # padding lies between rows
        (1, 2, 2, APART_PACK_CYCLES + ACROSS_PACK_CYCLES),  # pixels are left out, and lanes go on in the next row
        (1, 2, 1, APART_PACK_CYCLES),  # pixels of one row are left out
        (1, 1, 2, PACK_CYCLES),  # rows are one line
        (3, 1, 1, PACK_CYCLES),  # vectors of one row
    ],
)
def test_rows_that_are_joined_in_vectors_take_longer_to_pack(
    window: int, stride: int, axes: int, cycles: float
) -> None:
    task = lw.SearchTask(convolution(1, 4, 7, 4, window, stride), target=CPU)
    draft, target = Draft.of(task.module), resolve_target(CPU)
    anchor = find_anchor(draft.module, "compute")
    assert anchor is not None
    plan = plan_tiles(draft, anchor, Variant(anchor.spatial[-axes:], "root", False), target)
    assert tile_model(plan).pack_cycles == cycles


@pytest.mark.parametrize(("size", "vectors"), [(16, 3), (5, 1)])
def test_padding_is_counted_where_it_is_written(size: int, vectors: int) -> None:
    task = lw.SearchTask(convolution(1, 4, size, 4, 3, groups=4), target=CPU)
    draft, target = Draft.of(task.module), resolve_target(CPU)
    anchor = find_anchor(draft.module, "compute")
    assert anchor is not None
    kept, inlined = (
        plan_tiles(draft, anchor, Variant(anchor.spatial[-1:], "direct", p), target) for p in (False, True)
    )
    assert kept.pads_ahead == ("pad_temp",) and not inlined.pads_ahead
    rows = 4 * (size + 2)
    expected = copy_cycles(target, 4 * 4 * size * size, 4 * rows * (size + 2), rows * vectors)
    assert cycles_ahead(draft, kept) == pytest.approx(expected) and cycles_ahead(draft, inlined) == 0


def test_large_padding_of_channels_apart_is_read_in_place() -> None:
    task = lw.SearchTask(convolution(4, 192, 43, 192, 7, groups=192), target=CPU)
    assert task.sketches[0].name == "xx_direct_padded"


@pytest.mark.parametrize(("window", "size"), [(1, 10), (3, 9)])
def test_images_are_inside_of_filters_in_a_register_tile(window: int, size: int) -> None:
    task = lw.SearchTask(convolution(4, 6, size, 10, window), target=CPU)
    sketch = next(s for s in task.sketches if s.name.startswith("yy_xx_root"))
    order = sketch.template.partition("lw-reorder")[2].partition("}")[0]
    assert order.index('"ff2"') < order.index('"nn2"') < order.index('"yy_xx2"')
    check_kernels(task, sketch, 0, 3)
