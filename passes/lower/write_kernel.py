"""Write kernels: what is left once loops are told apart and buffers placed, operation by operation."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.kernel import AllocOp, LaunchOp, shared_offsets
from ...dialects.target import MOST_THREADS_Z, Target, target_of
from ..analysis.nest import functions_on_loops
from ..collector import collector_paused
from ._gpu_lowering import GpuLowering
from ._lowering import Lowering
from ._steps import require_after
from ._unused import erase_unused
from .vectorize_loops import VectorizeLoops


@dataclass(frozen=True)
class WriteKernel(ModulePass):
    """Loops and blocks with placed buffers -> control flow around flat loads, stores and vector arithmetic.

    Index arithmetic is simplified for the ranges of the loops and computed in the outermost loop where it is known. A
    tail predicate becomes a shorter loop, a mask over the lanes, or a branch around the largest nest it holds for; a
    nest whose tiles are mostly whole is written twice, once without the predicate; on a CPU the other time is for the
    tile that is cut, where it is known which that is: of it those copies are written that are needed. Tiles of a sum
    that read padding in part have a version each on a CPU where they are few, without the products of it.

    Requires: what lanes touch decided (`lw-vectorize-loops`), by the last of the steps before.
    """

    name = "lw-write-kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for func in functions_on_loops(op):
            require_after(func, self.name, VectorizeLoops.name)
            with collector_paused():
                write_kernel(func, target)


def write_kernel(func: FuncOp, target: Target) -> None:
    """Lower one function on loops with placed buffers, in place; PassFailedException for loops it cannot run."""
    lowering = GpuLowering(func, warps=target.kind == "cuda") if target.is_gpu else Lowering(func)
    lowering.run()
    erase_unused(func)
    for op in func.body.block.ops:
        if isinstance(op, LaunchOp):
            _require_limits(op, target)


def _require_limits(launch: LaunchOp, target: Target) -> None:
    """PassFailedException where a launch takes more threads or shared memory than a block can have."""
    buffers = [op for op in launch.body.block.ops if isinstance(op, AllocOp) and _is_shared(op)]
    taken = (
        ("threads", prod(launch.block_size), target.max_threads_per_block),
        ("threads along z", launch.block_size[2], MOST_THREADS_Z),
        ("bytes of shared memory", shared_offsets(buffers)[1], target.max_shared_bytes),
    )
    for what, amount, limit in taken:
        if limit and amount > limit:
            rule = f"a block of threads takes {amount} {what}, the target has {limit}: smaller tiles take less"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}")


def _is_shared(op: AllocOp) -> bool:
    space = op.buffer.type.memory_space
    return isinstance(space, StringAttr) and space.data == "shared"
