"""bfloat16 on CPUs: results are rounded once, bit by bit as the interpreter does, also where nothing is to round."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te

ALL = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
"""Every value of the type: those that are no numbers, and subnormal ones, too."""

PROGRAMS: dict[str, Callable[[te.Tensor, te.Tensor, te.Tensor], te.Tensor]] = {
    "sum of what was rounded": lambda x, y, single: topi.nn.relu(topi.add(topi.cast(single, "bfloat16"), x)),
    "extremes": lambda x, y, single: topi.minimum(topi.maximum(x, y), topi.negative(y)),
    "several": lambda x, y, single: topi.maximum(topi.add(topi.multiply(x, y), x), topi.cast(single, "bfloat16")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_rounded_once(name: str) -> None:
    random = np.random.default_rng(0)
    single = random.integers(0, 1 << 32, len(ALL), dtype=np.uint32).view(np.float32)
    x, y = (te.placeholder((len(ALL),), "bfloat16", name=label) for label in "xy")
    z = te.placeholder((len(ALL),), "float32", name="z")
    tensors = [x, y, z, PROGRAMS[name](x, y, z)]
    sch, task = lw.Schedule(tensors, target="llvm"), lw.SearchTask(lambda: tensors, target="llvm")
    assert "lw-vectorize" in task.default_schedule
    inputs = [ALL, random.permutation(ALL), single]
    with np.errstate(all="ignore"):
        wanted = np.asarray(run_te(sch.workload, inputs)[0])
        found = np.asarray(task.build(task.default_schedule)(*inputs))
    values = [array.astype(np.float32) for array in (wanted, found)]
    numbers = ~(np.isnan(values[0]) & np.isnan(values[1]))
    if name == "extremes":  # of zeros of both signs either is the larger
        numbers &= (values[0] != 0) | (values[1] != 0)
    assert numbers.sum() > len(ALL) * 9 // 10
    np.testing.assert_array_equal(found.view(np.uint16)[numbers], wanted.view(np.uint16)[numbers])
