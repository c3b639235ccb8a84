"""Filters of filters: every stage computed for one tile at a time, its edges again for each of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import shared_loops
from ...passes.analysis.nest import loops_reduced
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.tile_model import CYCLES_PER_S
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole
from ..sketch.rule import SketchRule
from ..structure.stencils import StencilChain, stencil_chains
from ..structure.strides import lanes_of_block, output_bytes
from ._lanes import PARALLEL_ELEMENTS

ROWS = (1, 2, 4, 8, 16, 32, 64)
VECTORS = (1, 2, 4, 8, 16, 32)
UNROLLED = 32
"""Terms of a window that are written out."""
STACK_BYTES = 131072
"""What the stages of a tile may take of a thread's stack together."""


class StencilTiles(SketchRule):
    """On a CPU, beside stage after stage: a second way for each chain of filters."""

    order: ClassVar[int] = 250

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for chain in stencil_chains(draft):
            tiled = [grown for one in drafts if (grown := _Tiles(one.copy(), target, chain).write()) is not None]
            drafts += tiled
        return drafts


@dataclass(frozen=True)
class StageCost:
    """Operations on an element of one stage, and the extents of its tile: multiples of the final one's, and more."""

    operations: float
    rows: tuple[float, float]
    columns: tuple[float, float]
    bytes: int


@dataclass(frozen=True)
class StencilModel:
    """What tiles of so many rows and columns cost; `elements` are those of the final stage."""

    target: Target
    elements: int
    rows: str
    vectors: str
    lanes: int
    stages: tuple[StageCost, ...]

    def _tile(self, c: Columns) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        columns = np.asarray(c[self.vectors] * self.lanes, np.float64)
        return (np.asarray(c[self.rows], np.float64) if self.rows else np.ones(len(columns))), columns

    def _sizes(self, c: Columns) -> list[npt.NDArray[np.float64]]:
        rows, columns = self._tile(c)
        return [(s.rows[0] * rows + s.rows[1]) * (s.columns[0] * columns + s.columns[1]) for s in self.stages]

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The stages before the last fit the stack."""
        sizes = zip(self._sizes(c)[1:], self.stages[1:], strict=True)
        return np.asarray(sum(size * s.bytes for size, s in sizes) <= STACK_BYTES)

    def seconds(self, c: Columns) -> npt.NDArray[np.float64]:
        """Vector operations of all stages, edges included, and the memory of the first and the last."""
        rows, columns = self._tile(c)
        tiles = self.elements / (rows * columns)
        work = np.zeros(len(rows))
        for size, stage in zip(self._sizes(c), self.stages, strict=True):
            work = work + size * stage.operations
        cycles = tiles * (work / self.lanes + 2 * rows) / self.target.cores
        return np.asarray(cycles / CYCLES_PER_S)


class _Tiles:
    """One chain being scheduled."""

    def __init__(self, draft: Draft, target: Target, chain: StencilChain) -> None:
        self.draft = draft
        self.target = target
        self.chain = chain
        self.final = chain.final
        self.rows: Hole | None = None
        self.extents: dict[str, tuple[int, int]] = {}

    def write(self) -> Draft | None:
        """The draft with the chain in tiles; None where a step of it is not legal, or no tile fits."""
        try:
            self._tile()
            for member in self.chain.members:
                self._member(member)
        except ScheduleError:
            return None
        self.draft.settled |= {self.final, *self.chain.members}
        self.draft.names.append("tiles")
        model = self._model()
        self.draft.models.append(model)
        self.draft.limits.append(model.limit)
        return self.draft if self.draft.make_defaults_legal() else None

    def _block(self, name: str) -> BlockOp:
        return self.draft.block(name)

    def _tile(self) -> None:
        do, final = self.draft.do, self.final
        block = self._block(final)
        self.lanes = lanes_of_block(block, self.target)
        sizes = {x.loop_name: x.size for x in block.enclosing_loops}
        self.elements = prod(sizes.values())
        names = list(sizes)
        *outer, last = names
        inner = [f"{last}1", f"{last}2"]
        most = max(1, -(-sizes[last] // self.lanes))
        vectors = tuple(n for n in VECTORS if n <= most)
        self.vectors = self.draft.hole(f"{final}_vectors", vectors, min(16, most), "tile", f"{final}_tile")
        do(Split, block=final, loop=last, factors=(0, self.vectors, self.lanes))
        row = next((n for n in reversed(outer) if sizes[n] > 1), None)
        if row is not None:
            choices = tuple(n for n in ROWS if n <= sizes[row])
            self.rows = self.draft.hole(f"{final}_rows", choices, 8, "tile", f"{final}_tile")
            do(Split, block=final, loop=row, factors=(0, self.rows))
            outer[outer.index(row)] = f"{row}0"
            inner.insert(0, f"{row}1")
        tiles = [*outer, f"{last}0"]
        order = [*tiles, *inner]
        self.draft.order(final, order)
        self.draft.fuse(final, tiles)
        self.around = "_".join(tiles)
        do(Vectorize, block=final, loop=inner[-1])
        if self.target.cores > 1 and self.elements >= PARALLEL_ELEMENTS:
            do(Parallel, block=final, loop=self.around)

    def _member(self, name: str) -> None:
        """What a tile needs of one stage: lanes along its last axis, windows inside of the other loops."""
        do = self.draft.do
        do(ComputeAt, block=name, loop=self.around, unit_loops=True)
        do(SetScope, block=name, scope="local")
        block = self._block(name)
        loops = block.enclosing_loops[len(shared_loops(block, self._block(self.final))) :]
        own = [x.loop_name for x in loops]
        reduced = loops_reduced(block)
        spatial = [n for n in own if n not in reduced]
        last = spatial[-1]
        sizes = [x.size for x in loops if x.loop_name in spatial]
        self.extents[name] = prod(sizes[:-1]), sizes[-1]
        do(Split, block=name, loop=last, factors=(0, self.lanes))
        order = [*spatial[:-1], f"{last}0", *[n for n in own if n in reduced], f"{last}1"]
        self.draft.order(name, order)
        do(Vectorize, block=name, loop=f"{last}1")
        copies = 1
        for loop in reversed([x for x in self._block(name).enclosing_loops if x.loop_name in reduced]):
            copies *= loop.size
            if loop.size > 1 and copies <= UNROLLED:  # the sums stay in registers
                do(Unroll, block=name, loop=loop.loop_name)

    # -- the model ----------------------------------------------------------------------------------------------------

    def _model(self) -> StencilModel:
        return StencilModel(
            target=self.target,
            elements=self.elements,
            rows=self.rows.name if self.rows is not None else "",
            vectors=self.vectors.name,
            lanes=self.lanes,
            stages=tuple(self._stage(name) for name in (self.final, *self.chain.members)),
        )

    def _stage(self, name: str) -> StageCost:
        block = self._block(name)
        window = prod(a.extent for a in block.axes if a.reduce)
        operations = 0.5 * (sum(1 for _ in block.body.block.ops) + len(block.loads)) * window
        rows, columns = (0.0, 1.0), (1.0, 0.0)
        if name != self.final:
            above, along = self.extents[name]
            columns = _grown(along, self.vectors.default * self.lanes)
            rows = _grown(above, self.rows.default) if self.rows is not None else (0.0, float(above))
        elif self.rows is not None:
            rows = (1.0, 0.0)
        return StageCost(operations, rows, columns, output_bytes(block))


def _grown(size: int, tile: int) -> tuple[float, float]:
    """A tile's extent as a multiple of the final stage's and what comes on top at the edges."""
    times = max(1, size // tile)
    return float(times), float(max(0, size - times * tile))
