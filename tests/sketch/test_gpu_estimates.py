"""Estimates of tiled reductions on a GPU: what they say of candidates that differ in one number."""

import re
from collections.abc import Callable
from math import prod

import numpy as np
import numpy.typing as npt
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.c_family.kernel_source import Launch
from loopwright.backends.cuda.compile import print_for
from loopwright.passes.lower import place_buffers
from loopwright.search.estimates.gpu_model import GpuModel
from loopwright.search.estimates.gpu_tile import MOST_GUARDED
from loopwright.search.estimates.sliced_model import SlicedModel
from loopwright.search.estimates.window_model import SlicedWindows
from loopwright.search.sketch.formula import Estimate, total_seconds
from loopwright.search.sketch.hole import Columns
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
    assert nine == pytest.approx(twelve, rel=0.08)
    assert nine > 1.25 * eight


def test_vectors_pay_most_where_they_divide_rows() -> None:
    gains = []
    for columns in (1024, 1023):
        sketch = product(4096, columns, 1024)
        gains.append(seconds(sketch, b_vector=1) / seconds(sketch, b_vector=4))
    assert gains[0] > 1.05 * gains[1]


USUAL = {"inner": 1, "threads": 1, "virtual": 1, "vector": 1, "stages": 1, "registers": 0, "unroll": 512}


def tiled_rows(tensors: list[te.Tensor], **wanted: int) -> float:
    """The estimate of the sketch that tiles rows of images, its holes filled as wanted, the others by 1."""
    sketch = next(sketch for sketch in lw.SearchTask(tensors, target=DEVICE).sketches if sketch.name == "xx")
    row = sketch.default.copy()
    for number, hole in enumerate(sketch.holes):
        given = [value for name, value in wanted.items() if hole.name.endswith(f"_{name}")]
        row[number] = hole.choices.index(given[0] if given else USUAL[hole.name.rsplit("_", 1)[-1]])
    assert sketch.prior is not None
    return float(sketch.prior(sketch.columns(row[None]))[0])


def test_copies_of_what_is_padded_ask_where_each_element_lies() -> None:
    """Of images of 30 x 30, padded or not."""
    fill = {"xx_inner": 4, "xx_threads": 8, "yy_threads": 2, "ff_inner": 2, "ff_threads": 4, "rc_step": 8, "stages": 2}
    found = []
    for pad in (0, 1):
        data = te.placeholder((8, 64, 30 - 2 * pad, 30 - 2 * pad), name="data")
        weight = te.placeholder((64, 64, 3, 3), name="weight")
        found.append(tiled_rows([data, weight, topi.nn.conv2d_nchw(data, weight, 1, pad)], **fill))
    assert found[1] > 1.1 * found[0]


def test_a_window_is_loaded_once_for_all_its_taps() -> None:
    """Four results that lie side by side need ten elements of a row for seven taps, four apart need 28."""
    data, weight = te.placeholder((1, 256, 64, 64), name="data"), te.placeholder((256, 1, 7, 7), name="weight")
    tensors = [data, weight, topi.nn.depthwise_conv2d_nchw(data, weight, 1, 3)]
    beside = tiled_rows(tensors, xx_inner=4, xx_threads=8, yy_threads=8)
    apart = tiled_rows(tensors, xx_virtual=4, xx_threads=8, yy_threads=8)
    assert apart > 1.2 * beside


def test_rows_of_a_long_window_that_are_written_out_are_loaded_once() -> None:
    """Seven results side by side need 27 elements of a row for 21 taps, if the code of all taps is there at once."""
    data, weight = te.placeholder((1, 256, 56, 56), name="data"), te.placeholder((256, 1, 21, 21), name="weight")
    tensors = [data, weight, topi.nn.depthwise_conv2d_nchw(data, weight, 1, 10)]
    tile = {"xx_inner": 7, "xx_threads": 8, "yy_threads": 4, "ry_step": 7}
    whole, parted, looped = (
        tiled_rows(tensors, **tile, rx_step=step, unroll=unroll) for step, unroll in ((21, 512), (7, 512), (21, 128))
    )
    assert parted > 1.2 * whole
    assert looped > 1.5 * whole


def test_scalar_copies_of_turned_vectors_ask_for_many_lines() -> None:
    """Through registers a vector is fetched at once, without them by an access for each of its elements."""
    sketch = product(4096, 4096, 1024)
    assert seconds(sketch, a_vector=4) > seconds(sketch, a_vector=4, registers=1)


def test_results_of_a_thread_stay_in_a_row() -> None:
    """A thread whose results go on in the next row of an image keeps them in local memory.

    Those of a tile larger than the image have a test each, for which a thread has few predicates.
    """
    data, weight = te.placeholder((1, 64, 14, 14), name="data"), te.placeholder((64, 64, 3, 3), name="weight")
    task = lw.SearchTask([data, weight, topi.nn.conv2d_nchw(data, weight, 1, 1)], target=DEVICE)
    fused = [sketch for sketch in task.sketches if any("yy_xx_inner" in hole.name for hole in sketch.holes)]
    assert fused
    for sketch in fused:
        columns = sketch.columns(sketch.population.sample(np.random.default_rng(0), 200))
        (inner,) = (values for name, values in columns.items() if name.endswith("yy_xx_inner"))
        assert (14 % inner == 0).all()
        threads, virtual = (
            next(values for name, values in columns.items() if name.endswith(f"yy_xx_{part}"))
            for part in ("threads", "virtual")
        )
        tile = inner * threads * virtual
        assert ((tile <= 196) | (inner <= MOST_GUARDED)).all()
        assert ((tile < 196) & (196 % tile != 0) & (inner > MOST_GUARDED)).any()


def test_the_last_step_along_each_axis_of_a_reduction_is_a_whole_one() -> None:
    """Steps of 8 of the 9 rows of a window are as long as 16, of 3 as 9."""
    data, weight = te.placeholder((1, 8, 64, 64), name="data"), te.placeholder((32, 8, 9, 9), name="weight")
    tensors = [data, weight, topi.nn.conv2d_nchw(data, weight, 1, 4)]
    tile = {"xx_threads": 32, "ff_inner": 4, "xx_inner": 2, "rc_step": 4, "rx_step": 9}
    assert tiled_rows(tensors, **tile, ry_step=8) > 1.4 * tiled_rows(tensors, **tile, ry_step=9)


def test_as_many_blocks_fit_as_the_model_counts_on() -> None:
    """Of 64 blocks for 132 multiprocessors each has one; of 1,024 several may be there, by their registers."""
    for size, most in ((512, 1), (2048, 16)):
        sketch = product(size, size, 512)
        rows = sketch.sample(np.random.default_rng(0), 20)
        asked = [re.findall(r"blocks_per_sm=(\d+)", sketch.schedule(row)) for row in rows]
        assert all(len(each) == 1 for each in asked)
        assert max(int(each[0]) for each in asked) > 1 or most == 1


def windows() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 512, 7, 7), name="data"), te.placeholder((512, 512, 3, 3), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 1))]


def groups() -> list[te.Tensor]:
    data, kernel = te.placeholder((2, 64, 14, 14), name="data"), te.placeholder((64, 16, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1, 1, 4)]


def wide_product() -> list[te.Tensor]:
    a, b = te.placeholder((200, 768), name="a"), te.placeholder((768, 512), name="b")
    return [a, b, topi.nn.relu(topi.matmul(a, b))]


def batch() -> list[te.Tensor]:
    a, b = te.placeholder((12, 128, 256), name="a"), te.placeholder((12, 256, 64), name="b")
    return [a, b, topi.nn.batch_matmul(a, b, transpose_b=False)]


def layer() -> list[te.Tensor]:
    data, weight = te.placeholder((200, 768), name="data"), te.placeholder((512, 768), name="weight")
    return [data, weight, topi.nn.relu(topi.dense(data, weight))]


def scores() -> list[te.Tensor]:
    a, b = te.placeholder((12, 128, 256), name="a"), te.placeholder((12, 128, 256), name="b")
    return [a, b, topi.nn.batch_matmul(a, b, transpose_b=True)]


@pytest.mark.parametrize(("workload", "least"), [(windows, 4), (groups, 1), (wide_product, 4), (batch, 3), (layer, 4)])
@pytest.mark.few(3)
def test_blocks_are_estimated_as_many_as_are_launched(
    workload: Callable[[], list[te.Tensor]], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each structure of tiles, those whose reduction is divided among blocks, threads, or both among them."""
    task = lw.SearchTask(workload, target=DEVICE)
    structures = set()
    for sketch in task.sketches:
        for row in (sketch.default, *sketch.sample(np.random.default_rng(3), 1)):
            if (asked := modelled(sketch, row, monkeypatch)) is not None:
                model, c = asked
                assert launches_of(model, c, task, sketch.schedule(row)), sketch.name
                structures.add((bool(model.split), model.sliced, bool(model.parts)))
    assert len(structures) >= least


@pytest.mark.parametrize(("workload", "least"), [(windows, 6), (groups, 4), (batch, 3), (scores, 3)])
@pytest.mark.few(2)
def test_shared_memory_is_planned_as_it_is_launched(
    workload: Callable[[], list[te.Tensor]], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random candidates of each structure, to the last row, which nothing follows.

    What lies to spare behind buffers is left out, as it is where it would not fit.
    """
    monkeypatch.setattr(place_buffers, "with_spare", lambda func, places, most_bytes: dict(places))
    task = lw.SearchTask(workload, target=DEVICE)
    sketches = set()
    for sketch in task.sketches:
        for row in sketch.population.sample(np.random.default_rng(5), 2):
            if (asked := modelled(sketch, row, monkeypatch)) is not None:
                model, c = asked
                launched = launches_of(model, c, task, sketch.schedule(row))
                planned = float(model.planned_elements(c)[0] + model.joined_elements(c)[0]) * model.element_bytes
                taken = max(launch.static_shared_bytes + launch.dynamic_shared_bytes for launch in launched)
                assert 0.95 * planned <= taken <= planned + 16 * len(model.operands), sketch.name
                sketches.add(sketch.name)
    assert len(sketches) >= least


def modelled(
    sketch: Sketch, row: npt.NDArray[np.int64], monkeypatch: pytest.MonkeyPatch
) -> tuple[GpuModel, Columns] | None:
    """The model of tiles that a sketch's prior asks, and the columns that it asks it of; None where it asks none."""
    asked: list[tuple[GpuModel, Columns]] = []

    def noted(model: GpuModel, c: Columns) -> npt.NDArray[np.float64]:
        asked.append((model, c))
        return np.ones(len(next(iter(c.values()))))

    if isinstance(sketch.prior, Estimate):
        with monkeypatch.context() as patch:
            for kind in (GpuModel, SlicedModel, SlicedWindows):
                patch.setattr(kind, "seconds", noted)
            total_seconds(sketch.prior.models, sketch.columns(row[None]))
    return asked[0] if len(asked) == 1 else None


def launches_of(model: GpuModel, c: Columns, task: lw.SearchTask, schedule: str) -> list[Launch]:
    """The launches of a candidate that have as many blocks and threads as its model says."""
    launches = print_for(lower_to_kernel(task.schedule_module(schedule), task.target), 90).launches
    wanted = float(model._blocks(c)[0]), float(model.threads(c)[0])
    return [launch for launch in launches if (prod(launch.grid), prod(launch.block)) == wanted]
