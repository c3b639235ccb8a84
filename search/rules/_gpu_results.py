"""Reductions on a GPU that one thread does from end to end: neighbouring results to neighbouring threads."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import is_argument, reads
from ...passes.analysis.nest import buffer_name
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.anchor import epilogue_of
from ._gpu_factors import block_threads

UNROLLED = (0, 16, 64)
"""Steps of a short reduction that are written out: their loads do not wait for each other."""
TILES = (1, 2, 4)
"""Results of a thread along an axis."""
THREADS = (32, 64, 128, 256, 512)
"""Threads of a block."""
USUAL_THREADS = 256
"""Threads of a block without a search. A choice: eight warps, two for each scheduler of a multiprocessor, as of
tiles."""


@dataclass(frozen=True)
class ResultPlan:
    """A thread for a few results: `results` are the loops over them, `reduce` the others.

    `tiles` are the results of a thread along the last two axes longer than 1, the last as a vector; none where there is
    a single result.
    """

    block: str
    results: tuple[str, ...]
    reduce: tuple[str, ...]
    tiles: tuple[tuple[str, Hole], ...]
    threads: Hole
    unroll: Hole | None

    def numbers(self) -> tuple[Hole, ...]:
        """Return the holes in the order they have in a sketch."""
        unroll = () if self.unroll is None else (self.unroll,)
        return (*(hole for _, hole in self.tiles), self.threads, *unroll) if self.tiles else ()


def plan_results(block: BlockOp, target: Target) -> ResultPlan:
    """Plan which threads take the results of a reduction that stands in loops of its own."""
    name = block.block_name
    sizes = {x.loop_name: x.size for x in block.enclosing_loops}
    written = {n for e in block.write_indices[0] for n in e.axes()}
    results = tuple(n for n in sizes if n in written)
    reduce = tuple(n for n in sizes if n not in written)
    *row, vector = [("", 0), *((n, sizes[n]) for n in results if sizes[n] > 1)][-2:]
    tiles = []
    if row and row[0][0]:
        tiles.append((row[0][0], Hole.near(f"{name}_tile", _tiles(row[0][1]), 1, "tile")))
    if vector[0]:
        tiles.append((vector[0], Hole.near(f"{name}_vector", _tiles(vector[1]), 1, "vector")))
    threads = Hole.near(f"{name}_threads", block_threads(target, THREADS), USUAL_THREADS, "threads")
    unroll = Hole.near(f"{name}_unroll", UNROLLED, UNROLLED[-1], "unroll") if reduce else None
    return ResultPlan(name, results, reduce, tuple(tiles), threads, unroll)


def _tiles(extent: int) -> tuple[int, ...]:
    return tuple(n for n in TILES if n <= extent)


def write_results(draft: Draft, plan: ResultPlan) -> None:
    """Short or strided reductions, such as pooling: neighbouring results to neighbouring threads, a few to each."""
    name = plan.block
    if not plan.results:
        _unread_in_registers(draft, name)
        return
    if not plan.tiles:  # a single result, by a single thread
        draft.do(Bind, block=name, loop=draft.fuse(name, plan.results), thread="blockIdx.x")
        _unread_in_registers(draft, name)
        return
    draft.add(*plan.numbers())
    outer, inner = list(plan.results), []
    for axis, tile in plan.tiles:
        outer[outer.index(axis)], inside = draft.split(name, axis, (0, tile))
        inner.append(inside)
    draft.order(name, [*outer, *plan.reduce, *inner])
    block, thread = draft.split(name, draft.fuse(name, outer), (0, plan.threads))
    draft.do(Bind, block=name, loop=block, thread="blockIdx.x")
    draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
    if plan.unroll is not None:
        draft.do(Pragma, block=name, loop=plan.reduce[0], auto_unroll_max_step=plan.unroll)
    _unread_in_registers(draft, name)
    out = _taken_by(draft, name, thread)
    for stage in (name,) if out is None else (name, out):
        for axis in inner[:-1]:
            draft.do(Unroll, block=stage, loop=axis)
        draft.do(Vectorize, block=stage, loop=inner[-1])


def _unread_in_registers(draft: Draft, name: str) -> None:
    """Results that nobody asks for, such as the maximum beside its position, stay in registers."""
    for output in draft.block(name).outputs:
        if not is_argument(output) and not reads(output):
            draft.do(SetScope, block=name, buffer=buffer_name(output), scope="local")


def _taken_by(draft: Draft, name: str, thread: str) -> str | None:
    """Let results wait in registers until they are final; the block that takes them, in each thread."""
    block = draft.block(name)
    if len(block.outputs) != 1:
        return None
    out = epilogue_of(block)
    if out is not None and out not in draft.settled and _moves(draft, out, thread):
        draft.do(SetScope, block=name, scope="local")
    elif is_argument(block.outputs[0]):
        out = f"{name}_result"
        draft.do(CacheWrite, block=name, scope="local", label=out)
    else:
        return None
    draft.do(ReverseComputeAt, block=out, loop=thread)
    draft.settled.add(out)
    return out


def _moves(draft: Draft, name: str, thread: str) -> bool:
    """True where a block may follow what it reads: not before another one whose results it reads, too."""
    try:
        ReverseComputeAt(block=name, loop=thread).check(draft.module)
    except ScheduleError:
        return False
    return True
