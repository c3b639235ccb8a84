"""Lower scheduled loops to the kernel dialect: lanes become vectors, unrolled loops copies, regions buffers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.loop import AllocOp, BlockOp, ForOp
from ...dialects.target import Target, target_of
from ..collector import collector_paused
from ._gpu_lowering import GpuLowering
from ._lowering import Lowering


@dataclass(frozen=True)
class LowerLoopToKernel(ModulePass):
    """Loops and blocks -> plain, parallel and replicated control flow around flat loads, stores and vector arithmetic.

    Each buffer keeps the region one iteration of its loop needs. Index arithmetic is simplified for the ranges of the
    loops and computed in the outermost loop where it is known. A tail predicate becomes a shorter loop, a mask over the
    lanes, or a branch around the largest nest it holds for; a nest whose tiles are mostly whole is written twice, once
    without the predicate.
    """

    name = "lw-lower-loop-to-kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_loop_to_kernel(op)


def lower_loop_to_kernel(module: ModuleOp) -> None:
    """Lower every function on loops in `module`, in place; PassFailedException for loops it cannot run."""
    target = target_of(module)
    for func in [f for f in module.ops if isinstance(f, FuncOp) and f.body.blocks]:
        if any(isinstance(op, ForOp | BlockOp | AllocOp) for op in func.body.block.ops):
            lowering = _gpu_lowering(func, target) if target.is_gpu else Lowering(func)
            with collector_paused():
                lowering.run()


ASYNC_COPIES_SINCE = 80
"""The first compute capability that copies to shared memory by itself (CUDA C++ Programming Guide)."""


def _gpu_lowering(func: FuncOp, target: Target) -> GpuLowering:
    cuda = target.kind == "cuda"
    return GpuLowering(func, warps=cuda, asynchronous=cuda and target.compute_capability >= ASYNC_COPIES_SINCE)
