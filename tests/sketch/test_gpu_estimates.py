"""Estimates of tiled reductions on a GPU: what they say of candidates that differ in one number."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.sketch import Sketch

DEVICE = "cuda model=h200"
TILE = {"inner": 4, "threads": 8, "virtual": 1}


def product(m: int, n: int, k: int) -> Sketch:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    task = lw.SearchTask([a, b, topi.matmul(a, b)], target=DEVICE)
    return next(sketch for sketch in task.sketches if "T_matmul_i_threads" in {hole.name for hole in sketch.holes})


def seconds(sketch: Sketch, **changed: int) -> float:
    """The estimate of tiles of 32 x 32 by one warp, steps of 8, two stages, or of what is changed in that."""
    wanted = {f"{axis}_{name}": value for axis in "ij" for name, value in TILE.items()} | {"i_threads": 4, "i_inner": 8}
    wanted |= {"k_step": 8, "a_vector": 1, "b_vector": 1, "stages": 2, "registers": 0, "unroll": 512} | changed
    row = np.array([hole.choices.index(wanted[hole.name.removeprefix("T_matmul_")]) for hole in sketch.holes])
    assert sketch.legal(row[None]).all()
    assert sketch.prior is not None
    return float(sketch.prior(sketch.columns(row[None]))[0])


def test_a_scheduler_issues_from_whole_warps() -> None:
    """Of nine warps one of four schedulers has three: as long as twelve take."""
    eight, nine, twelve = (seconds(product(32 * 132, 32 * blocks, 1024)) for blocks in (8, 9, 12))
    assert nine == pytest.approx(twelve, rel=0.02)
    assert nine > 1.3 * eight


@pytest.mark.parametrize(("columns", "faster"), [(1024, True), (1023, False)])
def test_vectors_pay_where_they_divide_rows(columns: int, faster: bool) -> None:
    sketch = product(4096, columns, 1024)
    assert (seconds(sketch, b_vector=4) < seconds(sketch, b_vector=1)) == faster


def test_scalar_copies_of_turned_vectors_ask_for_many_lines() -> None:
    """Through registers a vector is fetched at once, without them by an access for each of its elements."""
    sketch = product(4096, 4096, 1024)
    assert seconds(sketch, a_vector=4) > seconds(sketch, a_vector=4, registers=1)


def test_results_of_a_thread_stay_in_a_row() -> None:
    """A thread whose results go on in the next row of an image keeps them in local memory."""
    data, weight = te.placeholder((1, 64, 14, 14), name="data"), te.placeholder((64, 64, 3, 3), name="weight")
    task = lw.SearchTask([data, weight, topi.nn.conv2d_nchw(data, weight, 1, 1)], target=DEVICE)
    fused = [sketch for sketch in task.sketches if any("yy_xx_inner" in hole.name for hole in sketch.holes)]
    assert fused
    for sketch in fused:
        columns = sketch.columns(sketch.population.sample(np.random.default_rng(0), 200))
        (inner,) = (values for name, values in columns.items() if name.endswith("yy_xx_inner"))
        assert (14 % inner == 0).all()
