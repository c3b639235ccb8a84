"""Products with small constant matrices, such as Winograd's transforms: positions unrolled, chains tile by tile."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import shared_loops
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.strides import lanes_of_block
from ..structure.transform_chains import MOST_POSITIONS, PickChain, pick_chains
from ._lanes import PARALLEL_ELEMENTS


class Transforms(SketchRule):
    """Each chain of transforms in one nest, a tile at a time; neighbouring tiles to lanes or threads."""

    order: ClassVar[int] = 150

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for chain in pick_chains(draft):
            _Chain(draft, target, chain).write()
        return [draft]


class _Chain:
    """One chain being scheduled."""

    def __init__(self, draft: Draft, target: Target, chain: PickChain) -> None:
        self.draft = draft
        self.target = target
        self.chain = chain
        self.final = chain.final
        self.width: Hole | None = None

    def write(self) -> None:
        do, final = self.draft.do, self.final
        block = self.draft.block(final)
        self.draft.settled |= {final, *self.chain.members}
        work = 1
        for loop in block.enclosing_loops:
            work *= loop.size
        names = [loop.loop_name for loop in block.enclosing_loops]
        inside = []
        for name, size in self.chain.tiles:
            extent = next(a.extent for a in block.axes if a.name == name)
            if extent == size:
                inside.append(name)
                continue
            do(Split, block=final, loop=name, factors=(0, size))
            names[names.index(name)] = f"{name}0"
            inside.append(f"{name}1")
        outer = [n for n in names if n not in inside]
        if not outer:
            return
        around = self._threads(outer, inside) if self.target.is_gpu else self._lanes(block, outer, inside, work)
        for one in inside:
            do(Unroll, block=final, loop=one)
        for member in self.chain.members:
            self._member(member, around)

    def _threads(self, outer: list[str], inside: list[str]) -> str:
        """A thread for each tile; returns the loop over threads."""
        do, final = self.draft.do, self.final
        self.draft.order(final, [*outer, *inside])
        self.draft.fuse(final, outer)
        fused = "_".join(outer)
        most = self.target.max_threads_per_block or 256
        choices = tuple(n for n in (32, 64, 128, 256) if n <= most) or (most,)
        threads = self.draft.hole(f"{final}_threads", choices, min(128, most), "threads")
        do(Split, block=final, loop=fused, factors=(0, threads))
        do(Bind, block=final, loop=f"{fused}0", thread="blockIdx.x")
        do(Bind, block=final, loop=f"{fused}1", thread="threadIdx.x")
        return f"{fused}1"

    def _lanes(self, block: BlockOp, outer: list[str], inside: list[str], work: int) -> str:
        """A lane for each tile, neighbours side by side; returns the loop around the lanes of one vector."""
        do, final = self.draft.do, self.final
        lanes = lanes_of_block(block, self.target)
        last = outer[-1]
        extent = self.draft.sizes(final)[last]
        if extent >= max(2, lanes // 2):
            choices = tuple(n for n in (lanes // 2, lanes, 2 * lanes) if 1 < n < 2 * extent) or (lanes,)
            self.width = self.draft.hole(f"{final}_width", choices, lanes, "vector")
            do(Split, block=final, loop=last, factors=(0, self.width))
            outer[-1] = f"{last}0"
            self.draft.order(final, [*outer, *inside, f"{last}1"])
            do(Vectorize, block=final, loop=f"{last}1")
        else:
            self.draft.order(final, [*outer, *inside])
        threads = outer[:-1]
        if self.target.cores > 1 and work >= PARALLEL_ELEMENTS and threads:
            self.draft.fuse(final, threads)
            do(Parallel, block=final, loop="_".join(threads))
        return outer[-1]

    def _member(self, name: str, around: str) -> None:
        """Compute what one tile, or those of one vector, need of an earlier stage."""
        do = self.draft.do
        try:
            do(ComputeAt, block=name, loop=around)
        except ScheduleError:
            self.draft.settled.discard(name)
            return
        do(SetScope, block=name, scope="local")
        block = self.draft.block(name)
        own = block.enclosing_loops[len(shared_loops(block, self.draft.block(self.final))) :]
        lane = own[-1].loop_name if self.width is not None and own and own[-1].size == self.width.default else ""
        small = [x.loop_name for x in own if x.loop_name != lane and 1 < x.size <= MOST_POSITIONS]
        if lane:
            do(Vectorize, block=name, loop=lane)
        for one in small:
            do(Unroll, block=name, loop=one)
