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


def limits(target: Target) -> tuple[tuple[str, str, int], ...]:
    """The limits of a target: the field of Usage, what it counts, and the most there may be; 0 where not known."""
    if not target.is_gpu:
        return (("steps", "vectors of statements after unrolling", MOST_VECTORS),)
    return (
        ("threads", "threads in a block", target.max_threads_per_block),
        ("threads_z", "threads along z in a block", MOST_THREADS_Z),
        ("vthreads", "virtual threads in a thread", target.max_vthreads),
        ("shared_bytes", "bytes of shared memory in a block", target.max_shared_bytes),
        ("local_bytes", "bytes of registers in a thread", MOST_LOCAL_BYTES),
        ("steps", "statements after unrolling", MOST_STEPS),
    )


def excess(used: Usage, target: Target) -> str | None:
    """Say which limit of a target is exceeded; None where all are kept."""
    for name, what, limit in limits(target):
        got = getattr(used, name)
        if limit and got > limit:
            return f"at most {limit} {what} on this target, got {got}"
    return None
