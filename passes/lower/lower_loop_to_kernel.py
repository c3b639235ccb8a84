"""Lower scheduled loops to the kernel dialect: lanes become vectors, unrolled loops copies, regions buffers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects import loop
from ...dialects.combiner import element_bytes
from ...dialects.kernel import AllocOp, LaunchOp
from ...dialects.loop import BlockOp, ForOp
from ...dialects.target import MOST_THREADS_Z, Target, target_of
from ..build_limits import USUAL_LIMITS, BuildLimits
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


def lower_loop_to_kernel(module: ModuleOp, limits: BuildLimits = USUAL_LIMITS) -> None:
    """Lower every function on loops in `module`, in place; PassFailedException for loops it cannot run.

    ScheduleError where the code would be larger than `limits` allow, before any of it is written.
    """
    target = target_of(module)
    limits.require_code(module)
    for func in [f for f in module.ops if isinstance(f, FuncOp) and f.body.blocks]:
        if any(isinstance(op, ForOp | BlockOp | loop.AllocOp) for op in func.body.block.ops):
            lowering = _gpu_lowering(func, target) if target.is_gpu else Lowering(func)
            with collector_paused():
                lowering.run()
            for op in func.body.block.ops:
                if isinstance(op, LaunchOp):
                    _require_limits(op, target)


SHARED_ALIGNMENT = 16
"""Bytes that each shared buffer starts at a multiple of."""
ASYNC_COPIES_SINCE = 80
"""The first compute capability that copies to shared memory by itself (CUDA C++ Programming Guide)."""


def _gpu_lowering(func: FuncOp, target: Target) -> GpuLowering:
    cuda = target.kind == "cuda"
    return GpuLowering(func, warps=cuda, asynchronous=cuda and target.compute_capability >= ASYNC_COPIES_SINCE)


def _require_limits(launch: LaunchOp, target: Target) -> None:
    """PassFailedException where a launch takes more threads or shared memory than a block can have."""
    buffers = [op for op in launch.body.block.ops if isinstance(op, AllocOp)]
    taken = (
        ("threads", prod(launch.block_size), target.max_threads_per_block),
        ("threads along z", launch.block_size[2], MOST_THREADS_Z),
        ("bytes of shared memory", sum(_shared_bytes(op) for op in buffers), target.max_shared_bytes),
    )
    for what, amount, limit in taken:
        if limit and amount > limit:
            rule = f"a block of threads takes {amount} {what}, the target has {limit}: smaller tiles take less"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}")


def _shared_bytes(op: AllocOp) -> int:
    kind = op.buffer.type
    space = kind.memory_space
    if not isinstance(space, StringAttr) or space.data != "shared":
        return 0
    size = prod(kind.get_shape()) * element_bytes(kind.element_type)
    return -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
