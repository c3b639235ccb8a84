"""Long reductions to few results: split into parts that threads take, with a reduction of the parts at the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.schedule.rfactor import Rfactor, may_trap
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import find_anchor
from ..structure.chains import along_reduce, unscheduled
from ..structure.strides import lanes_of_block

FEWEST_ELEMENTS = 1 << 17
"""Reductions of fewer terms are over before threads could help. A choice: 10 us in vectors of 8
(`_lanes.VECTOR_CYCLES`), eight times a fork and join."""
FEWEST_A_PART = 8
"""Steps along the split axis that a part has at least. A choice: fewer are no more than joining the parts."""
TILE = 8
"""Vectors of results that a core computes at a time where operands are reused: a register tile, about. A choice: half
of 16 registers."""

PARTS_A_CORE = (1, 2, 4)
"""Parts for each core."""
MOST_CHOICES = 4
"""Numbers of parts that a search chooses among, at most: the fewest ones. A choice: it dilutes a search."""


class SplitReduction(SketchRule):
    """On CPUs with several cores, where results are too few to go round.

    With data reuse, such as in a product of flat matrices, both ways are searched; without, the split one alone.
    """

    order: ClassVar[int] = 200

    def when(self, target: Target) -> bool:
        return not target.is_gpu and target.cores > 1

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for block in unscheduled(draft):
            reused = find_anchor(draft.module, block.block_name) is not None
            plan = _plan(block, target, reused)
            if plan is None:
                continue
            split = [made for one in drafts if (made := one.with_steps(partial(_write, plan=plan)))]
            if split:
                drafts = [*drafts, *split] if reused else split
        return drafts


@dataclass(frozen=True)
class SplitPlan:
    """A reduce axis of a block in so many parts, whose partial results are a block of their own."""

    name: str
    axis: str
    parts: Hole


def _plan(block: BlockOp, target: Target, reused: bool) -> SplitPlan | None:
    """Plan the split of a reduction; None where it is short, or has results for all cores."""
    axis = _axis_to_split(block, target, reused)
    counts = _parts(axis, target, exact=reused) if axis is not None else ()
    if axis is None or not counts:
        return None
    return SplitPlan(block.block_name, axis.name, Hole.near(f"{block.block_name}_parts", counts, counts[0], "parts"))


def _axis_to_split(block: BlockOp, target: Target, reused: bool) -> Axis | None:
    """The outermost reduce axis long enough, of a reduction whose results keep fewer than all cores busy."""
    if not block.is_reduction or may_trap(block) or any(e.as_axis() is None for e in block.write_indices[0]):
        return None
    results = prod(a.extent for a in block.axes if not a.reduce)
    reduce = [a for a in block.axes if a.reduce and a.extent > 1]
    if not reduce or results * prod(a.extent for a in reduce) < FEWEST_ELEMENTS:
        return None
    lanes = lanes_of_block(block, target)
    together = TILE * lanes if reused else 1 if along_reduce(block) else lanes
    if -(-results // together) >= target.cores:
        return None
    return next((a for a in reduce if a.extent >= FEWEST_A_PART * target.cores), None)


def _parts(axis: Axis, target: Target, exact: bool) -> tuple[int, ...]:
    """Return the choices of parts: a few for each core; `exact` ones, which tiling needs, leave no tail."""
    most = axis.extent // FEWEST_A_PART
    counts = (target.cores * n for n in PARTS_A_CORE)
    if exact:
        counts = (n for n in range(target.cores, max(PARTS_A_CORE) * target.cores + 1) if axis.extent % n == 0)
    return tuple(n for n in counts if n <= most)[:MOST_CHOICES]


def _write(draft: Draft, plan: SplitPlan) -> None:
    """Apply all steps; the partial results are left to later rules."""
    draft.add(plan.parts)
    part, _ = draft.split(plan.name, plan.axis, (plan.parts, 0))
    draft.order(plan.name, (part, *[n for n in draft.loops(plan.name) if n != part]))
    draft.do(Rfactor, block=plan.name, loop=part)
    draft.names.append("parts")
