"""Estimates of windows in slices of parts: what is read once, and what stays in shared memory."""

import numpy as np

import loopwright as lw
from loopwright.search.named_workloads import conv2d
from loopwright.search.sketch.sketch import Sketch


def seconds(sketch: Sketch, **chosen: int) -> float:
    """The estimate of a candidate with these decisions, the rest as small as can be."""
    rows = []
    for hole in sketch.holes:
        wanted = next((n for end, n in chosen.items() if hole.name.endswith(end)), hole.choices[0])
        rows.append(hole.choices.index(wanted))
    columns = sketch.columns(np.array([rows]))
    assert sketch.prior is not None and sketch.legal(np.array([rows])).all()
    return float(sketch.prior(columns)[0])


def test_a_whole_image_in_a_thread_is_estimated_below_rows_and_columns() -> None:
    """512 channels of 7x7 took 10.2 us so on an H200, and others in columns of two pixels 12.6."""
    task = lw.SearchTask(lambda: conv2d(1, 7, 7, 512, 512), target="cuda model=h200")
    (sketch,) = [s for s in task.sketches if s.name.endswith("_split_sliced")]
    common = {"_parts": 16, "_rc10_step": 2, "_kernel_vector": 4, "_stages": 2, "_unroll": 512, "_ff_threads": 32}
    whole = seconds(sketch, **common, _slices=4, _xx_inner=7, _yy_inner=7)
    columns = seconds(sketch, **common, _slices=4, _xx_inner=2, _xx_threads=2, _yy_inner=7)
    assert whole < columns
    assert "compute_rf_rf" in task.default_schedule


def test_a_thread_has_a_whole_image_without_a_search() -> None:
    """Without defaults of this kind no row of a search's first ones has it: changes of one hole at a time end in rows.

    An H200 takes 10.6 us so, and 12.5 by what was chosen before.
    """
    task = lw.SearchTask(lambda: conv2d(1, 7, 7, 512, 512), target="cuda model=h200")
    number, row = task.default_candidate
    sketch = task.sketches[number]
    decisions = {h.name.removeprefix("conv2d_nchw_"): h.choices[n] for h, n in zip(sketch.holes, row, strict=True)}
    assert sketch.sure and sketch.name.endswith("_split_sliced")
    assert [n for name, n in decisions.items() if name.endswith(("xx_inner", "yy_inner"))] == [7, 7]


def test_long_code_and_few_stages_are_estimated_to_take_longer() -> None:
    task = lw.SearchTask(lambda: conv2d(1, 7, 7, 512, 512), target="cuda model=h200")
    (sketch,) = [s for s in task.sketches if s.name.endswith("_split_sliced")]
    common = {"_parts": 8, "_kernel_vector": 4, "_unroll": 512, "_slices": 4, "_xx_inner": 7, "_yy_inner": 7}
    short = seconds(sketch, **common, _rc10_step=2, _stages=3, _ff_threads=32)
    assert short < seconds(sketch, **common, _rc10_step=4, _stages=3, _ff_threads=32)
    assert short < seconds(sketch, **common, _rc10_step=2, _stages=2, _ff_threads=32)
