"""Run the iterations of a loop on the blocks, threads or virtual threads of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.combiner import NAMED
from ...dialects.loop import THREAD_KINDS, ForOp, blocks_in, is_thread_kind, loops_in, scope_of
from ...dialects.target import MOST_THREADS_Z, Target, target_of
from ..analysis.access import filled_together, is_under, loops_around, parallel_hazard, split_between_threads
from ..analysis.nest import buffer_name, reduces_over
from ._marks import KindMark, path_through, serial_loop, serial_loops
from .parallel import sharing

_KINDS = (*THREAD_KINDS, "vthread")


@dataclass(frozen=True)
class Bind(KindMark):
    """`for i in n { S }` -> `for i in n threadIdx.x { S }`

    `thread` is `blockIdx.x`, `.y`, `.z`, `threadIdx.x`, `.y`, `.z` or `vthread`. Neighbouring nests may each have a
    loop on one axis: the larger extent is launched.

    A reduction over nothing but a loop on threadIdx.x, with a named combiner, is joined across the threads.

    Requires: a serial loop whose iterations share nothing else (as for parallel); no loop around or below it on the
    same axis (vthread may repeat, and so may a nest that fills a shared buffer with all threads) and none parallel; no
    shared buffer that the iterations divide (bind before compute_at); blockIdx outside of threadIdx and vthread; on a
    GPU target, at most the target's threads in a block. Virtual threads are code: `BuildLimits` bounds them.
    """

    name = "lw-bind"
    block: str
    loop: str
    thread: str

    def check(self, module: ModuleOp) -> ForOp:
        if self.thread not in _KINDS:
            raise self.error(f"thread must be one of {', '.join(_KINDS)}, got '{self.thread}'")
        loop = serial_loop(self, module, self.block, self.loop)
        if (conflict := _conflict(loop, self.thread)) is not None:
            rule, other = conflict
            raise self.error(rule, at=other)
        if (excess := _excess(loop, self.thread, target_of(module))) is not None:
            raise self.error(excess, at=loop)
        if (hazard := parallel_hazard(loop, _may_join(loop, self.thread))) is not None:
            raise sharing(self, loop, hazard)
        if (name := _shared_part(loop, self.thread)) is not None:
            rule = f"threads share '{name}', of which each iteration of '{self.loop}' has a part of its own"
            raise self.error(f"{rule}; bind the loop before compute_at", at=loop)
        return loop

    @property
    def kind(self) -> str:
        return self.thread

    def describe(self) -> str:
        return f"Run the iterations of loop {self.loop} of {self.block} on {_in_words(self.thread)}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Bind, ...]:
        target = target_of(module_op)
        return tuple(
            cls(block, loop.loop_name, thread)
            for block, loop in serial_loops(module_op)
            for thread in _KINDS
            if parallel_hazard(loop, _may_join(loop, thread)) is None
            if _conflict(loop, thread) is None and _excess(loop, thread, target) is None
            if _shared_part(loop, thread) is None
        )


def _may_join(loop: ForOp, thread: str) -> bool:
    """True where all reductions over the loop can be joined across threads: over it alone, with a named combiner."""
    return thread == "threadIdx.x" and all(
        block.combiner.data in NAMED and sum(a.reduce and a.extent > 1 for a in block.axes) == 1
        for block in reduces_over(loop)
    )


def _shared_part(loop: ForOp, thread: str) -> str | None:
    """Return a shared buffer that would become private to each thread."""
    if thread.startswith("blockIdx"):
        return None
    outputs = {output: None for block in blocks_in(loop) for output in block.outputs}
    shared = (b for b in outputs if scope_of(b) == "shared" and split_between_threads(loop, b))
    return next((buffer_name(b) for b in shared), None)


def _conflict(loop: ForOp, thread: str) -> tuple[str, ForOp] | None:
    """Return a loop around or below `loop` that forbids binding it to `thread`, and why."""
    for other in path_through(loop):
        if other.loop_kind == "parallel":
            return f"a nest runs on the threads of a CPU or of a GPU, '{other.loop_name}' is parallel", other
        if other.loop_kind == thread != "vthread":
            inner, outer = (loop, other) if is_under(loop, other) else (other, loop)
            if filled_together(inner, outer, thread):
                continue
            return f"one axis must not be bound twice on one path, '{other.loop_name}' is {thread} already", other
    if thread.startswith("blockIdx"):
        wrong = next((x for x in loops_around(loop) if _is_in_block(x.loop_kind)), None)
    else:
        wrong = next((x for x in loops_in(loop) if x.loop_kind.startswith("blockIdx")), None)
    if wrong is None:
        return None
    around, inside = (wrong, loop) if thread.startswith("blockIdx") else (loop, wrong)
    rule = f"blocks hold threads, so blockIdx goes outside: '{inside.loop_name}' must be around '{around.loop_name}'"
    return f"{rule}; reorder first", wrong


def _is_in_block(kind: str) -> bool:
    return is_thread_kind(kind) and not kind.startswith("blockIdx")


def _excess(loop: ForOp, thread: str, target: Target) -> str | None:
    """Say which limit of the target the nest would exceed with `loop` on `thread`."""
    if not target.is_gpu:
        return None
    if thread.startswith("threadIdx") and target.max_threads_per_block:
        largest: dict[str, int] = {thread: loop.size}
        for other in _nest_of(loop):
            if other.loop_kind.startswith("threadIdx"):
                largest[other.loop_kind] = max(other.size, largest.get(other.loop_kind, 1))
        threads = prod(largest.values())
        if threads > target.max_threads_per_block:
            shown = " * ".join(f"{kind} {size}" for kind, size in sorted(largest.items()))
            return f"a block has at most {target.max_threads_per_block} threads on this target, got {threads} ({shown})"
    if thread == "threadIdx.z" and loop.size > MOST_THREADS_Z:
        return f"a block has at most {MOST_THREADS_Z} threads along z, got {loop.size}"
    return None


def _nest_of(loop: ForOp) -> Iterator[ForOp]:
    """Return all loops of the nest that `loop` stands in."""
    outermost = loop
    for outermost in loops_around(loop):  # noqa: B007
        pass
    yield outermost
    yield from loops_in(outermost)


def _in_words(thread: str) -> str:
    axis = thread.partition(".")[2]
    if thread.startswith("blockIdx"):
        return f"the blocks of the grid, along {axis}"
    if thread.startswith("threadIdx"):
        return f"the threads of a block, along {axis}"
    return "virtual threads, each with registers of its own"
