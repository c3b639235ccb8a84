"""Long reductions to few results: split into parts that threads take, with a reduction of the parts at the end."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ...passes.schedule.rfactor import Rfactor, may_trap
from ...passes.schedule.split import Split
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import find_anchor
from ..structure.chains import along_reduce, unscheduled
from ..structure.strides import lanes_of_block

FEWEST_ELEMENTS = 1 << 17
"""Reductions of fewer terms are over before threads could help."""
FEWEST_A_PART = 8
"""Steps along the split axis that a part has at least."""
TILE = 8
"""Vectors of results that a core computes at a time where operands are reused, about."""


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
            name, reused = block.block_name, find_anchor(draft.module, block.block_name) is not None
            axis = _axis_to_split(block, target, reused)
            if axis is None:
                continue
            counts = _parts(axis, target, exact=reused)
            split = [made for one in drafts if counts and (made := _split(one, name, axis, counts)) is not None]
            if split:
                drafts = [*drafts, *split] if reused else split
        return drafts


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
    """How many parts there may be: a few for each core; `exact` ones, which tiling needs, leave no tail."""
    most = axis.extent // FEWEST_A_PART
    counts = (target.cores * n for n in (1, 2, 4))
    if exact:
        counts = (n for n in range(target.cores, 4 * target.cores + 1) if axis.extent % n == 0)
    return tuple(n for n in counts if n <= most)[:4]


def _split(draft: Draft, name: str, axis: Axis, counts: tuple[int, ...]) -> Draft | None:
    """A copy of the draft with a block's reduction in parts; None where it cannot be split."""
    grown = draft.copy()
    parts = grown.hole(f"{name}_parts", counts, counts[0], "parts")
    part = f"{axis.name}0"
    try:
        grown.do(Split, block=name, loop=axis.name, factors=(parts, 0))
        grown.order(name, (part, *[n for n in grown.loops(name) if n != part]))
        grown.do(Rfactor, block=name, loop=part)
    except ScheduleError:
        return None
    grown.names.append("parts")
    return grown
