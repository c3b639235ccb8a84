"""Multi-level tiling on a CPU: S R S R S around a register tile, packed panels, an accumulator tile, its epilogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from ...dialects.attributes import Axis
from ...dialects.combiner import element_bytes
from ...dialects.target import Target
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.tile_model import ReduceAxis, TiledAxis, TileModel
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole, Kind
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand
from ._ahead import may_be_packed_ahead, pack_ahead
from ._lanes import upto
from ._reduce_steps import covers, steps_of
from ._structures import tile_anchors
from ._turned_epilogue import turning_cycles
from .injective import spread

SMALL = 8
"""A reduce axis up to this extent, such as a filter's, is kept whole or unrolled whole."""
ROW_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
MIDDLE_TILES = (1, 2, 4, 8, 16, 32, 64, 128)


class MultiLevelTiling(SketchRule):
    """Reductions with data reuse, on a CPU.

    The one block that reads the results element by element, such as bias and activation, is computed in each tile,
    where they are still in a cache: each element is computed once either way, so apart it would only move memory once
    more, however costly it is (a product of 512x512 with gelu: 1324 us in the tile, 1395 us apart, on a Zen 5). Only
    where it writes along another axis is there a choice: in the tile its lanes are stored one by one, apart it is
    tiled along both axes (with a transpose: 2842 us in the tile, 1383 us apart). What several blocks read is always
    apart.
    """

    order: ClassVar[int] = 300

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        def write(grown: Draft, anchor: Anchor, variant: Variant) -> TileModel:
            return Tiling(grown, anchor, variant, target).write()

        def structures(anchor: Anchor) -> list[Variant]:
            found = list(variants(anchor, target))
            if turning_cycles(draft, anchor):
                return [replace(one, epilogue=where) for one in found for where in ("apart", "tile")]
            return found

        return tile_anchors(draft, structures, write)


@dataclass(frozen=True)
class Variant:
    """One structure: the axes that become lanes, where the operand along them is packed, and what is done with pads.

    `panel` is direct (not packed), root (before all tiles), inner (in a tile), or ahead (a constant, before any run).
    `epilogue` is in the tile or apart.
    """

    vector: tuple[Axis, ...]
    panel: str
    inline_pads: bool
    epilogue: str = "tile"

    @property
    def name(self) -> str:
        pads = "_padded" if self.inline_pads else ""
        apart = "_apart" if self.epilogue == "apart" else ""
        return f"{'_'.join(a.name for a in self.vector)}_{self.panel}{pads}{apart}"


def variants(anchor: Anchor, target: Target) -> Iterator[Variant]:
    """The structures worth searching for an anchor."""
    lanes = target.vector_bytes // element_bytes(anchor.element)
    last = anchor.spatial[-1]
    groups: list[tuple[Axis, ...]] = [(last,)]
    if len(anchor.spatial) > 1 and last.extent % lanes and last.extent < 16 * lanes:
        before = anchor.spatial[-2]
        together = [o for o in anchor.operands if last.name in o.axes]
        if all(before.name in o.axes for o in together) and len(together) < len(anchor.operands):
            groups.insert(0, (before, last))
            if last.extent < lanes:
                groups.pop()
    for group in groups:
        moving = _vector_operands(anchor, group)
        direct = len(group) == 1 and all(o.steps_along(group[0].name) for o in moving)
        once = all(sum(o.buffer is other.buffer for other in anchor.operands) == 1 for o in moving)
        shared = len(moving) < len(anchor.operands) and len(moving) == 1 and once
        names = tuple(a.name for a in group)
        ahead = shared and all(may_be_packed_ahead(o, names) for o in moving)
        packed = ["ahead"] if ahead else ["root", "inner"]
        packs = (["direct"] if direct else []) + (packed if shared and not _all_along(anchor, group) else [])
        for panel in packs or ["direct"]:
            yield Variant(group, panel, False)
            if anchor.pads and panel == "direct":
                yield Variant(group, panel, True)


def _all_along(anchor: Anchor, group: tuple[Axis, ...]) -> bool:
    return all(any(a.name in o.axes for a in group) for o in anchor.operands)


def _vector_operands(anchor: Anchor, group: tuple[Axis, ...]) -> list[Operand]:
    return [o for o in anchor.operands if any(a.name in o.axes for a in group)]


class Tiling:
    """One variant, written into a draft step by step."""

    def __init__(self, draft: Draft, anchor: Anchor, variant: Variant, target: Target) -> None:
        self.draft = draft
        self.turning = turning_cycles(draft, anchor, apart=variant.epilogue == "apart")
        self.anchor = anchor if variant.epilogue == "tile" else replace(anchor, epilogue=None)
        self.variant = variant
        self.target = target
        self.block = anchor.block
        self.lanes_count = target.vector_bytes // element_bytes(anchor.element)
        names = {a.name for a in variant.vector}
        self.rows = [a for a in anchor.spatial if a.name not in names and not anchor.shared_by_all(a.name)]
        self.outer = [a for a in anchor.spatial if a.name not in names and anchor.shared_by_all(a.name)]
        if len(self.rows) > 3:
            self.outer += self.rows[:-3]
            self.rows = self.rows[-3:]

    def hole(self, name: str, choices: tuple[int, ...], default: int, kind: Kind = "tile", axis: str = "") -> Hole:
        return self.draft.hole(f"{self.block}_{name}", choices, default, kind, axis and f"{self.block}_{axis}")

    def write(self) -> TileModel:
        """Apply all steps; returns the model of what came out."""
        self._holes()
        self._stage()
        self._tile()
        self._finish()
        return self._model()

    # -- holes --------------------------------------------------------------------------------------------------------

    def _holes(self) -> None:
        extent = prod(a.extent for a in self.variant.vector)
        lanes = tuple(n for n in (self.lanes_count // 2, self.lanes_count) if n >= 1)
        self.lanes = self.hole("lanes", lanes, self.lanes_count if extent >= self.lanes_count else lanes[0], "vector")
        most = max(1, -(-extent // lanes[0]))
        vectors = tuple(n for n in (1, 2, 3, 4, 5, 6, 7, 8) if n <= most)
        self.vectors = self.hole("vectors", vectors, min(4, max(1, -(-extent // self.lanes.default))), axis="vector")
        self.vector_middle = self.hole("vector_tile", upto(MIDDLE_TILES, most), 1, axis="vector")
        self.row_inner: dict[str, Hole] = {}
        self.row_middle: dict[str, Hole] = {}
        left = max(1, (self.target.vector_registers - 2) // (self.vectors.default + 1))
        reused = {n for o in _vector_operands(self.anchor, self.variant.vector) for n in o.axes}
        for axis in sorted(self.rows, key=lambda a: (a.name in reused, -self.rows.index(a))):
            default = min(left, axis.extent, 6)
            self.row_inner[axis.name] = self.hole(
                f"{axis.name}_rows", upto(ROW_TILES, axis.extent), default, axis=axis.name
            )
            self.row_middle[axis.name] = self.hole(
                f"{axis.name}_tile", upto(MIDDLE_TILES, axis.extent), 1, axis=axis.name
            )
            left //= max(1, default)
        self.blocked: dict[str, Hole] = {}
        self.unrolled: dict[str, Hole] = {}
        for axis in self.anchor.reduce:
            if axis.extent <= SMALL:
                self.unrolled[axis.name] = self.hole(f"{axis.name}_unroll", (1, axis.extent), 1, "unroll")
                continue
            steps = steps_of(axis.extent)
            self.unrolled[axis.name] = self.hole(f"{axis.name}_unroll", steps.unrolls, steps.unroll, "unroll")
            self.blocked[axis.name] = self.hole(f"{axis.name}_block", steps.blocks, steps.block)
        lanes_name, vectors_name = self.lanes.name, self.vectors.name
        self.panel_width: Derived | None = None
        if self.variant.panel != "direct":
            self.panel_width = self.draft.derive(f"{self.block}_panel_width", lambda c: c[lanes_name] * c[vectors_name])
        for axis in self.anchor.reduce:
            if axis.extent > SMALL:
                self.draft.limits.append(covers(axis.extent, self.blocked[axis.name], self.unrolled[axis.name]))

    # -- steps --------------------------------------------------------------------------------------------------------

    def _stage(self) -> None:
        """Panels, and what becomes of padding."""
        self.panels: list[str] = []
        moving = _vector_operands(self.anchor, self.variant.vector)
        packed = {operand.name for operand in moving}  # asked now: packing ahead replaces the buffers
        for operand in moving:
            if self.variant.panel == "ahead" and self.panel_width is not None:
                pack_ahead(
                    self.draft, self.block, operand, tuple(a.name for a in self.variant.vector), self.panel_width
                )
            elif self.variant.panel != "direct":
                self.panels.append(self._pack(operand))
        for pad in self.anchor.pads:
            if self.variant.inline_pads or (self.panels and pad in packed):
                self.draft.do(ComputeInline, block=pad)
            else:
                spread(self.draft, pad, self.target)

    def _pack(self, operand: Operand) -> str:
        label = f"{operand.name}_panel"
        vector = [a.name for a in self.variant.vector if a.name in operand.axes]
        fused = "*".join(vector)
        spatial = {a.name for a in self.anchor.spatial}
        batch = [n for n in operand.axes if n in spatial and n not in vector]
        reduce = [a.name for a in self.anchor.reduce if a.name in operand.axes]
        width = self.panel_width
        layout = (*batch, [f"{fused}/", width], *reduce, [f"{fused}%", width])
        self.draft.do(CacheRead, block=self.block, buffer=operand.name, scope="global", layout=layout, label=label)
        return label

    def _tile(self) -> None:
        do, block = self.draft.do, self.block
        vector = "_".join(a.name for a in self.variant.vector)
        self.draft.fuse(block, [a.name for a in self.variant.vector])
        do(Split, block=block, loop=vector, factors=(0, self.vector_middle, self.vectors, self.lanes))
        for axis in self.rows:
            inner, middle = self.row_inner[axis.name], self.row_middle[axis.name]
            do(Split, block=block, loop=axis.name, factors=(0, middle, inner))
        order_outer, order_middle, unrolled = [], [], []
        for axis in self.anchor.reduce:
            if axis.extent <= SMALL:
                do(Split, block=block, loop=axis.name, factors=(0, self.unrolled[axis.name]))
                order_middle.append(f"{axis.name}0")
                unrolled.append(f"{axis.name}1")
            else:
                factors = (0, self.blocked[axis.name], self.unrolled[axis.name])
                do(Split, block=block, loop=axis.name, factors=factors)
                order_outer.append(f"{axis.name}0")
                order_middle.append(f"{axis.name}1")
                unrolled.append(f"{axis.name}2")
        tasks = [a.name for a in self.outer] + [f"{a.name}0" for a in self.rows] + [f"{vector}0"]
        tiles = [f"{vector}1"] + [f"{a.name}1" for a in self.rows]
        registers = [f"{a.name}2" for a in self.rows] + [f"{vector}2", f"{vector}3"]
        # Loops of extent 1 stand where they are: the named ones are permuted among the rest.
        order = [*tasks, *order_outer, *tiles, *order_middle, *unrolled, *registers]
        self.draft.order(block, [*[n for n in self.draft.loops(block) if n not in order], *order])
        self.reduce_outer = order_outer
        self.task_loop = "_".join(tasks)
        self.draft.fuse(block, tasks)
        self.vector_loop = f"{vector}3"
        do(Vectorize, block=block, loop=self.vector_loop)
        for name in [*unrolled, *registers[:-1]]:
            do(Unroll, block=block, loop=name)

    def _finish(self) -> None:
        """The accumulator tile, its way out, threads, and the panels' place."""
        do, block = self.draft.do, self.block
        out = self.anchor.epilogue
        buffer = self.anchor.output
        if out is None:
            out = buffer = f"{self.anchor.output}_tile"
            do(CacheWrite, block=block, buffer=self.anchor.output, scope="local", label=out)
        else:
            do(SetScope, block=block, scope="local")
        do(ReverseComputeAt, block=out, loop=self.task_loop)
        if len(self.variant.vector) > 1:
            names = [e.as_axis() for e in self.draft.block(block).write_indices[0]]
            fused = [a.name for a in self.variant.vector]
            kept = [n for n in names if n is not None and n not in fused]
            do(TransformLayout, block=block, buffer=buffer, layout=(*kept, "*".join(fused)))
        do(Vectorize, block=out, loop=self.vector_loop)
        for panel in self.panels:
            self._place(panel)
        if self.target.cores > 1:
            do(Parallel, block=block, loop=self.task_loop)

    def _place(self, panel: str) -> None:
        do = self.draft.do
        if self.variant.panel == "inner":
            place = self.reduce_outer[0] if self.reduce_outer else self.task_loop
            do(ComputeAt, block=panel, loop=place, unit_loops=True)  # a panel may be one lane wide
        loops = self.draft.loops(panel)
        do(Split, block=panel, loop=loops[-1], factors=(0, self.lanes))
        do(Vectorize, block=panel, loop=f"{loops[-1]}1")
        if self.variant.panel == "root" and self.target.cores > 1:
            outer = loops[: max(1, min(2, len(loops) - 1))]
            self.draft.fuse(panel, outer)
            do(Parallel, block=panel, loop="_".join(outer))

    # -- the model ----------------------------------------------------------------------------------------------------

    def _model(self) -> TileModel:
        model = TileModel(
            target=self.target,
            outer=prod(a.extent for a in self.outer),
            rows=tuple(
                TiledAxis(a.name, a.extent, self.row_middle[a.name].name, self.row_inner[a.name].name)
                for a in self.rows
            ),
            vector=TiledAxis(
                self.variant.vector[-1].name,
                prod(a.extent for a in self.variant.vector),
                self.vector_middle.name,
                self.vectors.name,
            ),
            lanes=self.lanes.name,
            fewest_lanes=min(self.lanes.choices),
            reduce=tuple(
                ReduceAxis(
                    a.name,
                    a.extent,
                    self.blocked[a.name].name if a.name in self.blocked else "",
                    self.unrolled[a.name].name,
                )
                for a in self.anchor.reduce
            ),
            element_bytes=element_bytes(self.anchor.element),
            panel=self.variant.panel,
            operands=tuple(frozenset(o.axes) for o in self.anchor.operands),
            padded_inline=self.variant.inline_pads,
            packed=self._packed() if self.variant.panel == "root" else 0,
            turning=self.turning,
        )
        self.draft.limits += [model.limit_registers, model.limit_code, model.limit_waste]
        return model

    def _packed(self) -> int:
        extents = {a.name: a.extent for a in (*self.anchor.spatial, *self.anchor.reduce)}
        return sum(prod(extents[n] for n in o.axes) for o in _vector_operands(self.anchor, self.variant.vector))
