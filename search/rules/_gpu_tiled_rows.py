"""Several rows of reductions in a block of threads, and lanes of partial results for each: joined in shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy.typing as npt

from ...dialects.target import WARP, Target
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.split import Split
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole
from ..structure.gpu_chains import GpuChain, Shape
from ._gpu_factors import UNKNOWN_THREADS
from ._gpu_row_steps import (
    ReduceLoops,
    local,
    reducing,
    repeat,
    results,
    scope,
    split_reduction,
    untouched_reduce_loops,
)

SHORT = 32
"""Rows of fewer elements leave threads of a warp idle unless it takes several of them."""
ROWS_ACROSS = (8, 16, 32, 64)
"""Neighbouring rows of a block where operands are contiguous along them: 8 of float32 are a sector of 32 bytes."""
LANES_ACROSS = (2, 4, 8, 16, 32, 64, 128)
"""Lanes of such a row."""
USUAL_ROWS_ACROSS = 32
"""Such rows of a block without a search: one for each thread of a warp."""
FEW_ROWS_ACROSS = 8
"""The same where there are fewer than a warp of rows for each multiprocessor."""
FEWEST_OF_LANE = 4
"""Terms of a lane without a search, at least: as of `FEWEST_OF_THREAD` of joined rows. A choice."""
MOST_USUAL_LANES = 64
"""Lanes of such a row without a search, at most. A choice: with 32 rows more than a block's threads."""
MOST_WRITTEN = 64
"""Terms of a lane, at most, that all lanes are to have as many of: the assembler then writes out all loads and asks for
them at once, where it asks for four at a time if their number depends on the lane. Means of 14x14 pixels take 1.5 us of
an H200 in 4 lanes, 2.3 in 8 and 1.8 in 16, those of 28x28 1.8 in 16, 2.1 in 8 and 2.5 in 32. Of 1024 sums of 196
terms 4, 14 and 28 lanes take 1.68, 1.45 and 1.45 us at best, 8 and 16 2.5 and 2.0; of 768 of 250 terms 2, 10 and 25
lanes 1.84, 1.55 and 1.46, 16 and 64 2.3 and 2.0; of 2048 of 98 2, 7 and 14 lanes 1.56, 1.48 and 1.49."""
MOST_USUAL_THREADS = 512
"""Threads of a block of such rows without a search, at most. A choice, as are the other numbers here: two to four
blocks fill the 2048 threads of a multiprocessor."""
ROWS_SHORT = (1, 4, 8, 16, 32, 64, 128, 256)
"""Rows of a block where each is shorter than a warp."""
LANES_SHORT = (1, 2, 4, 8, 16)
"""Lanes of such a row."""
USUAL_THREADS_SHORT = 128
"""Threads of a block of such rows without a search. A choice."""
ROWS_LONG = (1, 2, 4, 8, 16)
"""Rows of a block where each fills a warp."""
LANES_LONG = (8, 16, 32, 64, 128)
"""Lanes of such a row."""
USUAL_THREADS_LONG = 256
"""Threads of a block of such rows without a search. A choice: eight rows of a warp."""
FEW_ROWS_LONG = 8
"""Such rows for each multiprocessor up to which a block takes one, of twice as many lanes, without a search. A choice:
with as many blocks of 256 threads it is full."""


class HoleChoices(NamedTuple):
    """Choices of a hole, and its value without a search."""

    values: tuple[int, ...]
    default: int

    @classmethod
    def within(cls, values: Sequence[int], least: int, most: int, default: int) -> HoleChoices:
        """Return the `values` from `least` to `most`, the first one at least; the default is one of them."""
        kept = tuple(n for n in values if least <= n <= most) or (values[0],)
        return cls(kept, max((n for n in kept if n <= default), default=kept[0]))


@dataclass(frozen=True)
class TiledRowsPlan:
    """Blocks of threads for a few neighbouring rows: threads along rows, and lanes of partial results for each.

    The lanes' results meet in shared memory, where each thread adds up those of its row, by any combiner. `tiled` is
    the axis of the last block along which rows are neighbours, empty for a single row. Where operands are contiguous
    along it (`across`), neighbouring threads go along it, else along the reduction. `known` are the loops of reductions
    that were split before.
    """

    chain: GpuChain
    tiled: str
    across: bool
    rows: HoleChoices
    lanes: HoleChoices
    most_threads: int
    known: ReduceLoops

    @property
    def row_thread(self) -> str:
        return "threadIdx.x" if self.across else "threadIdx.y"

    @property
    def lane_thread(self) -> str:
        return "threadIdx.y" if self.across else "threadIdx.x"


@dataclass(frozen=True)
class _Held:
    """A plan whose results wait in registers, with its numbers: `rows` is None for a single row."""

    plan: TiledRowsPlan
    lanes: Hole
    rows: Hole | None

    def fits(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Whole warps where there are choices for them, and no more threads than a block may have."""
        assert self.rows is not None
        fewest = min(WARP, max(self.lanes.choices) * max(self.rows.choices))
        threads = c[self.lanes.name] * c[self.rows.name]
        return np.asarray((threads <= self.plan.most_threads) & (threads >= fewest))


def plan_tiled_rows(shape: Shape, target: Target) -> TiledRowsPlan:
    """Tiles of the rows of a chain that nobody has touched."""
    rows, lanes = _row_tiles(shape, target)
    return with_tiles(shape.chain, target, _tiled_axis(shape), shape.across, rows, lanes, {})


def with_tiles(
    chain: GpuChain, target: Target, tiled: str, across: bool, rows: HoleChoices, lanes: HoleChoices, known: ReduceLoops
) -> TiledRowsPlan:
    """Tiles of so many rows and lanes."""
    return TiledRowsPlan(chain, tiled, across, rows, lanes, target.max_threads_per_block or UNKNOWN_THREADS, known)


def _tiled_axis(shape: Shape) -> str:
    """The axis along which a block of threads takes neighbouring rows; empty for a single row."""
    if shape.across:
        assert shape.along is not None
        return shape.chain.row_of(shape.deepest.block_name, shape.along)
    extents = {a.name: a.extent for a in shape.last.axes}
    return max(shape.chain.rows, key=lambda n: extents[n], default="")


def _row_tiles(shape: Shape, target: Target) -> tuple[HoleChoices, HoleChoices]:
    """Return the choices of rows for a thread block, and of lanes for a row."""
    most = target.max_threads_per_block or UNKNOWN_THREADS
    cores = max(1, target.cores)
    extent = next((a.extent for a in shape.last.axes if a.name == _tiled_axis(shape)), 1)
    whole = 1 << (extent - 1).bit_length()
    if shape.across:
        usual = FEW_ROWS_ACROSS if shape.rows < WARP * cores else USUAL_ROWS_ACROSS
        fewest = ROWS_ACROSS[0]
        rows = HoleChoices.within(ROWS_ACROSS, fewest, max(fewest, min(whole, most // 2)), usual)
        busy = min(MOST_USUAL_LANES, shape.terms // FEWEST_OF_LANE, min(MOST_USUAL_THREADS, most) // rows.default)
        lanes = HoleChoices.within(LANES_ACROSS, 2, shape.terms, busy)
        return rows, _even(lanes, shape.terms, rows.default) if target.kind == "cuda" else lanes
    if shape.together < SHORT:
        lanes = HoleChoices.within(LANES_SHORT, 1, shape.together, shape.together // 2)
        return HoleChoices.within(ROWS_SHORT, 4, min(whole, most), USUAL_THREADS_SHORT // lanes.default), lanes
    few = shape.rows < FEW_ROWS_LONG * cores
    lanes = HoleChoices.within(LANES_LONG, 8, shape.together, 2 * WARP if few else WARP)
    return HoleChoices.within(ROWS_LONG, 1, whole, 1 if few else USUAL_THREADS_LONG // lanes.default), lanes


def _even(lanes: HoleChoices, terms: int, rows: int) -> HoleChoices:
    """Lanes of as many terms each, no more than are written out, where there are such; else as they are.

    Without a search as many as each has terms, about: those are loaded at once, and the others are added up.
    """
    even = tuple(
        n for n in range(2, LANES_ACROSS[-1] + 1) if terms % n == 0 and FEWEST_OF_LANE <= terms // n <= MOST_WRITTEN
    )
    usual = [n for n in even if n * rows <= MOST_USUAL_THREADS] or even
    return HoleChoices(even, min(usual, key=lambda n: max(n * n, terms) / min(n * n, terms))) if even else lanes


def write_tiled_rows(draft: Draft, plan: TiledRowsPlan) -> None:
    """Apply all steps."""
    repeat(draft, plan.chain)
    held = _numbered(draft, _hold_result(draft, plan))
    chain = held.plan.chain
    factored = [_factored(draft, held, name) for name in chain.reductions]
    around = _blocks(draft, held)
    for name, partial, shared in reversed(factored):
        _place(draft, held.plan, around, name, partial, shared)
    draft.settled |= {chain.last, *chain.reductions}


def _hold_result(draft: Draft, plan: TiledRowsPlan) -> TiledRowsPlan:
    """Let what the last block reduces wait in registers until it is final; the plan of what is then there."""
    last = plan.chain.last
    if not draft.block(last).is_reduction:
        return plan
    written = results(draft, plan.chain)
    if len(written) > 1:  # copies of several would be several blocks: a step over the reduction as a whole
        *others, fused = plan.known.get(last) or untouched_reduce_loops(draft, last)
        outer, inner = draft.split(last, fused, (1, 0))
        draft.order(last, (outer, *[n for n in draft.loops(last) if n != outer]))
        made = draft.partial(last, outer, -1)
        known: Mapping[str, Sequence[str]] = {**plan.known, made: [*others, inner]}
        known = {name: loops for name, loops in known.items() if name != last}
        return replace(plan, chain=plan.chain.with_reduction(last, made), known=known)
    label = f"{last}_result"
    before = draft.block(last).write_indices[0]
    draft.do(CacheWrite, block=last, buffer=written[0], scope="local", label=label)
    after = draft.block(label).write_indices[0]
    renamed = {a.as_axis() or "": b.as_axis() or "" for a, b in zip(before, after, strict=True)}
    return replace(plan, chain=plan.chain.behind(label, renamed), tiled=renamed.get(plan.tiled, ""))


def _numbered(draft: Draft, plan: TiledRowsPlan) -> _Held:
    """A plan with its holes, which are those of the draft from then on."""
    last = plan.chain.last
    lanes = Hole.near(f"{last}_lanes", plan.lanes.values, plan.lanes.default, "threads")
    draft.add(lanes)
    if not plan.tiled:
        return _Held(plan, lanes, None)
    held = _Held(plan, lanes, Hole.near(f"{last}_rows", plan.rows.values, plan.rows.default, "threads"))
    draft.add(*filter(None, [held.rows]))
    draft.limits.append(held.fits)
    return held


def _factored(draft: Draft, held: _Held, name: str) -> tuple[str, str, str]:
    """Partial results of lanes, and copies of them for shared memory: the blocks of sums, of both."""
    lane, others = split_reduction(draft, name, held.lanes, held.plan.known)
    spatial = [n for n in draft.loops(name) if n not in (lane, *others)]
    draft.order(name, (lane, *spatial, *others))
    partial = draft.partial(name, lane, 0)
    draft.order(name, (lane, *[n for n in draft.loops(name) if n != lane]))
    return name, partial, draft.partial(name, lane, 0 if held.plan.across else -1)


def _blocks(draft: Draft, held: _Held) -> str:
    """Tile the last block; the loop over blocks of threads."""
    plan, last = held.plan, held.plan.chain.last
    reduced = reducing(draft, last)
    reduce = [n for n in draft.loops(last) if n in reduced]
    within = [n for n in draft.loops(last) if n in plan.chain.within]
    outer = [n for n in draft.loops(last) if n not in (*reduce, *within, plan.tiled)]
    row = []
    if held.rows is not None:
        draft.do(Split, block=last, loop=plan.tiled, factors=(0, held.rows))
        outer.append(f"{plan.tiled}0")
        row.append(f"{plan.tiled}1")
    if not outer:
        one, within[0] = draft.split(last, within[0], (1, 0))
        outer = [one]
    draft.order(last, (*outer, *within, *row, *reduce))
    block = draft.fuse(last, outer)
    draft.do(Bind, block=last, loop=block, thread="blockIdx.x")
    if within:
        step, lane = draft.split(last, draft.fuse(last, within), (0, held.lanes))
        draft.order(last, (lane, *row, step))
        draft.do(Bind, block=last, loop=lane, thread=plan.lane_thread)
    for loop in row:
        draft.do(Bind, block=last, loop=loop, thread=plan.row_thread)
    return block


def _place(draft: Draft, plan: TiledRowsPlan, around: str, name: str, partial: str, shared: str) -> None:
    """One reduction: lanes' results in registers, all of them in shared memory, what they come to in registers."""
    if name != plan.chain.last:
        draft.do(ComputeAt, block=name, loop=around, unit_loops=True)
        _bind_row(draft, plan, around, name, name)
    draft.do(ComputeAt, block=shared, loop=around, unit_loops=True)
    lane = draft.loops(shared, around)[-1]
    draft.do(ComputeAt, block=partial, loop=lane, unit_loops=True)
    draft.do(Bind, block=shared, loop=lane, thread=plan.lane_thread)
    _bind_row(draft, plan, around, name, shared)
    scope(draft, shared, "shared")
    local(draft, plan.chain, partial)
    local(draft, plan.chain, name)


def _bind_row(draft: Draft, plan: TiledRowsPlan, around: str, reduction: str, stage: str) -> None:
    """Bind the loop over rows around a stage of a reduction."""
    if plan.tiled:
        rows = draft.block(stage).bound[plan.chain.iterator(reduction, plan.tiled)].axes()
        (loop,) = [n for n in draft.loops(stage, around) if n in rows]
        draft.do(Bind, block=stage, loop=loop, thread=plan.row_thread)
