"""`resolve_target`: the target that a text names, with this machine's devices where it names no model."""

from __future__ import annotations

from functools import cache

from ..dialects.caller import warn_caller
from ..dialects.classic_words import knows_classic_words
from ..dialects.gpu_models import DEFAULTS
from ..dialects.presets import preset_target
from ..dialects.target import Target, options_of
from .cuda.driver import target_of_device as cuda_target
from .llvm.host import cpu_of, host_target
from .missing import MissingRequirement
from .opencl.platform import target_of_device as opencl_target


class TargetWarning(UserWarning):
    """A target's text names a device that is not here, and another one was taken."""


@knows_classic_words
def resolve_target(target: str | Target) -> Target:
    """Return the target a text names, or the target itself: what `target=` takes wherever kernels are made or searched.

    `llvm`, `cuda` and `opencl`, also with `cores=2`, are this machine's; `cuda model=h200` is a well-known device.
    Where there is no such device here, kernels are made for a default one, with a TargetWarning that names it.
    ValueError for a text that names none, TypeError for what is no text.
    """
    if isinstance(target, Target):
        return target
    if not isinstance(target, str):
        raise TypeError(f"a target is text, as 'llvm cores=2', or a Target, got {type(target).__name__}")
    given = preset_target(target)
    named = options_of(target)
    if not given.is_ours:
        return given
    if set(named) - {"kind", "cores"}:
        return given if given.is_gpu else _known_cpu(given)
    if given.kind == "llvm":
        return host_target(given.cores if "cores" in named else None)
    found = _device_here(given.kind)
    return found.with_cores(given.cores) if "cores" in named else found


def _known_cpu(given: Target) -> Target:
    """Return a target of a CPU that code can be made for; ValueError for one that is not known."""
    try:
        cpu_of(given)
    except ValueError as error:
        raise ValueError(f"target '{given}': {error}") from None
    return given


def _device_here(kind: str) -> Target:
    """Return this machine's first GPU as a target, or the default one, saying so once."""
    try:
        return cuda_target() if kind == "cuda" else opencl_target()
    except MissingRequirement as error:
        _warn_of_default(kind, str(error))
        return DEFAULTS[kind]


def require_device(target: str) -> None:
    """Raise MissingRequirement where a text names this machine's GPU, to measure on it, and there is none."""
    given = preset_target(target)
    if given.is_ours and given.is_gpu and not set(options_of(target)) - {"kind", "cores"}:
        _ = cuda_target() if given.kind == "cuda" else opencl_target()


@cache
def _warn_of_default(kind: str, why: str) -> None:
    text = f"'{kind}' is taken for '{kind} model={DEFAULTS[kind].model}', to compile only: {why}"
    warn_caller(text, TargetWarning)
