"""`build`: from IR at any level to a callable kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..dialects.graph import ApplyOp
from ..dialects.target import KINDS, Target, TargetAttr, target_of
from ..dialects.te import ComputeOp
from ..dialects.workload import verify_workload
from ..passes.build_limits import USUAL_LIMITS, BuildLimits
from .installed import build_installed
from .kernel_function import Kernel
from .targets import resolve_target


def build(
    x: Any,
    target: str | Target | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    check_addresses: bool = False,
    limits: BuildLimits = USUAL_LIMITS,
) -> Kernel:
    """Compile a module at te, loop or kernel level, or a schedule, into a callable: `lw.build`, without its check."""
    module = lower_to_kernel(x, target, limits)
    kind = target_of(module).kind
    if check_addresses and kind != "llvm":
        raise ValueError(f"addresses are checked in kernels for llvm only, got a kernel for {kind}")
    if kind not in KINDS:
        return build_installed(module, kind, params)
    if kind == "cuda":
        from .cuda.build import build_cuda

        return build_cuda(module, params)
    if kind == "opencl":
        from .opencl.build import build_opencl

        return build_opencl(module, params)
    from .llvm.build import build_llvm

    return build_llvm(module, params, check_addresses)


def lower_to_kernel(x: Any, target: str | Target | None = None, limits: BuildLimits = USUAL_LIMITS) -> ModuleOp:
    """Return a copy of a module, or of a schedule's module, lowered to the kernel level for a target."""
    from .lowering import lower_in_place

    given = x if isinstance(x, ModuleOp) else getattr(x, "module", None)
    if not isinstance(given, ModuleOp):
        what = "te tensors, a module or a schedule"
        raise TypeError(f"build takes {what}, got {type(x).__name__}")
    if any(isinstance(op, ApplyOp) for op in given.walk()):
        raise TypeError("build takes a program of one kernel, got a network: lw.compile(net, target) compiles it")
    if any(isinstance(op, ComputeOp) for op in given.walk()):
        verify_workload(given)
    module = given.clone()
    _set_target(module, target)
    lower_in_place(module, limits)
    return module


def _set_target(module: ModuleOp, target: str | Target | None) -> None:
    if target is None and isinstance(module.attributes.get("lw.target"), TargetAttr):
        return
    module.attributes["lw.target"] = TargetAttr(resolve_target(target or "llvm"))
