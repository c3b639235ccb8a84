"""Estimates of products of matrices on CPUs: cut tiles, results, rows that share sets, and when estimates choose."""

from functools import partial

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.sketch import Sketch

XEON = "llvm model=emeraldrapids l1_bytes=49152 l2_bytes=2097152 l3_bytes=314572800"


def product(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    return [a, b, topi.matmul(a, b)]


def sketch_of(m: int, n: int, k: int, name: str = "j_direct") -> Sketch:
    return next(s for s in lw.SearchTask(partial(product, m, n, k), target=XEON).sketches if s.name == name)


def seconds(sketch: Sketch, **chosen: int) -> float:
    """The estimate of a candidate: the defaults but for holes whose names end so."""
    columns = {
        name: np.array([next((n for end, n in chosen.items() if name.endswith(f"_{end}")), int(value[0]))])
        for name, value in sketch.columns(sketch.default[None]).items()
    }
    assert sketch.prior is not None
    return float(sketch.prior(columns)[0])


TILE = {"lanes": 16, "vectors": 2, "vector_tile": 1, "i_rows": 12, "i_tile": 1, "k_unroll": 4, "k_block": 128}


def test_a_cut_tile_takes_what_is_left_of_it() -> None:
    """One row more takes part of the time of a tile more."""
    whole, cut, more = (seconds(sketch_of(rows, 256, 256), **TILE) for rows in (96, 97, 108))
    assert whole < cut < whole + (more - whole) / 2


def test_vectors_of_rows_that_begin_anywhere_take_longer() -> None:
    assert seconds(sketch_of(96, 257, 256), **TILE) > 1.05 * seconds(sketch_of(96, 272, 256), **TILE)


def test_results_of_several_register_tiles_are_stored_later() -> None:
    """Of short sums this is much of the time."""
    short = sketch_of(256, 3424, 64)
    tile = TILE | {"k_block": 16}
    assert seconds(short, **tile | {"i_tile": 8}) > 1.2 * seconds(short, **tile)


def test_rows_of_a_tile_that_share_a_set_are_loaded_again() -> None:
    apart, together = (seconds(sketch_of(96, 64, k), **TILE) / k for k in (1040, 1024))
    assert together > 1.15 * apart


def test_runs_of_rows_a_page_apart_begin_slowly() -> None:
    """Columns of 3.9 MB: wide register tiles have fewer of them."""
    sketch = sketch_of(84, 984, 1001)
    tile = {"lanes": 16, "vector_tile": 1, "k_unroll": 1, "k_block": 143}
    high = seconds(sketch, **tile, vectors=2, i_rows=14, i_tile=8)
    assert seconds(sketch, **tile, vectors=4, i_rows=6, i_tile=16) < high


def test_panels_beyond_the_second_level_cache_take_longer() -> None:
    """Of 768 terms panels of 1024 columns are 3 MB."""
    sketch = sketch_of(128, 3072, 768, "j_inner")
    tile = {"lanes": 16, "vectors": 4, "i_rows": 6, "i_tile": 32, "k_unroll": 8, "k_block": 96}
    assert seconds(sketch, **tile, vector_tile=16) > 1.1 * seconds(sketch, **tile, vector_tile=1)


def test_weights_that_no_cache_keeps_are_better_read_once() -> None:
    """Of 151 MB each reading is from memory, and takes much of the time of 64 rows."""
    sketch = sketch_of(64, 4000, 9216)
    tile = {"lanes": 16, "vectors": 4, "vector_tile": 1, "i_rows": 8, "k_unroll": 8, "k_block": 12}
    assert seconds(sketch, **tile, i_tile=4) > 1.2 * seconds(sketch, **tile, i_tile=8)


def test_cut_tiles_are_better_alone() -> None:
    """Of 279 columns tiles of 96 leave 87, the last vector of which is cut; of 384 they leave none."""
    tile = {"lanes": 16, "vectors": 6, "i_rows": 4, "i_tile": 8, "k_unroll": 8}
    for columns, slower in ((279, True), (384, False)):
        sketch = sketch_of(688, columns, 64, "j_root_once")
        pair, single = (seconds(sketch, **tile, vector_tile=tiles) for tiles in (2, 1))
        assert (pair > 1.2 * single) is slower


def test_short_runs_of_rows_from_far_take_longer() -> None:
    """Of weights of 11 MB, read in place with lanes along rows of data."""

    def dense() -> list[te.Tensor]:
        data, weight = te.placeholder((57, 1776), name="data"), te.placeholder((1600, 1776), name="weight")
        return [data, weight, topi.dense(data, weight)]

    sketch = next(s for s in lw.SearchTask(dense, target=f"{XEON} vector_bytes=64").sketches if s.name == "i_root")
    tile = {"lanes": 16, "vectors": 4, "vector_tile": 1, "j_rows": 6, "j_tile": 16}
    assert seconds(sketch, **tile, k_unroll=4, k_block=12) > 1.05 * seconds(sketch, **tile, k_unroll=8, k_block=111)


def test_wide_register_tiles_read_more_of_the_second_level_cache() -> None:
    """Panels of all terms are beyond the first-level cache."""
    sketches = lw.SearchTask(partial(product, 960, 960, 1024), target=f"{XEON} vector_bytes=64").sketches
    sketch = next(s for s in sketches if s.name == "j_root_once")
    tile = {"lanes": 16, "vector_tile": 1, "i_tile": 16, "k_unroll": 8}
    wide, narrow = (seconds(sketch, **tile, vectors=v, i_rows=n) for v, n in ((6, 4), (3, 8)))
    assert wide > 1.01 * narrow


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("rows", "columns", "sure"), [(64, 96, True), (16, 768, True), (8, 768, False)])
def test_estimates_choose_tiles_of_products_but_for_few_rows(rows: int, columns: int, sure: bool, cores: int) -> None:
    """Few rows may be dot products, which the model that ships compares with tiles."""

    def dense() -> list[te.Tensor]:
        data, weight = te.placeholder((rows, 256), name="data"), te.placeholder((columns, 256), name="weight")
        return [data, weight, topi.dense(data, weight)]

    task = lw.SearchTask(dense, target=f"{XEON} cores={cores}")
    assert any(sketch.sure for sketch in task.sketches) is sure
    first = task.sketches[0]
    assert not sure or task.default_schedule == first.schedule(first.default)


def test_register_tiles_of_short_sums_store_their_results() -> None:
    """Odd extents, beside the interpreter; the buffer of sums is a register tile's."""
    task = lw.SearchTask(partial(product, 30, 45, 27), target="llvm cores=1")
    sketches = [sketch for sketch in task.sketches if sketch.name.endswith("_once")]
    assert {sketch.name for sketch in sketches} == {"j_direct_once", "j_root_once", "j_inner_once"}
    for sketch in sketches:
        for row in sketch.sample(np.random.default_rng(0), 2):
            assert "_block" not in "".join(sketch.columns(row[None]))
            task.build(sketch.schedule(row), check=True)


@pytest.mark.parametrize(("terms", "at_once"), [(8, True), (1024, True), (8192, True), (8200, False)])
def test_terms_are_all_added_up_at_once_where_a_narrow_panel_stays_in_a_cache(terms: int, at_once: bool) -> None:
    """Two vectors of 8192 terms are half of a second-level cache of two megabytes."""
    task = lw.SearchTask(partial(product, 64, 64, terms), target=f"{XEON} vector_bytes=64")
    assert any("_once" in sketch.name for sketch in task.sketches) is at_once


def test_results_of_register_tiles_are_stored_from_registers() -> None:
    """The copy is written out as the tile is; what takes long for each element stays in loops."""
    assert 'lw-unroll{block="T_matmul_tile"' in sketch_of(30, 45, 27, "j_root_once").template

    def dense(activation: str) -> list[te.Tensor]:
        data, weight = te.placeholder((64, 64), name="data"), te.placeholder((96, 64), name="weight")
        return [data, weight, getattr(topi.nn, activation)(topi.dense(data, weight))]

    for activation, unrolled in (("relu", True), ("gelu", False)):
        task = lw.SearchTask(partial(dense, activation), target=XEON)
        sketches = [sketch for sketch in task.sketches if sketch.name.startswith("j_")]
        assert sketches and all((f'lw-unroll{{block="T_{activation}"' in s.template) is unrolled for s in sketches)


@pytest.mark.parametrize(("rows", "columns", "asked"), [(32, 3608, True), (32, 200, False), (100, 3608, False)])
def test_large_factors_of_few_rows_are_asked_for_ahead(rows: int, columns: int, asked: bool) -> None:
    """By eight rows, of which each step that is written out is one."""
    sketch = sketch_of(rows, columns, 200, "j_direct_once")
    assert ("lw-prefetch" in sketch.template) is asked
    chosen = sketch.columns(sketch.sample(np.random.default_rng(0), 64))
    assert not asked or np.array_equal(chosen["T_matmul_ahead"], np.maximum(1, 8 // chosen["T_matmul_k_unroll"]))


@pytest.mark.parametrize("rows", [1, 2, 8, 16])
def test_few_rows_read_a_wide_factor_in_place_along_its_rows(rows: int) -> None:
    """A panel would be laid out to be read once or twice, from the same rows."""
    task = lw.SearchTask(partial(product, rows, 2000, 3000), target=f"{XEON} vector_bytes=64 cores=1")
    assert 'cache-read{block="T_matmul" buffer="b"' not in task.default_schedule


def test_short_sums_of_several_register_tiles_are_stored_later_too() -> None:
    """Sums of up to eight terms have no blocks, and are copied out all the same where a tile has several."""
    sketch = sketch_of(256, 3424, 8, "j_root")
    tile = {"lanes": 16, "vectors": 2, "vector_tile": 1, "i_rows": 12, "k_unroll": 8}
    assert seconds(sketch, **tile, i_tile=8) > 1.2 * seconds(sketch, **tile, i_tile=1)
