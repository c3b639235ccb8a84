"""Limits of a target on threads, shared memory, registers and code size, and whether a program keeps them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import MOST_THREADS_Z, Target, target_of
from ...passes.parametric.read import nest_of_candidate, nest_of_module
from ...passes.parametric.usage import Usage, usage_of

MOST_LOCAL_BYTES = 4 * 1024
"""Of what a thread keeps in registers, arrays beyond the 255 x 4 bytes of a thread spill; four times that is hopeless,
and compiling it takes minutes."""

MOST_STEPS = 2048
"""Statements that virtual threads and unrolled loops may be copied into on a GPU; a compiler takes minutes for more."""

MOST_VECTORS = 512 + 32
"""The same on a CPU, in vectors of the machine: of 64 floats, where 16 are one, a statement counts 4 times. It is room
for a tile of 512, and what is beside it.

LLVM 20 builds so many in 3 s or less on a core of a Zen 5, mostly in half a second. Where lanes are no power of two and
nothing is around them that repeats, time grows with the square: 5 to 8 s for 640 to 1024, 17 s for 1536, 27 s for 2048
(a dense layer, 512 to 640 steps unrolled, 5 to 50 lanes). Of 60 random configs of a 28x28 convolution, and of a product
192x768x512, the fastest three have 7 to 336.
"""


def usage(module: ModuleOp) -> Usage:
    """Resource usage of the loops of a scheduled module on its target."""
    target = target_of(module)
    return usage_of(nest_of_candidate(module, target) if target.is_gpu else nest_of_module(module, target))


Limits = tuple[tuple[str, str, int], ...]
"""The field of Usage, what it counts, and the most there may be; 0 where not known."""


def device_limits(target: Target) -> Limits:
    """The limits that a device has, which no schedule may break."""
    if not target.is_gpu:
        return ()
    return (
        ("threads", "threads in a block", target.max_threads_per_block),
        ("threads_z", "threads along z in a block", MOST_THREADS_Z),
        ("vthreads", "virtual threads in a thread", target.max_vthreads),
        ("shared_bytes", "bytes of shared memory in a block", target.max_shared_bytes),
    )


def limits(target: Target) -> Limits:
    """The limits of a device, and those of code that a search is kept to."""
    if not target.is_gpu:
        return (("steps", "vectors of statements after unrolling", MOST_VECTORS),)
    return (
        *device_limits(target),
        ("local_bytes", "bytes of registers in a thread", MOST_LOCAL_BYTES),
        ("steps", "statements after unrolling", MOST_STEPS),
    )


def excess(used: Usage, target: Target) -> str | None:
    """Say which limit of a target is exceeded; None where all are kept."""
    return _broken(used, limits(target))


def device_excess(module: ModuleOp, target: Target) -> str | None:
    """Say which limit of a device the loops of a scheduled module break; None where all are kept."""
    known = device_limits(target)
    return _broken(usage(module), known) if known else None


def _broken(used: Usage, known: Limits) -> str | None:
    for name, what, limit in known:
        got = getattr(used, name)
        if limit and got > limit:
            return f"at most {limit} {what} on this target, got {got}"
    return None
