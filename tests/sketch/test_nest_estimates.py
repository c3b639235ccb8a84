"""Estimates of GPU kernels that no rule has a model of: what they say of candidates, and of the IR of each."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.parametric.read import nest_of_candidate
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.estimates.nest_model import nest_seconds
from loopwright.search.features.view import NestView
from loopwright.search.sketch.sketch import Sketch

DEVICE = "cuda model=h200"
WORKLOADS = {
    "softmax": ((300, 700), topi.nn.softmax),
    "layer norm": (
        (96, 1023),
        lambda x: topi.nn.layer_norm(x, te.placeholder((1023,), name="g"), te.placeholder((1023,), name="b")),
    ),
    "short rows": ((8000, 24), lambda x: topi.max(x, 1)),
    "along the middle": ((6, 900, 40), lambda x: topi.sum(x, 1)),
    "argmax": ((40, 9000), lambda x: topi.argmax(x, -1)),
    "pool": ((1, 24, 30, 31), lambda x: topi.nn.max_pool(x, 3, 2, 1)),
    "transpose": ((100, 77), topi.transpose),
    "elements": ((90, 128), topi.nn.gelu),
    "nearest": ((1, 8, 64, 64), lambda x: topi.resize2d(x, (128, 128), method="nearest", coordinate_mode="asymmetric")),
}


def task_of(name: str) -> lw.SearchTask:
    shape, operator = WORKLOADS[name]
    return lw.SearchTask(operator(te.placeholder(shape, name="data")), target=DEVICE)


def seconds(sketch: Sketch, **wanted: int) -> float:
    """The estimate of the defaults with some holes filled otherwise, by the ends of their names."""
    row = sketch.default.copy()
    for name, value in wanted.items():
        (number,) = [n for n, hole in enumerate(sketch.holes) if hole.name.endswith(f"_{name}")]
        row[number] = sketch.holes[number].choices.index(value)
    found = sketch.estimate(row[None])
    assert found is not None
    return float(found[0])


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(3)
def test_estimates_of_all_candidates_are_those_of_their_ir(name: str) -> None:
    task = task_of(name)
    rng = np.random.default_rng(0)
    for sketch in task.sketches:
        rows = np.concatenate([sketch.default[None], sketch.sample(rng, 3)])
        found = sketch.estimate(rows)
        assert found is not None
        assert (found > 0).all()
        for row, estimate in zip(rows, found, strict=True):
            module = task.module.clone()
            apply_schedule(module, sketch.schedule(row))
            assert nest_seconds(NestView(nest_of_candidate(module, task.target))) == pytest.approx(estimate, rel=1e-4)


def test_rows_of_few_elements_are_spread_over_the_device() -> None:
    """In blocks of 512 threads, 16 of 132 multiprocessors would have one."""
    sketch = task_of("short rows").sketches[0]
    assert seconds(sketch, threads=64) < 0.8 * seconds(sketch, threads=512)


def test_blocks_of_a_launch_start_one_after_the_other() -> None:
    """So that a warp a block takes longer the more there are, whatever else the device could do."""
    data = te.placeholder((4, 1200, 18, 18), name="data")
    sketch = lw.SearchTask(topi.nn.avg_pool(data, 2, 1, 1), target=DEVICE).sketches[0]
    assert seconds(sketch, threads=32) > 2 * seconds(sketch, threads=256)


def test_lanes_that_do_not_step_evenly_are_written_one_by_one() -> None:
    """Of two neighbours one element is read twice; of four, two elements are: no vector of them is written."""
    sketch = task_of("nearest").sketches[0]
    assert seconds(sketch, vector=4) > seconds(sketch, vector=2)
