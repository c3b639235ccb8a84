"""Sketches for GPUs: those of products in slices, and candidates held to the reference by the interpreter."""

import numpy as np
from effort import usual
from gpu_programs import check_interpreted

import loopwright as lw
from loopwright.search.sketch.sketch import Sketch


def sliced(task: lw.SearchTask) -> list[Sketch]:
    return [sketch for sketch in task.sketches if sketch.name.endswith("sliced_large")]


def check_candidates(task: lw.SearchTask, sketch: Sketch, count: int) -> None:
    """Interpret a sketch's default and a `count` of candidates drawn at random, more of them in longer runs."""
    rows = sketch.sample(np.random.default_rng(2), usual(count))
    check_interpreted(task.module, task.reference, map(sketch.schedule, (sketch.default, *rows)))
