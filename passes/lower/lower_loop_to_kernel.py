"""Lower scheduled loops to the kernel dialect: lanes become vectors, unrolled loops copies, regions buffers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.target import target_of
from ..analysis.nest import functions_on_loops
from ..build_limits import USUAL_LIMITS, BuildLimits
from ..collector import collector_paused
from ._steps import require_none
from .carry_sums import CarrySums, carry_sums
from .coarsen_predicates import CoarsenPredicates, coarsen_predicates
from .drop_edges import DropEdges, drop_edges
from .end_loops import EndLoops, end_loops
from .expand_pipelines import ExpandPipelines, expand_pipelines
from .fill_tails import FillTails, fill_tails
from .join_launches import JoinLaunches, join_launches
from .keep_in_registers import KeepInRegisters, keep_in_registers
from .place_barriers import PlaceBarriers, place_barriers
from .place_buffers import PlaceBuffers, place_buffers
from .place_predicates import PlacePredicates, place_predicates
from .settle_loop_kinds import SettleLoopKinds, settle_loop_kinds
from .start_reductions import StartReductions, start_reductions
from .tell_loops_apart import TellLoopsApart, tell_loops_apart
from .vectorize_loops import VectorizeLoops, vectorize_loops
from .write_kernel import WriteKernel, write_kernel

STEPS: tuple[type[ModulePass], ...] = (
    TellLoopsApart,
    KeepInRegisters,
    CoarsenPredicates,
    PlaceBuffers,
    DropEdges,
    JoinLaunches,
    PlaceBarriers,
    StartReductions,
    EndLoops,
    CarrySums,
    FillTails,
    ExpandPipelines,
    SettleLoopKinds,
    PlacePredicates,
    VectorizeLoops,
    WriteKernel,
)
"""Passes that lower loops to a kernel, in order."""


@dataclass(frozen=True)
class LowerLoopToKernel(ModulePass):
    """Loops and blocks -> plain, parallel and replicated control flow around flat loads, stores and vector arithmetic.

    The same as all of STEPS, one after the other: `lw-tell-loops-apart,...,lw-write-kernel`.
    """

    name = "lw-lower-loop-to-kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_loop_to_kernel(op)


def lower_loop_to_kernel(module: ModuleOp, limits: BuildLimits = USUAL_LIMITS) -> None:
    """Lower every function on loops in `module`, in place; PassFailedException for loops it cannot run.

    ScheduleError where the code would be larger than `limits` allow, before any of it is written.
    """
    target = target_of(module)
    for func in functions_on_loops(module):
        require_none(func, LowerLoopToKernel.name)
    limits.require_code(module)
    for func in functions_on_loops(module):
        with collector_paused():
            tell_loops_apart(func, target.is_gpu)
            keep_in_registers(func, target.is_gpu)
            coarsen_predicates(func, target.is_gpu)
            place_buffers(func, target)
            drop_edges(func, target.is_gpu)
            join_launches(func, target)
            place_barriers(func, target.is_gpu)
            start_reductions(func)
            end_loops(func)
            carry_sums(func, target.is_gpu)
            fill_tails(func, target.is_gpu)
            expand_pipelines(func, target)
            settle_loop_kinds(func, target)
            place_predicates(func, target.is_gpu)
            vectorize_loops(func)
            write_kernel(func, target)
