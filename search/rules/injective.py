"""Element-by-element blocks on a CPU: lanes along memory, vectors side by side, the other loops dealt to threads."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.chains import unscheduled
from ..structure.strides import in_rows, lanes_of_block, nearly_in_rows
from ._lanes import (
    PARALLEL_ELEMENTS,
    TASKS_A_CORE,
    deal,
    is_costly,
    lane_choices,
    not_idle,
    together,
    vectors_pay,
)
from ._turned import tile_turned, turned_axes
from .always_inline import COSTLY

VECTORS = (1, 2, 4, 8)
POLYNOMIALS = frozenset(COSTLY) - {"arith.divf", "math.sqrt"}
"""What many dependent operations compute: two registers in one vector hide their latency (gelu: 234 us for 263)."""
GATHERED_LANES = 1
"""Elements that lanes would gather come one by one unless each takes long to compute: resizing an image takes 198 us
with four side by side and 410 us with 16 lanes (Zen 5, one thread)."""


class Injective(SketchRule):
    """What no rule has scheduled, on a CPU.

    Loops that run through memory together become one, so that short rows fill vectors; a block that reads along another
    axis than it writes is tiled along both.
    """

    order: ClassVar[int] = 700

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for block in unscheduled(draft):
            if not block.enclosing_loops or block.is_reduction:
                continue
            axes = turned_axes(block)
            if axes is None:
                run_through(draft, block.block_name, target)
            else:
                tile_turned(draft, block.block_name, axes, target)
        return [draft]


def run_through(draft: Draft, name: str, target: Target) -> None:
    """Schedule a block without a reduction along memory: lanes, vectors, threads; large ones with holes for them."""
    loops = draft.block(name).enclosing_loops
    total = prod(loop.size for loop in loops)
    last, extent = together(draft, name, loops)
    block = draft.block(name)
    *outer, _ = [loop.loop_name for loop in block.enclosing_loops]
    if vectors_pay(block, last, extent, lanes_of_block(block, target)):
        _vectors(draft, block, last, extent, target, searched=total >= PARALLEL_ELEMENTS)
        last = f"{last}0"
    if target.cores > 1 and total >= PARALLEL_ELEMENTS:
        enough = total // extent >= TASKS_A_CORE * target.cores
        deal(draft, name, outer if enough else [*outer, last])


def _vectors(draft: Draft, block: BlockOp, loop: str, extent: int, target: Target, searched: bool) -> None:
    """`loop` -> vectors one after the other, a few side by side, lanes."""
    name = block.block_name
    choices, usual = lane_choices(extent, lanes_of_block(block, target))
    if any(op.name in POLYNOMIALS for op in block.body.block.ops):
        usual = max(n for n in choices if n <= max(usual, 2 * lanes_of_block(block, target)))
    most = -(-extent // usual)
    side = 4 if in_rows(block, loop) and not is_costly(block) else 1
    if not nearly_in_rows(block, loop):
        choices = (1, *choices)
        if not is_costly(block):
            usual, side, most = GATHERED_LANES, 4, extent
    side = min(side, most)
    lanes: Hole | int = usual
    vectors: Hole | int = side
    if searched:
        lanes = draft.hole(f"{name}_lanes", choices, usual, "vector")
        vectors = draft.hole(f"{name}_vectors", tuple(n for n in VECTORS if n <= most), side, "unroll")
        draft.limits.append(not_idle((vectors.name, lanes.name), extent))
    draft.do(Split, block=name, loop=loop, factors=(0, vectors, lanes))
    draft.do(Vectorize, block=name, loop=f"{loop}2")
    draft.do(Unroll, block=name, loop=f"{loop}1")


def spread(draft: Draft, name: str, target: Target) -> None:
    """Schedule a small block without a reduction, and without anything to search: lanes and threads."""
    block = draft.block(name)
    loops = [(loop.loop_name, loop.size) for loop in block.enclosing_loops]
    if not loops or any(loop.loop_kind != "serial" for loop in block.enclosing_loops):
        return
    total = prod(extent for _, extent in loops)
    lanes = lanes_of_block(block, target)
    last, extent = loops[-1]
    if extent >= lanes // 2 and extent > 1:
        draft.do(Split, block=name, loop=last, factors=(0, lanes))
        draft.do(Vectorize, block=name, loop=f"{last}1")
        loops[-1] = (f"{last}0", -(-extent // lanes))
    if target.cores > 1 and total >= PARALLEL_ELEMENTS:
        deal(draft, name, [n for n, _ in loops[:-1]] or [loops[0][0]])
