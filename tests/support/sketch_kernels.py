"""Candidates of a sketch, built and run beside what is right."""

import numpy as np

import loopwright as lw
from loopwright.search.sketch.sketch import Sketch


def check_kernels(task: lw.SearchTask, sketch: Sketch, seed: int, count: int, atol: float = 1e-4) -> None:
    """Run the kernels of a sketch's defaults, and of as many rows drawn with a seed, on the task's reference data."""
    for row in (sketch.default, *sketch.sample(np.random.default_rng(seed), count)):
        schedule = sketch.schedule(row)
        found = task.build(schedule)(*task.reference.inputs)
        np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-4, atol=atol, err_msg=schedule)
