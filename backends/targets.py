"""`resolve_target`: the target that a text names, with this machine's devices where it names no model."""

from __future__ import annotations

from ..dialects.presets import preset_target
from ..dialects.target import Target, options_of
from .cuda.driver import target_of_device as cuda_target
from .llvm.host import host_target
from .opencl.platform import target_of_device as opencl_target


def resolve_target(target: str | Target) -> Target:
    """Return the target a text names, or the target itself: what `target=` takes wherever kernels are made or searched.

    `llvm`, `cuda` and `opencl`, also with `cores=2`, are this machine's; `cuda model=h200` is a well-known device.
    ValueError for a text that names none.
    """
    if isinstance(target, Target):
        return target
    given = preset_target(target)
    named = options_of(target)
    if set(named) - {"kind", "cores"}:
        return given
    if given.kind == "llvm":
        return host_target(given.cores if "cores" in named else None)
    here = cuda_target() if given.kind == "cuda" else opencl_target()
    return here.with_cores(given.cores) if "cores" in named else here
