"""Applying 40 steps to the seed convolution and lowering it to LLVM IR text gives the same bytes each time."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def compile_time(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("compile_time", None)
    import compile_time

    return compile_time


def test_the_same_bytes_each_time(compile_time: Any) -> None:
    assert len(compile_time.STEPS) == 40
    module, schedule = compile_time.workload(), ",".join(compile_time.STEPS)
    first, second = (compile_time.compile_once(module, schedule)[1].source for _ in range(2))
    assert first == second


def test_what_is_timed_is_right(compile_time: Any) -> None:
    from loopwright.backends.build import build
    from loopwright.passes.pipeline_text import apply_schedule
    from loopwright.topi.testing import conv2d_nchw_python

    module = compile_time.workload()
    apply_schedule(module, ",".join(compile_time.STEPS))
    rng = np.random.default_rng(0)
    shapes = (1, 512, 7, 7), (512, 512, 3, 3), (1, 512, 1, 1)
    data, weight, bias = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)
    wanted = np.maximum(conv2d_nchw_python(data, weight, 1, 1) + bias, 0)
    np.testing.assert_allclose(build(module)(data, weight, bias), wanted, rtol=1e-3, atol=2e-3)
