"""The steps of chains of reductions in a block of threads: rows with lanes of partial results, which are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import is_argument, reads
from ...passes.analysis.nest import buffer_name, find_block
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.rfactor import Rfactor
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ..holes import Columns, Hole
from ..sketch import Draft
from ._gpu_chains import GpuChain, Shape, contiguous_suffix

SHORT = 32
"""Rows of fewer elements leave threads of a warp idle unless it takes several of them."""
THREADS = (32, 64, 128, 256, 512, 1024)
"""Threads that join a row: whole warps, and powers of two."""


class Choices(NamedTuple):
    """What a hole may be, and what it is without a search."""

    values: tuple[int, ...]
    default: int

    @classmethod
    def within(cls, values: Sequence[int], least: int, most: int, default: int) -> Choices:
        """Those of `values` from `least` to `most`, the first one at least; the default is one of them."""
        kept = tuple(n for n in values if least <= n <= most) or (values[0],)
        return cls(kept, max((n for n in kept if n <= default), default=kept[0]))


class Steps:
    """What both ways to place rows share."""

    def __init__(self, draft: Draft, chain: GpuChain, target: Target) -> None:
        self.draft = draft
        self.chain = chain
        self.target = target
        self.most_threads = target.max_threads_per_block or 256
        self.reduce_loops: dict[str, list[str]] = {}
        """The loops of reductions that are parts of others, what is contiguous as the last one."""

    def block(self, name: str) -> BlockOp:
        return find_block(None, self.draft.module, name)

    def loops(self, name: str, below: str = "") -> list[str]:
        """The loops around a block; with `below` those inside of that one."""
        names = [x.loop_name for x in self.block(name).enclosing_loops]
        return names[names.index(below) + 1 :] if below else names

    def order(self, name: str, wanted: Sequence[str]) -> None:
        """Reorder loops where they are not as wanted."""
        if [n for n in self.loops(name) if n in wanted] != list(wanted):
            self.draft.do(Reorder, block=name, loops=tuple(wanted))

    def fuse(self, name: str, loops: Sequence[str]) -> str:
        """Neighbouring loops as one; its name."""
        if len(loops) > 1:
            self.draft.do(Fuse, block=name, loops=tuple(loops))
        return "_".join(loops)

    def local(self, name: str) -> None:
        """What a block writes into registers, but for what the chain is there for."""
        results = self.results() if name == self.chain.last else []
        self.scope(name, "local", but=results)

    def scope(self, name: str, scope: str, but: Sequence[str] = ()) -> None:
        """What a block writes into a memory, some of its buffers left out."""
        for output in map(buffer_name, self.block(name).outputs):
            if output not in but:
                self.draft.do(SetScope, block=name, buffer=output, scope=scope)

    def results(self) -> list[str]:
        """What the last block writes for others, or for those who call the function."""
        return [
            buffer_name(output)
            for output in self.block(self.chain.last).outputs
            if is_argument(output) or reads(output)
        ]

    def reducing(self, name: str) -> set[str]:
        """The loops that a block reduces over."""
        block = self.block(name)
        return {n for a in block.axes if a.reduce for n in block.bound[a.name].axes()}

    def repeat(self) -> None:
        """Compute what stands between the reductions again wherever it is read."""
        for name in self.chain.repeated:
            self.draft.do(ComputeInline, block=name)

    def split_reduction(self, name: str, lanes: Hole) -> tuple[str, list[str]]:
        """Divide what is contiguous among lanes, neighbours to neighbours; the loop over lanes, and the others."""
        *others, fused = self.reduce_loops.get(name) or self.untouched_reduce_loops(name)
        self.draft.do(Split, block=name, loop=fused, factors=(0, lanes))
        return f"{fused}1", [*others, f"{fused}0"]

    def untouched_reduce_loops(self, name: str) -> list[str]:
        """The loops of a reduction that nobody has touched, what is contiguous as the last one."""
        block = self.block(name)
        together = contiguous_suffix(block)
        others = [a.name for a in block.axes if a.reduce and a.extent > 1 and a.name not in together]
        return [*others, self.fuse(name, together)]

    def partial(self, name: str, loop: str, axis: int = 0) -> str:
        """Partial results over a loop, which is their dimension `axis`; the block that computes them."""
        before = set(self.names())
        self.draft.do(Rfactor, block=name, loop=loop, axis=axis)
        (made,) = set(self.names()) - before
        self.draft.settled.add(made)
        return made

    def names(self) -> list[str]:
        return [op.block_name for op in self.draft.module.walk() if isinstance(op, BlockOp)]


class JoinedRows(Steps):
    """Blocks of threads for rows: all threads of one go along it, and join what each has by passing values on.

    Needs a named combiner, and an axis in `rows` or in `within`.
    """

    def write(self, longest: int, most: int = 256) -> None:
        """Apply all steps; `longest` terms of a reduction are contiguous, `most` threads take them by default."""
        chain, do = self.chain, self.draft.do
        self.repeat()
        fits = [n for n in THREADS if n <= self.most_threads]
        default = max(n for n in fits if n <= max(32, min(most, longest // 4)))
        self.threads = self.draft.hole(
            f"{chain.last}_threads", tuple(n for n in fits if n <= max(32, longest)), default, "threads"
        )
        factored = {chain.last: self._factored(chain.last)} if chain.last in chain.reductions else {}
        self.row = self._rows()
        do(Bind, block=chain.last, loop=self.row, thread="blockIdx.x")
        for name in reversed(chain.reductions):
            if name != chain.last:
                do(ComputeAt, block=name, loop=self.row)
        for name in chain.reductions:
            self._join(name, *(factored.get(name) or self._factored(name)))
        if chain.within:
            inner = self.fuse(chain.last, self.loops(chain.last, self.row))
            do(Split, block=chain.last, loop=inner, factors=(0, self.threads))
            do(Bind, block=chain.last, loop=f"{inner}1", thread="threadIdx.x")
        self.draft.settled |= {chain.last, *chain.reductions}

    def _rows(self) -> str:
        """The loop over all rows of the last block."""
        last = self.chain.last
        inside = [n for n in self.loops(last) if n in self.reducing(last) or n in self.chain.within]
        outside = [n for n in self.loops(last) if n not in inside]
        if not outside:  # a single row: a loop of one iteration around it
            self.draft.do(Split, block=last, loop=inside[0], factors=(1, 0))
            return f"{inside[0]}0"
        self.order(last, (*outside, *inside))
        return self.fuse(last, outside)

    def _factored(self, name: str) -> tuple[str, str]:
        """Partial results of threads: the loop over threads, and the block that computes them."""
        lane, others = self.split_reduction(name, self.threads)
        self.order(name, (lane, *others))
        return lane, self.partial(name, lane)

    def _join(self, name: str, lane: str, partial: str) -> None:
        self.draft.do(Bind, block=partial, loop=lane, thread="threadIdx.x")
        self.local(partial)
        self.draft.do(Bind, block=name, loop=self.loops(name)[-1], thread="threadIdx.x")
        self.local(name)


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
        if not self.block(last).is_reduction:
            return
        if len(results) > 1:  # copies of several would be several blocks: a step over the reduction as a whole
            *others, fused = self.reduce_loops.pop(last, None) or self.untouched_reduce_loops(last)
            self.draft.do(Split, block=last, loop=fused, factors=(1, 0))
            self.order(last, (f"{fused}0", *[n for n in self.loops(last) if n != f"{fused}0"]))
            made = self.partial(last, f"{fused}0", -1)
            self.reduce_loops[made] = [*others, f"{fused}1"]
            self.chain = self.chain.with_reduction(last, made)
            return
        label = f"{last}_result"
        before = self.block(last).write_indices[0]
        self.draft.do(CacheWrite, block=last, buffer=results[0], scope="local", label=label)
        renamed = {
            a.as_axis() or "": b.as_axis() or ""
            for a, b in zip(before, self.block(label).write_indices[0], strict=True)
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
        spatial = [n for n in self.loops(name) if n not in (lane, *others)]
        self.order(name, (lane, *spatial, *others))
        partial = self.partial(name, lane)
        self.order(name, (lane, *[n for n in self.loops(name) if n != lane]))
        return name, partial, self.partial(name, lane, 0 if self.across else -1)

    def _blocks(self) -> str:
        """Tile the last block; the loop over blocks of threads."""
        last, do = self.chain.last, self.draft.do
        reduce = [n for n in self.loops(last) if n in self.reducing(last)]
        within = [n for n in self.loops(last) if n in self.chain.within]
        outer = [n for n in self.loops(last) if n not in (*reduce, *within, self.tiled)]
        row = []
        if self.tiled:
            do(Split, block=last, loop=self.tiled, factors=(0, self.rows))
            outer.append(f"{self.tiled}0")
            row.append(f"{self.tiled}1")
        if not outer:
            do(Split, block=last, loop=within[0], factors=(1, 0))
            outer, within[0] = [f"{within[0]}0"], f"{within[0]}1"
        self.order(last, (*outer, *within, *row, *reduce))
        block = self.fuse(last, outer)
        do(Bind, block=last, loop=block, thread="blockIdx.x")
        if within:
            fused = self.fuse(last, within)
            do(Split, block=last, loop=fused, factors=(0, self.lanes))
            self.order(last, (f"{fused}1", *row, f"{fused}0"))
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
        inside = self.loops(shared, self.around)
        do(ComputeAt, block=partial, loop=inside[-1], unit_loops=True)
        do(Bind, block=shared, loop=inside[-1], thread=self.lane_thread)
        self._bind_row(name, shared)
        self.scope(shared, "shared")
        self.local(partial)
        self.local(name)

    def _bind_row(self, reduction: str, stage: str) -> None:
        """Bind the loop over rows around a stage of a reduction."""
        if self.tiled:
            rows = self.block(stage).bound[self.chain.iterator(reduction, self.tiled)].axes()
            (loop,) = [n for n in self.loops(stage, self.around) if n in rows]
            self.draft.do(Bind, block=stage, loop=loop, thread=self.row_thread)


class JoinedParts(Steps):
    """Blocks of threads for results, each thread with one of the parts of it: the end of a split reduction.

    Needs a named combiner, and as many parts as a block may have threads, a power of two from 32 on.
    """

    def write(self) -> None:
        """Apply all steps; the chain's one reduction adds up the parts."""
        (name,), last = self.chain.reductions, self.chain.last
        do = self.draft.do
        rows = [n for n in self.loops(last) if n not in self.reducing(last)]
        row = self.fuse(last, rows)
        if rows:
            do(Bind, block=last, loop=row, thread="blockIdx.x")
        if name != last:
            do(ComputeAt, block=name, loop=row)
        do(Bind, block=name, loop=self.loops(name)[-1], thread="threadIdx.x")
        self.local(name)
        self.draft.settled |= {name, last}


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
