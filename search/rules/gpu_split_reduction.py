"""Long reductions to few results on a GPU: parts on blocks of their own, and a kernel that joins the parts."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.split import Split
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import find_anchor
from ..structure.gpu_chains import GpuChain, Shape, chain_of_one, chains_of
from ._gpu_joined_rows import JoinedParts, JoinedRows
from ._gpu_row_steps import Steps
from ._gpu_tiled_rows import Choices, TiledRows, row_tiles, tiled_axis

FEWEST_ELEMENTS = 1 << 18
"""Elements from which on a second kernel costs less than the blocks of threads that a single one leaves idle."""
FEWEST_TERMS = 4096
"""Terms of a result, at least."""
FEWEST_IN_CHAINS = 1 << 17
"""Terms of a result where it stands in a chain that one kernel would compute otherwise."""
ACROSS = 32
"""Results that a block of threads has where operands are contiguous along them, about."""
BLOCKS_PER_CORE = 4
"""Blocks of threads for each multiprocessor, about."""
PARTS = (32, 64, 128, 256, 512, 1024)
"""Parts of a result: the threads of a block join them, one each."""
FEWEST_A_PART = 8
"""Steps along the loop that is split which each part has, at least."""


class GpuSplitReduction(SketchRule):
    """Where results are too few for all multiprocessors and nothing is reused: `gpu_tiling` splits what is."""

    order: ClassVar[int] = 420

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for chain in chains_of(draft):
            if not any(_worth(draft, chain, name, target) for name in chain.reductions):
                continue
            grown = draft.copy()
            try:
                _split_all(grown, chain, target)
            except ScheduleError:
                continue
            draft = grown
        return [draft]


def _worth(draft: Draft, chain: GpuChain, name: str, target: Target) -> bool:
    """Whether a reduction is long, and its results keep less than half of the multiprocessors busy."""
    shape = Shape.of(draft, chain_of_one(draft.block(name)))
    if shape.along is None or find_anchor(draft.module, name) is not None:
        return False
    blocks = -(-shape.rows // ACROSS) if shape.across else shape.rows
    single = not shape.named and shape.rows == 1  # of which threads cannot be made to join
    if 2 * blocks > target.cores or shape.rows * shape.terms < (FEWEST_TERMS if single else FEWEST_ELEMENTS):
        return False
    alone = len(chain.reductions) == 1 and not chain.within
    return shape.terms >= (FEWEST_TERMS if alone else FEWEST_IN_CHAINS)


def _split_all(draft: Draft, chain: GpuChain, target: Target) -> None:
    """Split the reductions of a chain that are worth it; what stands between them is computed again."""
    for name in chain.repeated:
        draft.do(ComputeInline, block=name)
    for name in chain.reductions:
        if _worth(draft, chain, name, target):
            _Parts(draft, name, target).write()
    draft.names.append(f"{chain.last}_parts")


class _Parts:
    """One reduction being split."""

    def __init__(self, draft: Draft, name: str, target: Target) -> None:
        self.draft = draft
        self.name = name
        self.target = target
        self.steps = Steps(draft, chain_of_one(draft.block(name)), target)
        self.shape = Shape.of(draft, self.steps.chain)

    def write(self) -> None:
        """The parts, and what joins them."""
        rest = self._divide()
        made = self.draft.partial(self.name, self.part, -1)
        chain = chain_of_one(self.draft.block(made))
        if self.shape.named and not self.shape.across:
            rows = JoinedRows(self.draft, chain, self.target)
            rows.reduce_loops[made] = rest
            rows.write(self.length, self.length)
        else:
            tiled = self.shape.along if self.shape.across else self.part
            assert tiled is not None
            tiles = TiledRows(self.draft, chain, self.target, tiled, self.shape.across)
            tiles.reduce_loops[made] = rest
            tiles.write(*self._tiles())
        self._join()

    def _divide(self) -> list[str]:
        """Split the outermost loop that is long enough; the loops that are left to a part."""
        steps, name = self.steps, self.name
        loops = steps.untouched_reduce_loops(name)
        blocks = -(-self.shape.rows // ACROSS) if self.shape.across else self.shape.rows
        wanted = -(-BLOCKS_PER_CORE * self.target.cores // blocks)
        most = min(max(PARTS), self.target.max_threads_per_block or 256)
        around = self.draft.sizes(name)
        if around[loops[0]] < FEWEST_A_PART * min(wanted, most):
            loops = [self.draft.fuse(name, loops)]
            around = self.draft.sizes(name)
        first, *others = loops
        most = min(most, max(PARTS[0], around[first] // FEWEST_A_PART))
        middle = max(PARTS[0], min(most, 1 << (wanted - 1).bit_length()))
        parts = Choices.within(PARTS, middle // 2, min(most, 4 * middle), middle)
        hole = self.draft.hole(f"{name}_parts", parts.values, parts.default, "parts")
        self.draft.do(Split, block=name, loop=first, factors=(hole, 0))
        self.part = f"{first}0"
        self.length = self.shape.terms // parts.default if not others else around[others[-1]]
        self.draft.order(name, (self.part, *[n for n in self.draft.loops(name) if n != self.part]))
        return [f"{first}1", *others]

    def _tiles(self) -> tuple[Choices, Choices]:
        most = self.target.max_threads_per_block or 256
        if self.shape.across:
            (extent,) = (a.extent for a in self.shape.deepest.axes if a.name == self.shape.along)
            whole = 1 << (extent - 1).bit_length()
            return Choices.within((8, 16, 32, 64), 8, whole, 32), Choices.within((2, 4, 8, 16, 32), 2, most // 32, 8)
        return Choices.within((1, 2, 4, 8, 16), 1, most // 32, 4), Choices.within((8, 16, 32, 64), 8, 64, 32)

    def _join(self) -> None:
        """The parts of each result, with a block that takes results one by one where there is one."""
        block = self.draft.block(self.name)
        chain = next((c for c in chains_of(self.draft) if self.name in c.reductions), chain_of_one(block))
        last = self.draft.block(chain.last)
        if len(chain.reductions) > 1 or chain.within or chain.repeated or not last.enclosing_loops:
            chain = chain_of_one(block)
        self.draft.settled |= {self.name, chain.last}
        if self.shape.named:
            JoinedParts(self.draft, chain, self.target).write()
        elif any(not a.reduce for a in last.axes):
            shape = Shape.of(self.draft, chain)
            TiledRows(self.draft, chain, self.target, tiled_axis(shape), False).write(*row_tiles(shape, self.target))
        else:
            self._join_in_a_warp()

    def _join_in_a_warp(self) -> None:
        """A single result that threads cannot be made to join: a warp takes the parts, one thread what is left."""
        name = self.name
        self.draft.do(Split, block=name, loop=self.part, factors=(0, PARTS[0]))
        self.draft.order(name, (f"{self.part}1", f"{self.part}0"))
        made = self.draft.partial(name, f"{self.part}1", 0)
        self.draft.do(Bind, block=made, loop=f"{self.part}1", thread="threadIdx.x")
