"""`check=True` holds a kernel once to what its workload says, and names what is wrong."""

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

import loopwright as lw
from loopwright import te, topi
from loopwright.backends import lowering as backend
from loopwright.passes.build_limits import BuildLimits
from loopwright.search.task import SearchTask


def layer() -> list[te.Tensor]:
    data = te.placeholder((6, 9), name="data")
    weight = te.placeholder((9, 5), name="weight", constant=True)
    return [data, weight, topi.nn.relu(topi.matmul(data, weight))]


def scheduled() -> lw.Schedule:
    sch = lw.Schedule(layer(), "llvm cores=1")
    sch.apply('lw-split{block="T_matmul" loop="i" factors=0,4}')
    return sch


def test_right_kernels_pass() -> None:
    weight = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32) * 1000
    assert lw.build(scheduled(), check=True).arguments
    assert lw.build(te.create_module(layer()), target="llvm cores=1", check=True).arguments
    assert len(lw.build(scheduled(), params={"weight": weight}, check=True).arguments) == 2
    task = lw.SearchTask(layer, target="llvm cores=1")
    assert len(task.build(params={"weight": weight}, check=True).arguments) == 2


@pytest.fixture
def wrong_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that take the smaller where they should take the larger."""
    lower = backend.lower_in_place

    def lowered(module: ModuleOp, limits: BuildLimits) -> None:
        lower(module, limits)
        for op in [op for op in module.walk() if isinstance(op, arith.MaximumfOp)]:
            Rewriter.replace_op(op, arith.MinimumfOp(op.lhs, op.rhs))

    monkeypatch.setattr(backend, "lower_in_place", lowered)


@pytest.mark.usefixtures("wrong_backend")
def test_a_wrong_kernel_is_named_with_its_first_wrong_element_and_its_schedule() -> None:
    sch = scheduled()
    with pytest.raises(lw.WrongKernelError) as caught:
        lw.build(sch, check=True)
    message = str(caught.value)
    assert message.startswith("kernel main is wrong: ") and "\n" not in message
    assert " of 30 elements of output 'T_relu', the first at (0, " in message
    assert ": got " in message and ", expected " in message and message.endswith(f"under schedule '{sch.pipeline}'")
    with pytest.raises(lw.WrongKernelError, match=r"without a schedule$"):
        lw.build(te.create_module(layer()), check=True)
    lw.build(sch)  # nobody asked


@pytest.mark.usefixtures("wrong_backend")
def test_what_a_search_found_is_checked_too() -> None:
    task = lw.SearchTask(layer, target="llvm cores=1")
    with pytest.raises(lw.WrongKernelError, match="under schedule 'lw-lower-te-to-loop,"):
        task.build(check=True)


def test_loops_have_nothing_to_be_compared_with() -> None:
    with pytest.raises(ValueError, match="compares with computes on tensors"):
        lw.build(scheduled().module, check=True)


def test_each_kernel_of_a_network_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    net = lw.testing.network("mlp")
    lw.compile(net, target="llvm cores=1", processes=1, check=True)
    right = vars(SearchTask)["reference"].func
    shifted = property(lambda task: replace(made := right(task), expected=tuple(e + 1 for e in made.expected)))
    monkeypatch.setattr(SearchTask, "reference", shifted)
    with pytest.raises(lw.WrongKernelError, match=r"kernel .* is wrong"):
        lw.compile(net, target="llvm cores=1", processes=1, check=True)
