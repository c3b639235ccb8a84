"""Resource usage of a scheduled program (threads, shared memory, registers, code size), read from its nest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from .index import depends_on
from .nest import Buffer, Loop, Nest, Stage
from .placement import kept_part
from .sizes import Size, ceil_div, less, maximum, minimum, product, total, where

UNROLL = "auto_unroll_max_step"
"""The note of a loop of how many copies of statements unrolling it, and those in it, may make."""


@dataclass(frozen=True)
class Usage:
    """The most that any launch takes: threads of a block, virtual threads of a thread, bytes; and all statements.

    On a CPU the statements only, in vectors of the machine.
    """

    threads: Size = 1
    threads_z: Size = 1
    vthreads: Size = 1
    shared_bytes: Size = 0
    local_bytes: Size = 0
    steps: Size = 0


def usage_of(nest: Nest) -> Usage:
    """Resource usage of the loops of a nest on its target, of one candidate or of many."""
    steps = total([copies(stage) * _vectors(stage, nest) for stage in nest.root.stages()])
    if not nest.target.is_gpu:
        return Usage(steps=steps)
    launches = [launch_usage(nest, kernel) for kernel in nest.root.body if isinstance(kernel, Loop)]
    names = [f.name for f in fields(Usage) if f.name != "steps"]
    most = {name: maximum(getattr(Usage, name), *(getattr(u, name) for u in launches)) for name in names}
    return Usage(**most, steps=steps)


def written_out(nest: Nest) -> Size:
    """Count the statements with arithmetic that are written out one after the other, each lane of vectors its own."""
    return total([copies(stage) * _lanes(stage) for stage in nest.root.stages() if stage.arithmetic])


def copies(stage: Stage) -> Size:
    """Count the copies of a stage, lanes apart: by virtual threads, unrolled loops, and what a pragma asks for."""
    limits: list[Size] = []
    limit: Size = 0
    for loop in stage.loops:
        limit = loop.notes.get(UNROLL, limit)
        limit = where(loop.notes.get("unroll_explicit", 1), limit, 0)
        limits.append(limit)
    inside: Size = 1
    found: Size = 1
    for loop, most in zip(reversed(stage.loops), reversed(limits), strict=True):
        inside = inside * (1 if loop.kind == "vectorized" else loop.extent)
        if loop.kind in ("unrolled", "vthread"):
            found = found * loop.extent
        elif loop.kind == "serial":
            found = found * where(less(most, inside), 1, loop.extent)
    return found


def steps_allowed(nest: Nest) -> list[Size]:
    """Limits of pragmas that unroll loops, each no more than all statements that its loop runs: more changes nothing.

    Lanes are counted apart, as those that are not side by side everywhere are unrolled.
    """
    loops = [loop for loop in nest.root.loops_below() if UNROLL in loop.notes]
    return [minimum(loop.notes[UNROLL], _statements_run(loop)) for loop in loops]


def _statements_run(node: Loop | Stage) -> Size:
    return 1 if isinstance(node, Stage) else node.extent * total([_statements_run(child) for child in node.body])


def _vectors(stage: Stage, nest: Nest) -> Size:
    """Count the vectors of the machine that a stage fills at once; a GPU has none."""
    if nest.target.is_gpu:
        return 1
    return ceil_div(_lanes(stage) * stage.writes[0].buffer.element_bytes, nest.target.vector_bytes)


def _lanes(stage: Stage) -> Size:
    """Count the elements that a stage computes at once."""
    return product([x.extent for x in stage.loops if x.kind == "vectorized"])


def launch_usage(nest: Nest, kernel: Loop | Stage, parts: Mapping[Buffer, Buffer] | None = None) -> Usage:
    """Resource usage of one launch, statements apart; `parts` are those that are kept of buffers, where known."""
    threads: dict[str, Size] = {}
    for loop in (kernel, *kernel.loops_below()) if isinstance(kernel, Loop) else ():
        if loop.kind.startswith("threadIdx"):
            threads[loop.kind] = maximum(loop.extent, threads.get(loop.kind, 1))
    stages = list(kernel.stages()) if isinstance(kernel, Loop) else [kernel]
    vthreads = maximum(1, *(product([x.extent for x in s.loops if x.kind == "vthread"]) for s in stages))
    written = dict.fromkeys(a.buffer for s in stages for a in s.writes if not a.buffer.is_argument)
    shared, local = (
        total([_bytes(nest, b, parts) for b in written if b.scope == scope]) for scope in ("shared", "local")
    )
    return Usage(product([*threads.values()]), threads.get("threadIdx.z", 1), vthreads, shared, local)


def _bytes(nest: Nest, buffer: Buffer, parts: Mapping[Buffer, Buffer] | None) -> Size:
    """Bytes of a block, or in registers of a thread, where virtual threads have those that they touch for their own."""
    owner = nest.owner_of(buffer)
    part = kept_part(nest, buffer, owner) if parts is None else parts[buffer]
    size = part.elements * buffer.element_bytes
    for loop in owner.path if owner is not None and buffer.scope == "local" else ():
        if loop.kind == "vthread":
            size = size * where(_moved(nest, buffer, loop.name), loop.extent, 1)
    return size


def _moved(nest: Nest, buffer: Buffer, loop: str) -> Size:
    """1 where an index of the buffer changes with a loop, else 0."""
    uses = [(s, a) for s in nest.root.stages() for a in s.accesses if a.buffer is buffer]
    return maximum(0, *(depends_on(e.substitute(s.bound), loop) for s, a in uses for e in a.indices))
