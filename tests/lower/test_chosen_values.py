"""Selections among values whose conditions are known where they are written: what is not chosen is not written."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from lowered_runs import exact_inputs, lowered
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.schedule import Schedule

CUDA = "cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 max_vthreads=8 compute_capability=90"
CPU = "llvm cores=1 vector_bytes=32 vector_registers=16"


def tensors(last: int) -> list[te.Tensor]:
    """One of three values by the row, of a nest of selections; the last row of some is chosen by the column."""
    a, b, c = (te.placeholder((4, 8), name=name) for name in "abc")

    def value(i: Any, j: Any) -> Any:
        inner = te.if_then_else(i < 3, b[i, j] * 2.0, te.if_then_else(j < last, c[i, j], c[i, j] + 1.0))
        return te.if_then_else(i < 1, a[i, j], inner)

    return [a, b, c, te.compute((4, 8), value, name="y")]


def checked(of: Sequence[te.Tensor], target: str, unroll: bool) -> ModuleOp:
    sch = Schedule(of, target=target)
    i, j = sch.get_loops("y")
    if target == CUDA:
        sch.reorder("y", [j, i])
        sch.bind("y", j, "threadIdx.x")
    if unroll:
        sch.unroll("y", i)
    module = lowered(sch.module)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return module


def count(module: ModuleOp, *kinds: type) -> int:
    return sum(isinstance(op, kinds) for op in module.walk())


@pytest.mark.parametrize("target", [CUDA, CPU])
def test_what_is_not_chosen_is_not_written(target: str) -> None:
    module = checked(tensors(8), target, unroll=True)
    assert count(module, arith.SelectOp, kernel.SelectOp) == 0
    loads = [op for op in module.walk() if isinstance(op, kernel.LoadOp)]
    assert len({op.buffer for op in loads}) == 3 and len(loads) == 4


@pytest.mark.parametrize("target", [CUDA, CPU])
def test_what_is_not_known_is_chosen_as_it_runs(target: str) -> None:
    assert count(checked(tensors(5), target, unroll=True), arith.SelectOp, kernel.SelectOp) >= 1
    assert count(checked(tensors(5), target, unroll=False), arith.SelectOp, kernel.SelectOp) >= 2
