"""Convolutions in groups: filters of a group, which read the same channels, are tiled as those of one convolution."""

from collections.abc import Callable

import numpy as np
import pytest
from gpu_programs import check_interpreted
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi
from loopwright.search.structure.anchor import find_anchor

CPU = "llvm cores=1 vector_bytes=32 vector_registers=16"
GPU = "cuda model=h200"


def grouped(
    channels: int, filters: int, groups: int, size: int = 6, stride: int = 1, constant: bool = False, last: bool = False
) -> list[te.Tensor]:
    depth = channels // groups
    shapes = [(1, size, size, channels), (3, 3, depth, filters)] if last else None
    data, kernel = shapes or [(1, channels, size, size), (filters, depth, 3, 3)]
    x, w = te.placeholder(data, name="data"), te.placeholder(kernel, name="kernel", constant=constant)
    conv = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    return [x, w, topi.nn.relu(conv(x, w, stride, 1, groups=groups))]


WORKLOADS: dict[str, Callable[[], list[te.Tensor]]] = {
    "two groups": lambda: grouped(6, 32, 2),
    "constant": lambda: grouped(6, 32, 2, constant=True),
    "strided": lambda: grouped(12, 24, 3, 7, stride=2),
    "of four": lambda: grouped(8, 16, 4, 9),
    "of three": lambda: grouped(8, 12, 4, 9),
    "channels last": lambda: grouped(6, 32, 2, last=True),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(1)
def test_candidates_are_right(name: str) -> None:
    task = lw.SearchTask(WORKLOADS[name], target=CPU)
    for sketch in task.sketches:
        check_kernels(task, sketch, 1, 1)


def test_filters_of_a_group_become_lanes_and_rows() -> None:
    sketches = {sketch.name: sketch for sketch in lw.SearchTask(WORKLOADS["constant"], target=CPU).sketches}
    assert "ff_ahead" in sketches and 'buffer="data"' not in sketches["ff_ahead"].template
    task = lw.SearchTask(lambda: grouped(8, 16, 4, 9), target=CPU)
    direct = next(sketch for sketch in task.sketches if sketch.name == "xx_direct")
    assert {"compute_ff_rows", "compute_ff_tile"} <= {hole.name for hole in direct.holes}


@pytest.mark.parametrize("name", ["two groups", "of four", "channels last"])
def test_tiles_divide_the_filters_of_a_group(name: str) -> None:
    run = 4 if name == "of four" else 16
    task = lw.SearchTask(WORKLOADS[name], target=CPU)
    tiled = 0
    for sketch in task.sketches:
        columns = sketch.columns(sketch.sample(np.random.default_rng(0), 60))
        names = [f"compute_{part}" for part in ("lanes", "vectors", "vector_tile")]
        if not sketch.name.startswith("ff_"):
            names = [hole.name for hole in sketch.holes if hole.name.startswith("compute_ff_")]
        tiled += bool(names)
        tiles = np.prod([columns[part] for part in names], axis=0)
        assert (run % tiles == 0).all()
    assert tiled


@pytest.mark.parametrize("run", [4, 5, 12])
@pytest.mark.few(1)
def test_groups_that_half_a_vector_does_not_divide_have_shorter_vectors(run: int) -> None:
    wide = "llvm cores=1 vector_bytes=64 vector_registers=32"
    task = lw.SearchTask(lambda: grouped(16, 4 * run, 4, last=True), target=wide)
    sketch = next(sketch for sketch in task.sketches if sketch.name == "ff_direct")
    columns = sketch.columns(np.concatenate([sketch.default[None], sketch.sample(np.random.default_rng(0), 60)]))
    assert columns["compute_lanes"].max() == run & -run
    assert not (run % (columns["compute_lanes"] * columns["compute_vectors"] * columns["compute_vector_tile"])).any()
    found = task.build(sketch.schedule(sketch.default))(*task.reference.inputs)
    np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-4, atol=1e-4)


def test_fewer_filters_are_read_each_for_itself() -> None:
    task = lw.SearchTask(WORKLOADS["of three"], target=CPU)
    assert not any("compute_ff" in hole.name for sketch in task.sketches for hole in sketch.holes)
    assert not any(sketch.name.startswith("ff_") for sketch in task.sketches)


def test_runs_of_filters_are_found_in_indices() -> None:
    module = lw.SearchTask(WORKLOADS["two groups"], target=CPU).schedule_module("lw-lower-te-to-loop")
    anchor = find_anchor(module, "compute")
    assert anchor is not None
    assert (anchor.run_of("ff"), anchor.run_of("xx"), anchor.run_of("rc")) == (16, 1, 1)
    assert anchor.shared_by_all("ff") and not anchor.within_runs("ff").shared_by_all("ff")


def test_tiles_on_a_gpu_divide_the_filters_of_a_group() -> None:
    task = lw.SearchTask(WORKLOADS["two groups"], target=GPU)
    tiled = [sketch for sketch in task.sketches if any(hole.name == "compute_ff_threads" for hole in sketch.holes)]
    assert tiled
    for sketch in tiled:
        columns = sketch.columns(np.concatenate([sketch.default[None], sketch.sample(np.random.default_rng(0), 60)]))
        tiles = np.prod([columns[f"compute_ff_{part}"] for part in ("inner", "threads", "virtual")], axis=0)
        assert (16 % tiles == 0).all()
        assert len(np.unique(tiles)) > 1


@pytest.mark.parametrize("name", ["two groups", "strided"])
@pytest.mark.few(1)
def test_candidates_on_a_gpu_are_right(name: str) -> None:
    task = lw.SearchTask(WORKLOADS[name], target=GPU)
    for sketch in task.sketches:
        for row in sketch.sample(np.random.default_rng(2), 2):
            check_interpreted(task.module, task.reference, [sketch.schedule(row)])
