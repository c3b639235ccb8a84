"""Rows of reductions in a block of threads each, which pass on what they have: by shuffles where there are any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.target import WARP, Target
from ...passes.schedule.bind import Bind
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole
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
ROWS_OF_BLOCK = (1, 2, 4, 8, 16, 32, 64)
"""Rows of a block whose threads are of one warp. An H200 begins 1.6 blocks a ns: in blocks of 1, 2, 4 and 8 rows, 65536
means of 49 elements take 40.9, 20.9, 11.0 and 6.5 us, RMS norms of 8192 rows of 128 elements 5.8, 3.5, 2.3 and 2.2,
and softmax of 2364 rows of 197 elements 2.7, 2.2, 2.2 and 2.2."""
MOST_IN_ROWS = 256
"""Threads of a block of several rows, at most. On an H200 softmax of 20000 rows of 16 elements takes 2.71, 1.98 and
1.80 us by 8 threads for each of 8, 16 and 32 rows, and by 32 threads 3.15, 3.15 and 3.38; of 9001 rows of 24 1.99, 1.77
and 1.76, and 2.30, 2.29 and 2.48; layer norm of 20000 rows of 24 2.73, 2.00 and 1.94, and 3.31, 3.32 and 3.38."""
SHORT_OF_WARP = 16 * WARP
"""Terms up to which a row is for a warp at most where rows fill blocks of the most rows on all multiprocessors. On an
H200 with 64 threads for a row, in blocks of their own, 3136 layer norms of 96 elements take 3.2 us and softmax of 6144
rows of 512 elements 5.3, with 32 threads for each of 8 rows 1.5 and 4.7."""
PARTS_OF_WARP = ((WARP // 2, (4, 8)), (WARP, (8,)), (2 * WARP - 1, (8, 16, WARP)))
"""Threads that join a row of up to so many terms where there are rows for blocks of several on all multiprocessors. On
an H200 softmax of 20000 rows of 16 elements takes 1.80, 2.17 and 3.15 us by 8, 16 and 32 threads, of 9001 rows of 24
1.76, 1.98 and 2.29, of 30000 rows of 33 4.41, 3.94 and 4.54; layer norm of 6000 rows of 48 1.75, 1.78 and 1.93."""
PARTS_OF_FEW = (8, 16)
"""The same of fewer rows, beside whole warps. A choice: of 777 rows of 20 elements, in blocks of 4, softmax takes 1.56,
1.53 and 1.49 us by 8, 16 and 32 threads."""
MOST_CHOICES = 2
"""Numbers of rows of a block, the largest ones, that a search chooses from, beside 1."""


def joining_threads(owner: str, target: Target, longest: int, terms: int, usual: int = USUAL_THREADS) -> Hole:
    """Return the hole of threads that join a row of `terms`, `longest` of them contiguous: a warp, or at most those."""
    fits = [n for n in THREADS if n <= (target.max_threads_per_block or UNKNOWN_THREADS)]
    default = max(n for n in fits if n <= max(WARP, min(usual, longest, terms // FEWEST_OF_THREAD)))
    return Hole.near(f"{owner}_threads", tuple(n for n in fits if n <= max(WARP, longest)), default, "threads")


@dataclass(frozen=True)
class RowsOfBlock:
    """Rows that a block of threads takes, each by threads of one warp; any number of threads takes one row.

    `threads` are those of a row, `most` those of a block of several.
    """

    threads: Hole
    rows: Hole
    most: int

    @classmethod
    def of(cls, owner: str, target: Target, rows: int, threads: Hole, terms: int) -> RowsOfBlock | None:
        """Plan blocks for so many rows; None where they are too few for all multiprocessors, or warps do not join.

        Short rows have no more than a warp, and no block of their own, where there are many; those with fewer terms
        than it has lanes, twice, have parts of it.
        """
        most = rows // max(1, target.cores)
        threads_of_block = min(MOST_IN_ROWS, target.max_threads_per_block or UNKNOWN_THREADS)
        many = most >= threads_of_block // WARP and terms <= SHORT_OF_WARP
        parts = next((found for longest, found in PARTS_OF_WARP if terms <= longest), ())
        whole = tuple(n for n in threads.choices if n <= WARP or not many)
        of_row = (parts if many else (*PARTS_OF_FEW, *whole)) if parts else whole
        fits = threads_of_block // (min(of_row) if many else WARP)
        several = tuple(n for n in ROWS_OF_BLOCK[1:] if n <= min(most, fits))[-MOST_CHOICES:]
        if target.kind != "cuda" or not several:
            return None
        of_row = tuple(n for n in of_row if n * several[0] <= threads_of_block) if many else of_row
        of_one = Hole.near(threads.name, of_row, threads.default, "threads")
        usual = max((n for n in several if n * of_one.default <= threads_of_block), default=several[0])
        default = usual if threads.default <= WARP or many else 1
        return cls(
            of_one,
            Hole.near(f"{owner}_block_rows", several if many else (1, *several), default, "threads"),
            threads_of_block,
        )

    def fits(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Return the mask of candidates of whole warps, of which none has parts of two rows."""
        threads, rows = c[self.threads.name], c[self.rows.name]
        of_warp = (threads <= WARP) & (threads * rows <= self.most)
        return np.asarray((threads * rows % WARP == 0) & ((rows == 1) | of_warp))

    def bind(self, draft: Draft, name: str, row: str) -> str:
        """Bind a loop over rows to blocks and to the rows of a block; the loop over the latter."""
        outer, inner = draft.split(name, row, (0, self.rows))
        draft.do(Bind, block=name, loop=outer, thread="blockIdx.x")
        draft.do(Bind, block=name, loop=inner, thread="threadIdx.y")
        return inner


@dataclass(frozen=True)
class JoinedRowsPlan:
    """A block of threads for a row of a chain, or for several (`block`), all along the row.

    Needs named combiners, and an axis in `rows` or in `within`. Each thread writes a `vector` of elements at a time.
    """

    chain: GpuChain
    threads: Hole
    block: RowsOfBlock | None = None
    vector: int = 1


def plan_joined_rows(shape: Shape, target: Target) -> JoinedRowsPlan:
    """More threads for a row where there are fewer rows than multiprocessors."""
    usual = USUAL_THREADS if shape.rows > max(1, target.cores) else max(THREADS)
    threads = joining_threads(shape.chain.last, target, shape.together, shape.terms, usual)
    block = RowsOfBlock.of(shape.chain.last, target, shape.rows, threads, shape.terms)
    return JoinedRowsPlan(shape.chain, threads if block is None else block.threads, block)


def write_joined_rows(draft: Draft, plan: JoinedRowsPlan, known: ReduceLoops | None = None) -> None:
    """Apply all steps; `known` are the loops of reductions that were split before, by the names that they have then."""
    chain, last, known = plan.chain, plan.chain.last, dict(known or {})
    repeat(draft, chain)
    draft.add(plan.threads)
    if plan.block is not None:
        draft.add(plan.block.rows)
        draft.limits.append(plan.block.fits)
    factored = {last: _factored(draft, plan, last, known)} if last in chain.reductions else {}
    row = _row_loop(draft, chain)
    if plan.block is not None:
        row = plan.block.bind(draft, last, row)
    else:
        draft.do(Bind, block=last, loop=row, thread="blockIdx.x")
    unit_loops = {} if plan.block is None else {"unit_loops": True}
    for name in reversed(chain.reductions):
        if name != last:
            draft.do(ComputeAt, block=name, loop=row, **unit_loops)
            if name in known:  # the loop over rows may have had the name of one of them
                known[name] = draft.loops(name)[-len(known[name]) :]
    for name in chain.reductions:
        _join(draft, chain, name, *(factored.get(name) or _factored(draft, plan, name, known)))
    if chain.within:
        inner = draft.fuse(last, draft.loops(last, row))
        _, thread, *lanes = draft.split(last, inner, (0, plan.threads, *((plan.vector,) if plan.vector > 1 else ())))
        draft.do(Bind, block=last, loop=thread, thread="threadIdx.x")
        for lane in lanes:
            draft.do(Vectorize, block=last, loop=lane)
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
