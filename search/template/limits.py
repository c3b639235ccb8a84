"""Limits of a target on threads and shared memory, estimates of what is worth a build, and what a program keeps."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Limit:
    """The most that there may be of a field of Usage; 0 where not known.

    An estimate is none of the device's: it leaves out what would hardly be fast, or take long to build.
    """

    field: str
    what: str
    most: int
    estimated: bool = False

    def excess(self, used: Usage) -> str | None:
        """Say that a program takes more; None where it does not."""
        got = getattr(used, self.field)
        if not self.most or got <= self.most:
            return None
        if not self.estimated:
            return f"at most {self.most} {self.what} on this target, got {got}"
        return (
            f"by estimate, no more than {self.most} {self.what} are worth a build, got {got} "
            "(no limit of the device: a task with estimates=False takes it)"
        )


def limits(target: Target, estimates: bool = True) -> tuple[Limit, ...]:
    """The limits of a target, and with `estimates` those too."""
    if not target.is_gpu:
        return (Limit("steps", "vectors of statements after unrolling", MOST_VECTORS, True),) if estimates else ()
    device = (
        Limit("threads", "threads in a block", target.max_threads_per_block),
        Limit("threads_z", "threads along z in a block", MOST_THREADS_Z),
        Limit("shared_bytes", "bytes of shared memory in a block", target.max_shared_bytes),
    )
    estimated = (
        Limit("vthreads", "virtual threads in a thread", target.max_vthreads, True),
        Limit("local_bytes", "bytes of registers in a thread", MOST_LOCAL_BYTES, True),
        Limit("steps", "statements after unrolling", MOST_STEPS, True),
    )
    return (*device, *estimated) if estimates else device


def excess(used: Usage, target: Target, estimates: bool = True) -> str | None:
    """Say which limit of a target is exceeded, or with `estimates` which of those; None where all are kept."""
    return next(filter(None, (limit.excess(used) for limit in limits(target, estimates))), None)


def device_excess(module: ModuleOp, target: Target) -> str | None:
    """Say which limit of a device the loops of a scheduled module break; None where all are kept."""
    return excess(usage(module), target, estimates=False) if target.is_gpu else None
