"""Sketches for several cores as one core has them: features without parallel loops, estimates of all cores together."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.pipeline_text import parse_schedule, schedule_text
from loopwright.passes.schedule.parallel import Parallel
from loopwright.passes.schedule.reverse_compute_at import ReverseComputeAt
from loopwright.passes.schedule.unroll import Unroll
from loopwright.search.features.of_sketch import SketchFeatures
from loopwright.search.sketch.one_core import as_on_one_core

CORES = 4
TARGET = lw.Target("llvm", cores=CORES, vector_bytes=64, vector_registers=32)


def test_features_are_those_of_the_schedule_without_its_parallel_loops() -> None:
    a, b = te.placeholder((96, 64), name="a"), te.placeholder((64, 128), name="b")
    task = lw.SearchTask([a, b, topi.matmul(a, b)], target=TARGET)
    alone = TARGET.with_cores(1)
    module = task.compute_dag.for_target(alone)
    (sketch, *_) = task.sketches
    (seen,) = as_on_one_core([sketch], module, alone, CORES)
    rows = sketch.sample(np.random.default_rng(0), 4)
    assert seen.schedule(rows[0]) == sketch.schedule(rows[0]), "what is chosen keeps its parallel loops"
    assert Parallel.name in sketch.schedule(rows[0])
    ours = seen.features(rows)
    for row, found in zip(rows, ours, strict=True):
        steps = parse_schedule(sketch.schedule(row))
        serial = schedule_text(s for s in steps if not isinstance(s, Parallel))
        (by_hand,) = SketchFeatures(module, alone, "by hand", serial, None)({}, 1)
        np.testing.assert_array_equal(found[:-1], by_hand[:-1])


def test_a_layer_of_few_terms_stores_results_from_registers_and_is_described_as_samples_have_it() -> None:
    """The buffer of a register tile becomes registers, as its results are stored by it, written out."""
    x, w = te.placeholder((1, 14, 14, 64), name="x"), te.placeholder((3, 3, 64, 1), name="w")
    layer = topi.nn.relu(topi.nn.depthwise_conv2d_nhwc(x, w, (1, 1), (1, 1), (1, 1)))
    target = TARGET.with_cores(1)
    task = lw.SearchTask([x, w, layer], target=target)
    module = task.compute_dag.for_target(target)
    sketch = next(sketch for sketch in task.sketches if "direct" in sketch.name)
    (seen,) = as_on_one_core([sketch], module, target, 1)
    row = sketch.sample(np.random.default_rng(0), 1)[0]
    assert seen.schedule(row) == sketch.schedule(row)
    steps = parse_schedule(sketch.schedule(row))
    (stored,) = (s for s in steps if isinstance(s, ReverseComputeAt))
    written_out = [s for s in steps if isinstance(s, Unroll) and s.block == stored.block]
    assert stored.loop == "xx1" and {s.loop for s in written_out} == {"yy2", "xx2", "ff2"}
    by_tasks = ReverseComputeAt(stored.block, "yy0_xx0_ff0")
    as_seen = schedule_text(by_tasks if s is stored else s for s in steps if s not in written_out)
    (by_hand,) = SketchFeatures(module, target, "by hand", as_seen, None)({}, 1)
    np.testing.assert_array_equal(seen.features(row[None])[0][:-1], by_hand[:-1])
    assert (sketch.features(row[None])[0][:-1] != by_hand[:-1]).any(), "its own features are those of its schedule"


def test_a_sketch_of_steps_that_samples_have_is_described_as_it_is_on_one_core() -> None:
    a, b = te.placeholder((96, 64), name="a"), te.placeholder((64, 128), name="b")
    target = TARGET.with_cores(1)
    task = lw.SearchTask([a, b, topi.matmul(a, b)], target=target)
    (sketch, *_) = task.sketches
    (seen,) = as_on_one_core([sketch], task.compute_dag.for_target(target), target, 1)
    rows = sketch.sample(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(seen.features(rows)[:, :-1], sketch.features(rows)[:, :-1])


def test_sketches_that_no_step_is_unseen_of_keep_their_own_features_on_one_core() -> None:
    """A second description would be made beside the first, which a search asks for."""
    x = te.placeholder((64, 100), name="x")
    target = TARGET.with_cores(1)
    task = lw.SearchTask([x, topi.nn.softmax(x)], target=target)
    asked = as_on_one_core(task.sketches, task.compute_dag.for_target(target), target, 1)
    assert all(seen is sketch for seen, sketch in zip(asked, task.sketches, strict=True))
