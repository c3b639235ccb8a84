"""Samples whose features are computed again: each candidate is one of the sketch that it was measured of."""

from collections import Counter

import numpy as np
from rebuilt_samples import _of_sketch, as_measured
from sampled_workloads import Workload

from loopwright.search.sketch.one_core import as_on_one_core


def test_of_sketches_with_the_same_holes_the_one_that_was_measured_is_taken() -> None:
    sketches = Workload("matmul", (136, 88, 288, "float32")).task("llvm model=emeraldrapids").sketches
    holes = [tuple(hole.name for hole in sketch.holes) for sketch in sketches]
    several = next(names for names, number in Counter(holes).items() if number > 1)
    alike = [place for place, names in enumerate(holes) if names == several]
    for place in alike:
        row = sketches[place].default
        filled = np.array([[hole.choices[at] for hole, at in zip(sketches[place].holes, row, strict=True)]])
        (found,) = _of_sketch(sketches, place, several, np.arange(1), filled)
        assert found.sketch is sketches[place]
        np.testing.assert_array_equal(found.rows, row[None])
    elsewhere = next(place for place, names in enumerate(holes) if names != several)
    assert not _of_sketch(sketches, elsewhere, several, np.arange(1), filled)


def test_tiles_that_store_otherwise_now_are_described_as_they_were_measured() -> None:
    """As the model is asked about them: features of the steps of today would be of times that nobody measured."""
    task = Workload("depthwise nhwc", (1, 64, 14, 64, 3, 1, 64, 1)).task("llvm model=emeraldrapids cores=1")
    others = 0
    for sketch, asked in zip(task.sketches, as_on_one_core(task.sketches, task.module, task.target, 1), strict=True):
        rows = sketch.default[None]
        found = as_measured(sketch, task).features(rows)
        np.testing.assert_array_equal(found, asked.features(rows))
        others += int((found != sketch.features(rows)).any())
    assert others
