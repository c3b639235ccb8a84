"""Walks over IR give the operations that xDSL's own walk gives, in its order."""

import pytest
from xdsl.dialects.func import ReturnOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.lowering import lower_in_place
from loopwright.dialects.loop import AllocOp, BlockOp, ForOp, loops_in, nested_in
from loopwright.dialects.walk import operations_in
from loopwright.passes.analysis.nest import functions
from loopwright.te import Tensor


def layer() -> list[Tensor]:
    data, weight = te.placeholder((1, 4, 9, 9), name="data"), te.placeholder((8, 4, 3, 3), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.conv2d_nchw(data, weight, 1, 1))]


@pytest.mark.parametrize("target", ["llvm cores=2", "cuda model=h200"])
@pytest.mark.few(1)
def test_operations_in_program_order_at_each_level(target: str) -> None:
    task = lw.SearchTask(layer, target=target)
    scheduled = task.schedule_module(task.default_schedule)
    lowered = scheduled.clone()
    lower_in_place(lowered)
    for module in (task.module, scheduled, lowered):
        assert list(operations_in(module)) == list(module.walk())
    (func,) = functions(scheduled)
    nested = [op for op in func.walk() if isinstance(op, ForOp | BlockOp | AllocOp | ReturnOp)]
    assert list(nested_in(func)) == nested
    loops = [op for op in nested if isinstance(op, ForOp)]
    assert list(loops_in(func)) == loops
    assert list(loops_in(loops[0])) == [op for op in loops[0].walk() if isinstance(op, ForOp) and op is not loops[0]]
