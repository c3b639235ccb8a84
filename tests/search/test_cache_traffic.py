"""Bytes that loops around a tile move into caches: by hand, and never more into a larger one."""

import itertools
import re
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright import SearchTask, te, topi
from loopwright.dialects.strides import row_major
from loopwright.dialects.target import LINE_BYTES
from loopwright.search.estimates.cache_traffic import KEPT, Loop, Operand, bytes_into, in_all

HUGE = 1e12


def ones(*values: float) -> npt.NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def packed(*axes: str) -> Operand:
    return Operand(tuple(((axis, 1),) for axis in axes), 4, is_packed=True)


COVER = {"i": ones(4), "j": ones(8), "k": ones(1)}
LOOPS = [Loop("k", ones(16)), Loop("i", ones(2)), Loop("j", ones(3))]
PRODUCT = [packed("i", "k"), packed("j", "k")]


def test_everything_is_moved_once_into_a_cache_that_holds_it() -> None:
    (found,) = in_all(bytes_into([HUGE], PRODUCT, COVER, LOOPS))
    assert found.tolist() == [4 * (8 * 16 + 24 * 16)]


def test_nothing_is_kept_without_a_cache() -> None:
    (found,) = in_all(bytes_into([0], PRODUCT, COVER, LOOPS))
    assert found.tolist() == [4 * (4 + 8) * 16 * 2 * 3]


def test_what_does_not_move_along_a_loop_stays_where_one_iteration_fits() -> None:
    """One panel of each factor fits: columns stay over the rows, rows come again for each column."""
    one = 4 * (4 + 8) * 16
    (found,) = in_all(bytes_into([one / KEPT], PRODUCT, COVER, LOOPS))
    assert found.tolist() == [4 * (8 * 16 * 3 + 24 * 16)]


def test_windows_share_what_they_overlap_in_and_lines_are_moved_whole() -> None:
    data = Operand(((("y", 2), ("r", 1)), (("x", 1),)), 4, strides=(4096, 4))
    cover = {"y": ones(1), "r": ones(1), "x": ones(1)}
    assert data.footprint(cover).tolist() == [64]
    (found,) = in_all(bytes_into([HUGE], [data], cover, [Loop("r", ones(3)), Loop("x", ones(32)), Loop("y", ones(5))]))
    assert found.tolist() == [(2 * 4 + 2 + 1) * 32 * 4]


def test_rows_between_dilated_taps_are_not_touched_where_they_are_skipped() -> None:
    cover = {"y": ones(1, 8), "r": ones(3, 3), "x": ones(16, 16)}
    terms = ((("y", 1), ("r", 6)), (("x", 1),))
    every = Operand(terms, 4, strides=(4096, 4))
    assert every.footprint(cover).tolist() == [13 * 64, 20 * 64]
    assert Operand(terms, 4, strides=(4096, 4), skips=True).footprint(cover).tolist() == [3 * 64, 20 * 64]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=4))
def test_lines_touched_are_those_of_all_addresses(dimensions: list[tuple[int, int]]) -> None:
    """Of whole rows, of parts of rows, and of dimensions of extent 1, but for lines that runs begin and end within."""
    strides = [4 * n for n in row_major([span + left for span, left in dimensions])]
    operand = Operand(tuple(((f"a{k}", 1),) for k in range(len(dimensions))), 4, strides=tuple(strides))
    (found,) = operand.footprint({f"a{k}": ones(span) for k, (span, _) in enumerate(dimensions)})
    places = itertools.product(*(range(span) for span, _ in dimensions))
    lines = {sum(i * s for i, s in zip(at, strides, strict=True)) // LINE_BYTES for at in places}
    runs = prod(span for span, _ in dimensions[:-1])
    assert (len(lines) - runs) * LINE_BYTES <= found <= (len(lines) + runs) * LINE_BYTES


def test_a_kernel_of_one_tap_is_read_along_its_channels() -> None:
    """Dimensions of extent 1 at the end leave the one before them contiguous."""
    weights = Operand(((("f", 1),), (("c", 1),), (), ()), 4, strides=(4 * 448, 4, 4, 4))
    assert weights.footprint({"f": ones(6), "c": ones(32)}).tolist() == [6 * 32 * 4]


def test_larger_caches_never_have_more_moved_into_them() -> None:
    draws = np.random.default_rng(0)
    cover = {name: draws.integers(1, 9, 64).astype(np.float64) for name in "ijk"}
    loops = [Loop("ijk"[draws.integers(3)], draws.integers(1, 9, 64).astype(np.float64)) for _ in range(7)]
    sizes = [0, 1 << 8, 1 << 12, 1 << 16, 1 << 20, HUGE]
    found = in_all(bytes_into(sizes, [packed("i", "k"), packed("j", "k"), packed("i", "j")], cover, loops))
    assert all((less >= more).all() for less, more in pairwise(found))
    assert (found[0] > found[-1]).any()


def product() -> list[Any]:
    a, b = te.placeholder((768, 768), name="a"), te.placeholder((768, 768), name="b")
    k = te.reduce_axis((0, 768), name="k")
    return [a, b, te.compute((768, 768), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]


def test_defaults_of_tiles_are_what_estimates_like_best() -> None:
    for sketch in SearchTask(product, target="llvm cores=1 l3_bytes=33554432").sketches:
        rows = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(7), 400)])
        assert sketch.prior is not None
        seconds = sketch.prior(sketch.columns(rows))
        assert seconds[0] <= 1.02 * seconds.min()


def test_cache_tiles_follow_the_target() -> None:
    """With a second-level cache of a fourth, less of the factors is kept in it, and it is estimated to take longer."""
    best = {}
    for l2_bytes in (1 << 19, 1 << 17):
        first = SearchTask(product, target=f"llvm cores=1 l2_bytes={l2_bytes} l3_bytes=33554432").sketches[0]
        assert first.prior is not None
        best[l2_bytes] = float(first.prior(first.columns(first.default[None]))[0])
    assert best[1 << 17] > best[1 << 19]


def estimated(extent: int, **numbers: int) -> float:
    """Seconds of a weighted product of `extent` rows, in one kind of tile, the other numbers as they are by default."""

    def rows() -> list[Any]:
        a, b = te.placeholder((extent, 256), name="a"), te.placeholder((256, 256), name="b")
        w, k = te.placeholder((256,), name="w"), te.reduce_axis((0, 256), name="k")
        return [a, b, w, te.compute((extent, 256), lambda i, j: te.sum(a[i, k] * b[k, j] * w[k], axis=k), name="c")]

    task = SearchTask(rows, target="llvm cores=1 vector_bytes=32 vector_registers=16 l1_bytes=1048576")
    sketch = next(sketch for sketch in task.sketches if sketch.name == "j_root")
    wanted = {"c_lanes": 8, "c_vectors": 2, "c_vector_tile": 1, "c_i_rows": 4, "c_i_tile": 1, "c_k_unroll": 4}
    wanted |= {"c_k_block": 64, **numbers}
    row = [hole.choices.index(wanted[hole.name]) for hole in sketch.holes]
    assert sketch.prior is not None
    return float(sketch.prior(sketch.columns(np.array([row])))[0])


def test_tiles_that_do_not_divide_rows_are_dear_where_several_stand_side_by_side() -> None:
    divided = estimated(48, c_i_tile=4)
    assert estimated(45, c_i_tile=4) > 1.1 * divided  # 45 rows in three tiles of 16, as 48 are


def test_register_tiles_that_keep_no_register_free_are_dear_where_rows_are_cut() -> None:
    spilled, whole = estimated(54, c_vectors=3), estimated(56, c_vectors=3)
    assert spilled > 1.4 * whole
    assert estimated(54) < 1.2 * estimated(56)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(9, 40)), min_size=1, max_size=3),
    st.sampled_from([16, 33, 64, 96, 100, 128, 256, 512, 1024]),
)
def test_lines_of_a_set_are_at_least_what_is_said(dimensions: list[tuple[int, int]], last: int) -> None:
    """As all addresses say; and no less where what a dimension strides is a power of two."""
    strides = [4 * n for n in row_major([*(extent for _, extent in dimensions), last])]
    names = [f"a{k}" for k in range(len(dimensions))]
    operand = Operand((*(((name, 1),) for name in names), (("k", 1),)), 4, strides=tuple(strides))
    cover = {name: np.array([float(n)]) for name, (n, _) in zip(names, dimensions, strict=True)}
    lines, together = operand.lines_a_set(cover | {"k": np.ones(1)}, 4096)
    places = [
        sum(i * s for i, s in zip(at, strides, strict=False))
        for at in itertools.product(*(range(n) for n, _ in dimensions))
    ]
    found = len(places) / len({place % 4096 // 64 for place in places})
    assert lines == [len(places)] and together <= found * (1 + 1e-9)
    if len(dimensions) == 1 and last in (16, 64, 128, 256, 512, 1024):
        assert together == [found]


def test_places_that_taps_share_are_counted_once() -> None:
    operand = Operand(((("y", 1), ("r", 2)), (("c", 1),)), 4, strides=(2048, 4))
    cover = {"y": np.array([4.0, 1.0]), "r": np.array([3.0, 3.0]), "c": np.ones(2)}
    lines, together = operand.lines_a_set(cover, 4096)
    assert lines.tolist() == [8, 3] and together.tolist() == [4, 1.5]


def test_taps_of_a_dilated_convolution_do_not_evict_each_other() -> None:
    """36 places 2 KB apart would fall into two sets of 8 ways."""
    x, w = te.placeholder((1, 36, 36, 512), name="x"), te.placeholder((3, 3, 512, 512), name="w")
    task = SearchTask([x, w, topi.nn.conv2d_nhwc(x, w, dilation=2)], target="llvm model=znver3 cores=1")
    factors = dict(re.findall(r'loop="(\w+)" factors=([\d,]+)', task.default_schedule))
    assert prod(int(factors[axis].split(",")[-1]) for axis in ("yy", "xx", "ry", "rx")) <= 2 * 8


@pytest.mark.parametrize("cores", [1, 2])
def test_an_operand_of_rank_0_is_one_place(cores: int) -> None:
    scale, rows = te.placeholder((), name="scale"), te.placeholder((7, 33), name="rows")
    k = te.reduce_axis((0, 33), name="k")
    sums = te.compute((7, 1), lambda i, _: te.sum(rows[i, k] * scale[()], axis=k), name="sums")
    kernel = lw.build([scale, rows, sums], target=f"llvm cores={cores}")
    drawn = np.random.default_rng(0).standard_normal((7, 33)).astype(np.float32)
    found = np.empty((7, 1), np.float32)
    kernel(np.float32(3).reshape(()), drawn, found)
    np.testing.assert_allclose(found, 3 * drawn.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
