"""What a scheduled program takes of a target's threads, shared memory, registers and compiler, read from its loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import MOST_THREADS_Z, Target, target_of
from ..features.nest import Buffer, Loop, Nest, Stage
from ..features.placement import kept_part
from ..features.read import nest_of_candidate
from ..features.sizes import Size, ceil_div, equal, less, maximum, product, total, where
from ..features.steps import owner_of

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


@dataclass(frozen=True)
class Usage:
    """The most that any launch takes: threads of a block, virtual threads of a thread, bytes; and all statements.

    On a CPU the statements only, in vectors of the machine.
    """

    threads: int = 1
    threads_z: int = 1
    vthreads: int = 1
    shared_bytes: int = 0
    local_bytes: int = 0
    steps: int = 0


def usage(module: ModuleOp) -> Usage:
    """What the loops of a scheduled module take on its target."""
    taken = usage_of_nest(nest_of_candidate(module, target_of(module)))
    return Usage(**{name: int(size) for name, size in taken.items() if isinstance(size, int | float)})


def usage_of_nest(nest: Nest) -> dict[str, Size]:
    """The fields of Usage, of one candidate or for a population."""
    stages = list(nest.root.stages())
    if not nest.target.is_gpu:
        vector_bytes = nest.target.vector_bytes
        return {"steps": total([_copies(stage) * _vectors(stage, vector_bytes) for stage in stages])}
    launches = [_launch(nest, kernel) for kernel in nest.root.body if isinstance(kernel, Loop)]
    most = {name: maximum(default, *(x[name] for x in launches)) for name, default in _OF_A_LAUNCH.items()}
    return {**most, "steps": total([_copies(stage) for stage in stages])}


_OF_A_LAUNCH: dict[str, Size] = {"threads": 1, "threads_z": 1, "vthreads": 1, "shared_bytes": 0, "local_bytes": 0}


def _launch(nest: Nest, kernel: Loop) -> dict[str, Size]:
    """What one kernel takes."""
    loops = [kernel, *kernel.loops_below()]
    along = [maximum(1, *(x.extent for x in loops if x.kind == f"threadIdx.{d}")) for d in "xyz"]
    stages = list(kernel.stages())
    virtual = maximum(1, *(product([x.extent for x in s.loops if x.kind == "vthread"]) for s in stages))
    written = dict.fromkeys(w.buffer for s in stages for w in s.writes if not w.buffer.is_argument)
    shared, local = (total([_bytes(nest, b) for b in written if b.scope == scope]) for scope in ("shared", "local"))
    return {
        "threads": product(along),
        "threads_z": along[-1],
        "vthreads": virtual,
        "shared_bytes": shared,
        "local_bytes": local,
    }


def _bytes(nest: Nest, buffer: Buffer) -> Size:
    """Bytes of a buffer for one iteration of the loop that owns it, of registers for each virtual thread that does."""
    owner = owner_of(nest, buffer)
    size = kept_part(nest, buffer, owner).elements * buffer.element_bytes
    around = owner
    while buffer.scope == "local" and around is not None:
        if around.kind == "vthread" and _moves(nest, buffer, around):
            size = size * around.extent
        around = around.parent
    return size


def _moves(nest: Nest, buffer: Buffer, loop: Loop) -> bool:
    """True where another iteration of a loop touches other elements of a buffer."""
    for stage in nest.root.stages():
        bound = stage.bound
        for access in stage.accesses:
            if access.buffer is buffer and any(loop.name in i.substitute(bound).names for i in access.indices):
                return True
    return False


def _copies(stage: Stage) -> Size:
    """How often a stage is written out: by virtual threads, unrolled loops, and what a pragma asks for."""
    limits: list[Size] = []
    limit: Size = 0
    for loop in stage.loops:
        limit = loop.notes.get("auto_unroll_max_step", limit)
        if "unroll_explicit" in loop.notes:
            limit = where(equal(loop.notes["unroll_explicit"], 0), 0, limit)
        limits.append(limit)
    inside: Size = 1
    copies: Size = 1
    for loop, most in zip(reversed(stage.loops), reversed(limits), strict=True):
        inside = inside if loop.kind == "vectorized" else inside * loop.extent
        if loop.kind in ("unrolled", "vthread"):
            copies = copies * loop.extent
        elif loop.kind == "serial":
            copies = copies * where(less(most, inside), 1, loop.extent)
    return copies


def _vectors(stage: Stage, vector_bytes: int) -> Size:
    """How many vectors of the machine a stage fills at once."""
    lanes = product([x.extent for x in stage.loops if x.kind == "vectorized"])
    return ceil_div(lanes * stage.writes[0].buffer.element_bytes, vector_bytes)


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
    """Which limit of a target is exceeded, as a sentence; None where all are kept."""
    for name, what, limit in limits(target):
        got = getattr(used, name)
        if limit and got > limit:
            return f"at most {limit} {what} on this target, got {got}"
    return None
