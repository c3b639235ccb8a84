"""What a scheduled program takes of a target's threads, shared memory, registers and compiler, read from its loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects.loop import BlockOp, ForOp, blocks_in, loops_in
from ...dialects.target import MOST_THREADS_Z, Target, target_of
from ...passes.analysis.code_size import buffer_element_bytes, copies, vectors
from ...passes.analysis.nest import functions
from ...passes.analysis.placement import Placement, place_buffers

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
    target = target_of(module)
    if not target.is_gpu:
        blocks = [block for func in functions(module) for block in blocks_in(func)]
        return Usage(steps=sum(copies(block) * vectors(block, target.vector_bytes) for block in blocks))
    launches: list[Usage] = []
    steps = 0
    for func in functions(module):
        places = place_buffers(func, gpu=True)
        for nest in func.body.block.ops:
            if isinstance(nest, ForOp):
                launches.append(_launch(nest, places))
        steps += sum(map(copies, blocks_in(func)))
    names = ("threads", "threads_z", "vthreads", "shared_bytes", "local_bytes")
    most = {name: max(getattr(u, name) for u in [Usage(), *launches]) for name in names}
    return Usage(**most, steps=steps)


def _launch(nest: ForOp, places: Mapping[SSAValue, Placement]) -> Usage:
    sizes: dict[str, int] = {}
    for loop in [nest, *loops_in(nest)]:
        if loop.loop_kind.startswith("threadIdx"):
            sizes[loop.loop_kind] = max(loop.size, sizes.get(loop.loop_kind, 1))
    blocks = list(blocks_in(nest))
    vthreads = max(prod(x.size for x in b.enclosing_loops if x.loop_kind == "vthread") for b in blocks)
    written = dict.fromkeys(out for b in blocks for out in b.outputs)
    taken = dict.fromkeys(("shared", "local"), 0)
    for buffer in written:
        place = places[buffer]
        if place.scope in taken:
            taken[place.scope] += place.size * buffer_element_bytes(buffer)
    return Usage(prod(sizes.values()), sizes.get("threadIdx.z", 1), vthreads, taken["shared"], taken["local"])


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


def blocks_of(module: ModuleOp) -> list[BlockOp]:
    """All blocks of a module, in program order."""
    return [block for func in functions(module) for block in blocks_in(func)]
