"""Filters of filters: every stage computed for one tile at a time, its edges again for each of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy.typing as npt

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import shared_loops
from ...passes.analysis.nest import loops_reduced
from ...passes.parametric.nest import Nest
from ...passes.parametric.placement import kept_part
from ...passes.parametric.sizes import Size, product, total
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.tile_model import CYCLES_PER_S
from ..features.native import run_program
from ..features.program import Program
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole
from ..sketch.rule import SketchRule
from ..structure.stencils import StencilChain, stencil_chains
from ..structure.strides import lanes_of_block
from ._choices import up_to
from ._lanes import deal, parallel_elements

ROWS = (1, 2, 4, 8, 16, 32, 64)
"""Rows of a tile."""
USUAL_ROWS = 8
"""Rows of a tile without a search. A choice: a filter of 3 computes a quarter of its rows again."""
VECTORS = (1, 2, 4, 8, 16, 32)
"""Vectors of a row of a tile."""
USUAL_VECTORS = 16
"""The same of vectors without a search, at most. A choice: a row of 512 bytes or a line of an image."""
UNROLLED = 32
"""Terms of a window that are written out. A choice: filters of 5 x 5 are whole."""
STACK_BYTES = 131072
"""Bytes of a thread's stack for the stages of a tile together. A choice: a small part of the 8 MiB that threads have by
default on Linux, which stays in a second-level cache."""


class StencilTiles(SketchRule):
    """On a CPU, beside stage after stage: a second way for each chain of filters."""

    order: ClassVar[int] = 250

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for chain in stencil_chains(draft):
            tiled = [grown for one in drafts if (grown := _written(one, chain, target)) is not None]
            drafts += tiled
        return drafts


@dataclass(frozen=True)
class StencilModel:
    """Estimates for tiles, from the nest of all of them at once.

    `sizes` are the bytes of the stages of a tile that a thread keeps, the tiles, the rows of a tile, and the instances
    of each stage in it; `operations` those on one instance.
    """

    target: Target
    lanes: int
    operations: tuple[float, ...]
    sizes: Program

    def _sizes(self, c: Columns) -> npt.NDArray[np.float64]:
        return run_program(self.sizes, c, len(next(iter(c.values())))).astype(np.float64)

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The stages before the last fit the stack."""
        return np.asarray(self._sizes(c)[0] <= STACK_BYTES)

    def seconds(self, c: Columns) -> npt.NDArray[np.float64]:
        """Vector operations of all stages, edges included, and the memory of the first and the last."""
        _, tiles, rows, *instances = self._sizes(c)
        work = sum(n * operations for n, operations in zip(instances, self.operations, strict=True))
        cycles = tiles * (work / self.lanes + 2 * rows) / self.target.cores
        return np.asarray(cycles / CYCLES_PER_S)


@dataclass(frozen=True)
class StencilPlan:
    """Tiles of the last stage of a chain: `rows` of the loop `row`, None where there is none, by vectors of `column`.

    `outer` are the loops around; `elements` are those of the last stage.
    """

    chain: StencilChain
    target: Target
    outer: tuple[str, ...]
    row: str
    column: str
    rows: Hole | None
    vectors: Hole
    lanes: int
    elements: int

    @property
    def final(self) -> str:
        return self.chain.final


def plan_tiles(draft: Draft, chain: StencilChain, target: Target) -> StencilPlan:
    """Tiles of the last loop and the last one of some length outside of it."""
    final = chain.final
    lanes, sizes = lanes_of_block(draft.block(final), target), draft.sizes(final)
    *outer, column = sizes
    most = max(1, -(-sizes[column] // lanes))
    vectors = Hole.near(f"{final}_vectors", up_to(VECTORS, most), min(USUAL_VECTORS, most), "tile", f"{final}_tile")
    row = next((n for n in reversed(outer) if sizes[n] > 1), "")
    rows = Hole.near(f"{final}_rows", up_to(ROWS, sizes[row]), USUAL_ROWS, "tile", f"{final}_tile") if row else None
    return StencilPlan(chain, target, tuple(outer), row, column, rows, vectors, lanes, prod(sizes.values()))


def _written(draft: Draft, chain: StencilChain, target: Target) -> Draft | None:
    """A copy of the draft with the chain in tiles; None where a step of it is not legal, or no tile fits."""
    plan = plan_tiles(draft, chain, target)
    return draft.with_legal_steps(lambda grown: _write(grown, plan))


def _write(draft: Draft, plan: StencilPlan) -> None:
    """Apply all steps: the tiles of the last stage, then the stages in them."""
    around, members = _tile(draft, plan), plan.chain.members
    for member in members:
        _member(draft, plan, member, around)
    draft.settled |= {plan.final, *members}
    draft.names.append("tiles")
    model = _model(draft, plan, around)
    draft.models.append(model)
    draft.limits.append(model.limit)


def _tile(draft: Draft, plan: StencilPlan) -> str:
    """Tile the last stage; the loop over tiles."""
    final, outer = plan.final, [*plan.outer]
    draft.add(plan.vectors)
    around, *inner = draft.split(final, plan.column, (0, plan.vectors, plan.lanes))
    if plan.rows is not None:
        draft.add(plan.rows)
        outer[outer.index(plan.row)], row = draft.split(final, plan.row, (0, plan.rows))
        inner.insert(0, row)
    draft.order(final, [*outer, around, *inner])
    tiles = draft.fuse(final, [*outer, around])
    draft.do(Vectorize, block=final, loop=inner[-1])
    if plan.target.cores > 1 and plan.elements >= parallel_elements(plan.target):
        deal(draft, final, [tiles])
    return tiles


def _member(draft: Draft, plan: StencilPlan, name: str, around: str) -> None:
    """Schedule one stage of a tile: lanes along its last axis, windows inside of the others."""
    draft.do(ComputeAt, block=name, loop=around, unit_loops=True)
    draft.do(SetScope, block=name, scope="local")
    block = draft.block(name)
    loops = block.enclosing_loops[len(shared_loops(block, draft.block(plan.final))) :]
    reduced = loops_reduced(block)
    *rows, last = [x for x in loops if x.loop_name not in reduced]
    windows = [x.loop_name for x in loops if x.loop_name in reduced]
    strip, lane = draft.split(name, last.loop_name, (0, plan.lanes))
    draft.order(name, [*(x.loop_name for x in rows), strip, *windows, lane])
    draft.do(Vectorize, block=name, loop=lane)
    copies = 1
    for loop in reversed([x for x in draft.block(name).enclosing_loops if x.loop_name in reduced]):
        copies *= loop.size
        if loop.size > 1 and copies <= UNROLLED:  # the sums stay in registers
            draft.do(Unroll, block=name, loop=loop.loop_name)


# -- the model --------------------------------------------------------------------------------------------------------


def _model(draft: Draft, plan: StencilPlan, around: str) -> StencilModel:
    """Return the model of the tiles of a chain, one for each iteration of the loop `around`."""
    names = (plan.final, *plan.chain.members)
    program = draft.program(plan.target, lambda nest: _asked(nest, plan, around))
    return StencilModel(plan.target, plan.lanes, tuple(_operations(draft.block(n)) for n in names), program)


def _asked(nest: Nest, plan: StencilPlan, around: str) -> list[Size]:
    """The bytes of a tile that are kept, the tiles, their rows, and each stage's instances in one."""
    final, *members = (nest.stage(name) for name in (plan.final, *plan.chain.members))
    tile = nest.loop(plan.final, around)
    kept = [kept_part(nest, a.buffer, nest.owner_of(a.buffer)) for stage in members for a in stage.writes]
    below = [[x.extent for x in stage.loops if tile in x.path[:-1]] for stage in (final, *members)]
    rows, tiles = product(below[0][:-2]), product([x.extent for x in tile.path])
    return [total([part.elements * part.element_bytes for part in kept]), tiles, rows, *map(product, below)]


def _operations(block: BlockOp) -> float:
    """Operations on one instance of a block: half of what is written down, as addresses fold."""
    return 0.5 * (sum(1 for _ in block.body.block.ops) + len(block.loads))
