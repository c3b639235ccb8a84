"""Seconds that candidates are estimated to take to be built: of all at once as of one, and more of more code."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.loop import blocks_in
from loopwright.passes.analysis.code_size import copies, lanes
from loopwright.passes.analysis.nest import functions
from loopwright.passes.parametric.read import nest_of_module
from loopwright.search.estimates.build_model import BUILD_S, STATEMENT_S


def product() -> list[te.Tensor]:
    a, b = te.placeholder((196, 384), name="a"), te.placeholder((384, 768), name="b")
    return [a, b, topi.nn.relu(topi.matmul(a, b))]


def windows() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 64, 14, 14), name="data"), te.placeholder((64, 64, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1)]


def rows() -> list[te.Tensor]:
    data = te.placeholder((512, 256), name="data")
    return [data, topi.nn.softmax(data, -1)]


@pytest.mark.parametrize("workload", [product, windows, rows])
@pytest.mark.few(2)
def test_seconds_follow_the_statements_that_are_written_out(workload: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(workload, target="cuda model=h200")
    for sketch in task.sketches:
        drawn = sketch.sample(np.random.default_rng(2), 3)
        estimated = sketch.build_seconds(drawn)
        assert estimated is not None and estimated.shape == (len(drawn),)
        for row, seconds in zip(drawn, estimated, strict=True):
            module = task.schedule_module(sketch.schedule(row))
            computing = {s.name for s in nest_of_module(module, task.target).root.stages() if s.arithmetic}
            blocks = [block for func in functions(module) for block in blocks_in(func)]
            written_out = sum(copies(block) * lanes(block) for block in blocks if block.block_name in computing)
            assert seconds == pytest.approx(BUILD_S + STATEMENT_S * written_out), sketch.schedule(row)


def test_nobody_has_an_idea_of_other_compilers() -> None:
    for target in ("opencl model=mali-t860", "llvm cores=1 vector_bytes=32"):
        sketch = lw.SearchTask(product, target=target).sketches[0]
        assert sketch.build_seconds(sketch.default[None]) is None
