"""Lowering of a module, from the level that it is at to the kernel level."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ..dialects.walk import operations_in
from ..passes.build_limits import USUAL_LIMITS, BuildLimits
from ..passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from ..passes.lower.lower_te_to_loop import lower_te_to_loop
from .kernel_memory import require_memory


def lower_in_place(module: ModuleOp, limits: BuildLimits = USUAL_LIMITS) -> None:
    """Lower a module that carries its target to the kernel level; refusals as `build` says."""
    levels = {op.name.partition(".")[0] for op in operations_in(module)}
    if "lw_te" in levels:
        lower_te_to_loop(module)
        levels.add("lw_loop")
    if "lw_loop" in levels:
        lower_loop_to_kernel(module, limits)
    require_memory(module, limits.bytes)
