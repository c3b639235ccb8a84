"""Several rows of reductions in a block of threads, and lanes of partial results for each: joined in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...dialects.target import Target
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.split import Split
from ..sketch.draft import Draft
from ..sketch.hole import Columns
from ..structure.gpu_chains import GpuChain, Shape
from ._gpu_row_steps import Steps

SHORT = 32
"""Rows of fewer elements leave threads of a warp idle unless it takes several of them."""


class Choices(NamedTuple):
    """What a hole may be, and what it is without a search."""

    values: tuple[int, ...]
    default: int

    @classmethod
    def within(cls, values: Sequence[int], least: int, most: int, default: int) -> Choices:
        """Those of `values` from `least` to `most`, the first one at least; the default is one of them."""
        kept = tuple(n for n in values if least <= n <= most) or (values[0],)
        return cls(kept, max((n for n in kept if n <= default), default=kept[0]))


class TiledRows(Steps):
    """Blocks of threads for a few neighbouring rows: threads along rows, and lanes of partial results for each.

    The lanes' results meet in shared memory, where each thread adds up those of its row, by any combiner. `tiled` is
    the axis of the last block along which rows are neighbours, empty for a single row. Where operands are contiguous
    along it (`across`), neighbouring threads go along it, else along the reduction.
    """

    def __init__(self, draft: Draft, chain: GpuChain, target: Target, tiled: str, across: bool) -> None:
        super().__init__(draft, chain, target)
        self.tiled = tiled
        self.across = across
        self.row_thread, self.lane_thread = ("threadIdx.x", "threadIdx.y")[:: 1 if across else -1]

    def write(self, rows: Choices, lanes: Choices) -> None:
        """Apply all steps; choices of the rows of a block, and of the lanes of a row."""
        self.repeat()
        self._hold_result()
        chain = self.chain
        self._holes(rows, lanes)
        factored = [self._factored(name) for name in chain.reductions]
        self.around = self._blocks()
        for name, partial, shared in reversed(factored):
            self._place(name, partial, shared)
        self.draft.settled |= {chain.last, *chain.reductions}

    def _hold_result(self) -> None:
        """Let what the last block reduces wait in registers until it is final."""
        last, results = self.chain.last, self.results()
        if not self.draft.block(last).is_reduction:
            return
        if len(results) > 1:  # copies of several would be several blocks: a step over the reduction as a whole
            *others, fused = self.reduce_loops.pop(last, None) or self.untouched_reduce_loops(last)
            self.draft.do(Split, block=last, loop=fused, factors=(1, 0))
            self.draft.order(last, (f"{fused}0", *[n for n in self.draft.loops(last) if n != f"{fused}0"]))
            made = self.draft.partial(last, f"{fused}0", -1)
            self.reduce_loops[made] = [*others, f"{fused}1"]
            self.chain = self.chain.with_reduction(last, made)
            return
        label = f"{last}_result"
        before = self.draft.block(last).write_indices[0]
        self.draft.do(CacheWrite, block=last, buffer=results[0], scope="local", label=label)
        renamed = {
            a.as_axis() or "": b.as_axis() or ""
            for a, b in zip(before, self.draft.block(label).write_indices[0], strict=True)
        }
        self.chain = self.chain.behind(label, renamed)
        self.tiled = renamed.get(self.tiled, "")

    def _holes(self, rows: Choices, lanes: Choices) -> None:
        last, most = self.chain.last, self.most_threads
        self.lanes = self.draft.hole(f"{last}_lanes", lanes.values, lanes.default, "threads")
        if not self.tiled:
            return
        self.rows = self.draft.hole(f"{last}_rows", rows.values, rows.default, "threads")
        names = self.lanes.name, self.rows.name
        fewest = min(32, max(lanes.values) * max(rows.values))

        def whole_warp(c: Columns) -> npt.NDArray[np.bool_]:
            threads = c[names[0]] * c[names[1]]
            return np.asarray((threads <= most) & (threads >= fewest))

        self.draft.limits.append(whole_warp)

    def _factored(self, name: str) -> tuple[str, str, str]:
        """Partial results of lanes, and copies of them for shared memory: the blocks of sums, of both."""
        lane, others = self.split_reduction(name, self.lanes)
        spatial = [n for n in self.draft.loops(name) if n not in (lane, *others)]
        self.draft.order(name, (lane, *spatial, *others))
        partial = self.draft.partial(name, lane, 0)
        self.draft.order(name, (lane, *[n for n in self.draft.loops(name) if n != lane]))
        return name, partial, self.draft.partial(name, lane, 0 if self.across else -1)

    def _blocks(self) -> str:
        """Tile the last block; the loop over blocks of threads."""
        last, do = self.chain.last, self.draft.do
        reduce = [n for n in self.draft.loops(last) if n in self.reducing(last)]
        within = [n for n in self.draft.loops(last) if n in self.chain.within]
        outer = [n for n in self.draft.loops(last) if n not in (*reduce, *within, self.tiled)]
        row = []
        if self.tiled:
            do(Split, block=last, loop=self.tiled, factors=(0, self.rows))
            outer.append(f"{self.tiled}0")
            row.append(f"{self.tiled}1")
        if not outer:
            do(Split, block=last, loop=within[0], factors=(1, 0))
            outer, within[0] = [f"{within[0]}0"], f"{within[0]}1"
        self.draft.order(last, (*outer, *within, *row, *reduce))
        block = self.draft.fuse(last, outer)
        do(Bind, block=last, loop=block, thread="blockIdx.x")
        if within:
            fused = self.draft.fuse(last, within)
            do(Split, block=last, loop=fused, factors=(0, self.lanes))
            self.draft.order(last, (f"{fused}1", *row, f"{fused}0"))
            do(Bind, block=last, loop=f"{fused}1", thread=self.lane_thread)
        if row:
            do(Bind, block=last, loop=row[0], thread=self.row_thread)
        return block

    def _place(self, name: str, partial: str, shared: str) -> None:
        """One reduction: lanes' results in registers, all of them in shared memory, what they come to in registers."""
        do = self.draft.do
        if name != self.chain.last:
            do(ComputeAt, block=name, loop=self.around, unit_loops=True)
            self._bind_row(name, name)
        do(ComputeAt, block=shared, loop=self.around, unit_loops=True)
        inside = self.draft.loops(shared, self.around)
        do(ComputeAt, block=partial, loop=inside[-1], unit_loops=True)
        do(Bind, block=shared, loop=inside[-1], thread=self.lane_thread)
        self._bind_row(name, shared)
        self.scope(shared, "shared")
        self.local(partial)
        self.local(name)

    def _bind_row(self, reduction: str, stage: str) -> None:
        """Bind the loop over rows around a stage of a reduction."""
        if self.tiled:
            rows = self.draft.block(stage).bound[self.chain.iterator(reduction, self.tiled)].axes()
            (loop,) = [n for n in self.draft.loops(stage, self.around) if n in rows]
            self.draft.do(Bind, block=stage, loop=loop, thread=self.row_thread)


def tiled_axis(shape: Shape) -> str:
    """The axis along which a block of threads takes neighbouring rows; empty for a single row."""
    if shape.across:
        assert shape.along is not None
        return shape.chain.row_of(shape.deepest.block_name, shape.along)
    extents = {a.name: a.extent for a in shape.last.axes}
    return max(shape.chain.rows, key=lambda n: extents[n], default="")


def row_tiles(shape: Shape, target: Target) -> tuple[Choices, Choices]:
    """How many rows a block of threads may take, and how many lanes a row."""
    most = target.max_threads_per_block or 256
    extent = next((a.extent for a in shape.last.axes if a.name == tiled_axis(shape)), 1)
    whole = 1 << (extent - 1).bit_length()
    if shape.across:  # neighbours are along rows
        few = shape.rows < 32 * max(1, target.cores)
        rows = Choices.within((8, 16, 32, 64), 8, max(8, min(whole, most // 2)), 8 if few else 32)
        busy = min(64, shape.terms // 4, min(512, most) // rows.default)
        return rows, Choices.within((2, 4, 8, 16, 32, 64, 128), 2, shape.terms, busy)
    if shape.together < SHORT:
        lanes = Choices.within((1, 2, 4, 8, 16), 1, shape.together, shape.together // 2)
        return Choices.within((1, 4, 8, 16, 32, 64, 128, 256), 4, min(whole, most), 128 // lanes.default), lanes
    few = shape.rows < 8 * max(1, target.cores)
    lanes = Choices.within((8, 16, 32, 64, 128), 8, shape.together, 64 if few else 32)
    return Choices.within((1, 2, 4, 8, 16), 1, whole, 1 if few else 256 // lanes.default), lanes
