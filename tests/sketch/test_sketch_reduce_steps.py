"""Reduce axes on a CPU: blocks and unrolled steps of extents that factors divide, and of those that few do."""

import numpy as np
import pytest
from sketch_rows import require_features_of_ir

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.presets import preset_target
from loopwright.dialects.target import TargetAttr
from loopwright.search.rules._reduce_steps import steps_of
from loopwright.search.sketch.population import Rows
from loopwright.search.sketch.sketch import Sketch

TARGET = "llvm cores=2 vector_bytes=64 vector_registers=32"


def product(m: int, n: int, k: int, dtype: str = "float32") -> lw.SearchTask:
    def tensors() -> list[te.Tensor]:
        a, b = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B")
        return [a, b, topi.matmul(a, b)]

    return lw.SearchTask(tensors, target=TARGET)


def steps_columns(sketch: Sketch, rows: Rows, extent: int) -> tuple[Rows, Rows]:
    """Unrolled steps of a block, all of them where all terms are added up at once, and terms of such a step."""
    columns = sketch.columns(rows)
    (name,) = (n for n in columns if n.endswith("_k_unroll"))
    unroll = columns[name]
    return columns.get(name.replace("_unroll", "_block"), -(-extent // unroll)), unroll


@pytest.mark.parametrize("extent", [12, 16, 64, 100, 512, 1000, 4608])
def test_extents_with_factors_have_no_tail(extent: int) -> None:
    steps = steps_of(extent)
    assert all(extent % n == 0 for n in (*steps.blocks, *steps.unrolls))
    assert steps.block <= 256
    assert steps.unroll == 1


@pytest.mark.parametrize("extent", [9, 49, 103, 225, 1009, 2018, 10007])
def test_others_have_blocks_and_unrolled_steps_all_the_same(extent: int) -> None:
    steps = steps_of(extent)
    assert steps.unrolls == (1, 2, 4, 8)
    assert 4 <= len(steps.blocks) <= 12
    assert extent in steps.blocks
    assert steps.block in steps.blocks


@pytest.mark.parametrize(
    ("extent", "dtype"), [(9, "float32"), (103, "float32"), (103, "float64"), (49, "int32"), (577, "float32")]
)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_candidates_with_tails_are_right(extent: int, dtype: str) -> None:
    task = product(13, 40, extent, dtype)
    reference = task.reference
    for sketch in task.sketches:
        rows = sketch.population.sample(np.random.default_rng(extent), 256)
        block, unroll = steps_columns(sketch, rows, extent)
        steps = block * unroll
        assert (steps < extent + unroll).all()
        assert ((extent % steps == 0) | (steps > extent) | ((unroll >= 4) & (16 * (extent % steps) <= extent))).all()
        tailed = rows[extent % steps != 0]
        assert len(tailed)
        for row in [sketch.default, *tailed[:3]]:
            got = task.build(sketch.schedule(row))(*reference.inputs)
            np.testing.assert_allclose(
                got, reference.expected[0], **reference.tolerances[0]._asdict(), err_msg=sketch.schedule(row)
            )


def test_features_with_tails_are_those_of_the_ir() -> None:
    task, device = product(13, 40, 103), preset_target(TARGET)
    module = task.module
    module.attributes["lw.target"] = TargetAttr(device)
    for sketch in (sketch for sketch in task.sketches if "_once" not in sketch.name):
        rows = sketch.population.sample(np.random.default_rng(1), 64)
        block, unroll = steps_columns(sketch, rows, 103)
        rows = rows[103 % (block * unroll) != 0][:4]
        require_features_of_ir(module, device, sketch, rows)
