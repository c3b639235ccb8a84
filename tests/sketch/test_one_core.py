"""Sketches for several cores as one core has them: features without parallel loops, estimates of all cores together."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.pipeline_text import parse_schedule, schedule_text
from loopwright.passes.schedule.parallel import Parallel
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
