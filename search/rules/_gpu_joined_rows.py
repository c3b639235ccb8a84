"""Rows of reductions in a block of threads each, which pass on what they have: by shuffles where there are any."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.target import WARP, Target
from ...passes.schedule.bind import Bind
from ...passes.schedule.compute_at import ComputeAt
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.gpu_chains import GpuChain, Shape
from ._gpu_factors import UNKNOWN_THREADS
from ._gpu_row_steps import ReduceLoops, local, reducing, repeat, split_reduction

THREADS = (32, 64, 128, 256, 512, 1024)
"""Threads that join a row: whole warps, and powers of two."""
FEWEST_OF_THREAD = 4
"""Terms that a thread has without a search, at least, before it joins others. A choice: reading them takes as long as
the five shuffles of a warp, about."""
USUAL_THREADS = 256
"""Threads that join a row without a search, at most, where there are rows for all multiprocessors. A choice: eight
warps, two for each scheduler of a multiprocessor, as of tiles."""


def joining_threads(owner: str, target: Target, longest: int, terms: int, usual: int = USUAL_THREADS) -> Hole:
    """Return the hole of threads that join a row of `terms`, `longest` of them contiguous: a warp, or at most those."""
    fits = [n for n in THREADS if n <= (target.max_threads_per_block or UNKNOWN_THREADS)]
    default = max(n for n in fits if n <= max(WARP, min(usual, longest, terms // FEWEST_OF_THREAD)))
    return Hole.near(f"{owner}_threads", tuple(n for n in fits if n <= max(WARP, longest)), default, "threads")


@dataclass(frozen=True)
class JoinedRowsPlan:
    """A block of threads for each row of a chain, all along the row.

    Needs named combiners, and an axis in `rows` or in `within`.
    """

    chain: GpuChain
    threads: Hole


def plan_joined_rows(shape: Shape, target: Target) -> JoinedRowsPlan:
    """More threads for a row where there are fewer rows than multiprocessors."""
    usual = USUAL_THREADS if shape.rows > max(1, target.cores) else max(THREADS)
    threads = joining_threads(shape.chain.last, target, shape.together, shape.terms, usual)
    return JoinedRowsPlan(shape.chain, threads)


def write_joined_rows(draft: Draft, plan: JoinedRowsPlan, known: ReduceLoops | None = None) -> None:
    """Apply all steps; `known` are the loops of reductions that were split before."""
    chain, last, known = plan.chain, plan.chain.last, known or {}
    repeat(draft, chain)
    draft.add(plan.threads)
    factored = {last: _factored(draft, plan, last, known)} if last in chain.reductions else {}
    row = _row_loop(draft, chain)
    draft.do(Bind, block=last, loop=row, thread="blockIdx.x")
    for name in reversed(chain.reductions):
        if name != last:
            draft.do(ComputeAt, block=name, loop=row)
    for name in chain.reductions:
        _join(draft, chain, name, *(factored.get(name) or _factored(draft, plan, name, known)))
    if chain.within:
        inner = draft.fuse(last, draft.loops(last, row))
        _, thread = draft.split(last, inner, (0, plan.threads))
        draft.do(Bind, block=last, loop=thread, thread="threadIdx.x")
    draft.settled |= {last, *chain.reductions}


def _row_loop(draft: Draft, chain: GpuChain) -> str:
    """The loop over all rows of the last block."""
    last = chain.last
    reduced = reducing(draft, last)
    inside = [n for n in draft.loops(last) if n in reduced or n in chain.within]
    outside = [n for n in draft.loops(last) if n not in inside]
    if not outside:  # a single row: a loop of one iteration around it
        return draft.split(last, inside[0], (1, 0))[0]
    draft.order(last, (*outside, *inside))
    return draft.fuse(last, outside)


def _factored(draft: Draft, plan: JoinedRowsPlan, name: str, known: ReduceLoops) -> tuple[str, str]:
    """Partial results of threads: the loop over threads, and the block that computes them."""
    lane, others = split_reduction(draft, name, plan.threads, known)
    draft.order(name, (lane, *others))
    return lane, draft.partial(name, lane, 0)


def _join(draft: Draft, chain: GpuChain, name: str, lane: str, partial: str) -> None:
    draft.do(Bind, block=partial, loop=lane, thread="threadIdx.x")
    local(draft, chain, partial)
    draft.do(Bind, block=name, loop=draft.loops(name)[-1], thread="threadIdx.x")
    local(draft, chain, name)


def write_joined_parts(draft: Draft, chain: GpuChain) -> None:
    """Blocks of threads for results, each thread with one of the parts of it: the end of a split reduction.

    The chain's one reduction adds up the parts. Needs a named combiner, and as many parts as a block may have threads,
    a power of two from 32 on.
    """
    (name,), last = chain.reductions, chain.last
    reduced = reducing(draft, last)
    rows = [n for n in draft.loops(last) if n not in reduced]
    row = draft.fuse(last, rows)
    if rows:
        draft.do(Bind, block=last, loop=row, thread="blockIdx.x")
    if name != last:
        draft.do(ComputeAt, block=name, loop=row)
    draft.do(Bind, block=name, loop=draft.loops(name)[-1], thread="threadIdx.x")
    local(draft, chain, name)
    draft.settled |= {name, last}
