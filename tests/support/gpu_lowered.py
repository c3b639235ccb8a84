"""Schedules by hand for a GPU, lowered, and held to the expressions on OpenCL and interpreted for CUDA."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gpu_programs import compile_cuda, run_opencl
from late_notes import noting
from lowered_runs import exact_inputs
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from loopwright import te
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.schedule import Schedule
from loopwright.te.reduce import Reduce

OPENCL = "opencl max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=8"
CUDA = "cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 max_vthreads=8 compute_capability=90"
Steps = Callable[[Schedule], Any]


def lower(tensors: Sequence[te.Tensor], steps: Steps, target: str = OPENCL) -> tuple[Schedule, ModuleOp]:
    sch = Schedule(tensors, target=target)
    steps(sch)
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return sch, module


def check(tensors: Sequence[te.Tensor], steps: Steps, rtol: float = 1e-5) -> ModuleOp:
    """Hold the kernels for OpenCL, run and interpreted, and for CUDA, interpreted and compiled, to the expressions.

    Their barriers are in no branch.
    """
    sch, module = lower(tensors, steps)
    for_cuda = lower(tensors, steps, CUDA)[1]
    for op in module.walk():
        if isinstance(op, kernel.BarrierOp):
            parent = op.parent_op()
            while not isinstance(parent, kernel.LaunchOp):
                assert not isinstance(parent, scf.IfOp), "a barrier in a branch"
                assert parent is not None
                parent = parent.parent_op()
    inputs = exact_inputs(sch.workload)
    runs = (run_opencl(module.clone(), *inputs), run_kernel(module, inputs), run_kernel(for_cuda, inputs))
    for results in runs:
        for got, wanted in zip(results, run_te(sch.workload, inputs), strict=True):
            with noting(module):
                np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)
    compile_cuda(for_cuda, (90,))
    return module


def refuse(tensors: Sequence[te.Tensor], steps: Steps, rule: str) -> None:
    with pytest.raises(PassFailedException, match=rule):
        lower(tensors, steps)


def barriers(module: ModuleOp) -> int:
    return sum(isinstance(op, kernel.BarrierOp) for op in module.walk())


def placeholder(name: str, *shape: int) -> te.Tensor:
    return te.placeholder(shape, "float32", name)


def matmul(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b, r = placeholder("a", m, k), placeholder("b", k, n), te.reduce_axis((0, k), "k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def doubled(*shape: int) -> list[te.Tensor]:
    x = placeholder("x", *shape)
    return [x, te.compute(shape, lambda *i: x[i] * 2.0, name="y")]


def rows(function: Callable[..., Reduce], m: int, n: int) -> list[te.Tensor]:
    x, r = placeholder("x", m, n), te.reduce_axis((0, n), "k")
    return [x, te.compute((m,), lambda i: function(x[i, r], axis=r), name="s")]
