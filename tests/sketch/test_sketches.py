"""Every kind of operator through the search's sketches: each candidate builds and computes what the reference does."""

from typing import Any

import numpy as np
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.pipeline_text import parse_schedule
from loopwright.search.sketch.as_python import as_python

ZEN = "llvm model=znver3 l3_bytes=33554432"
XEON = "llvm model=emeraldrapids vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes=2097152 l3_bytes=314572800"


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(2)
def test_candidates_are_right(name: str) -> None:
    task = lw.SearchTask(SAMPLES[name], target="llvm cores=2")
    reference = task.reference
    rng = np.random.default_rng(1)
    for sketch in task.sketches:
        rows = [sketch.default, *sketch.sample(rng, 1)]
        assert sketch.legal(sketch.default[None])[0], f"{sketch.name}: the defaults break a limit"
        for row in rows:
            if not sketch.legal(row[None])[0]:
                continue
            outputs = task.build(sketch.schedule(row))(*reference.inputs)
            for got, expected in zip(
                outputs if isinstance(outputs, tuple) else (outputs,), reference.expected, strict=True
            ):
                np.testing.assert_allclose(
                    np.asarray(got, np.float64),
                    np.asarray(expected, np.float64),
                    **reference.tolerances[0]._asdict(),
                    err_msg=sketch.schedule(row),
                )


def test_rows_text_and_features_belong_together() -> None:
    task = lw.SearchTask(SAMPLES["conv_nchw_7x7"], target="llvm cores=2")
    rng = np.random.default_rng(2)
    for sketch in task.sketches:
        rows = sketch.sample(rng, 50)
        rows = rows[sketch.legal(rows)]
        assert len(rows) > 10
        assert np.isfinite(sketch.features(rows)).all()
        assert len({sketch.schedule(row) for row in rows}) == len(np.unique(rows, axis=0))
        moved = sketch.mutate(rng, rows)
        assert moved.shape == rows.shape
        assert (moved >= 0).all()
        assert (moved < [len(h.choices) for h in sketch.holes]).all()


def test_first_sketch_is_the_default_schedule() -> None:
    """Of a CPU that no model was trained on."""
    task = lw.SearchTask(SAMPLES["dense"], target="llvm model=nehalem cores=1")
    assert task.default_schedule == task.sketches[0].schedule(task.sketches[0].default)
    assert "lw-parallel" not in task.default_schedule


@pytest.mark.parametrize("target", ["llvm cores=2", "cuda model=h200"])
@pytest.mark.parametrize("name", ["conv_nchw_7x7", "dense"])
@pytest.mark.few(2)
def test_schedules_as_python_are_programs_that_make_the_same_schedule(name: str, target: str) -> None:
    task = lw.SearchTask(SAMPLES[name], target=target)
    rng = np.random.default_rng(3)
    for sketch in task.sketches:
        schedule = sketch.schedule(sketch.sample(rng, 1)[0])
        names: dict[str, Any] = {"tensors": SAMPLES[name]()}
        exec(as_python(parse_schedule(schedule), str(task.target)), names)
        assert parse_schedule(names["sch"].pipeline) == parse_schedule(schedule)


@pytest.mark.parametrize(("target", "size"), [(ZEN, 7), (XEON, 14), (XEON, 7)])
def test_rows_of_half_a_vector_are_lanes_by_themselves(target: str, size: int) -> None:
    """With both axes as one, every lane is packed by itself, for each channel anew."""
    task = lw.SearchTask(lambda: depthwise(size), target=target)
    assert task.sketches[0].name.startswith("xx_direct")
    assert any(sketch.name.startswith("yy_xx") for sketch in task.sketches)


def test_shorter_rows_are_lanes_together_with_others() -> None:
    task = lw.SearchTask(lambda: depthwise(4), target=XEON)
    assert all(sketch.name.startswith("yy_xx") for sketch in task.sketches)


def depthwise(size: int) -> list[te.Tensor]:
    data = te.placeholder((1, 96, size, size), name="data")
    kernel = te.placeholder((96, 1, 3, 3), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, 1, 1)]
