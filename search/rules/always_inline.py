"""Inline what is cheap to compute again where it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialects.loop import blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import consumers, is_argument
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_inline import ComputeInline
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import anchors_in
from ..structure.stencils import neighbours_read
from ..structure.transform_chains import picked_axes

COSTLY = (
    "math.exp",
    "math.tanh",
    "math.erf",
    "math.log",
    "math.powf",
    "math.sin",
    "math.cos",
    "arith.divf",
    "math.sqrt",
)
"""Operations worth storing the result of rather than repeating."""
MOST_REPEATED = 40
"""Operations that a reader may get more by reading a neighbourhood: stencils of stencils grow with every stage. No
measurement is kept."""


@dataclass(frozen=True)
class AlwaysInline(SketchRule):
    """Blocks without a reduction into their readers; padding waits for the rule of its reader."""

    order: ClassVar[int] = 100
    costly: tuple[str, ...] = COSTLY

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        pads = {pad for anchor in anchors_in(draft.module) for pad in anchor.pads}
        for block in list(blocks_in(draft.module)):
            name = block.block_name
            if name in pads or name in draft.settled or block.is_reduction or is_argument(block.outputs[0]):
                continue
            readers = consumers(block)
            if picked_axes(block):  # repeating it would repeat a product with a matrix
                continue
            costly = any(op.name in self.costly for op in block.body.block.ops)
            if costly and (len(readers) > 1 or any(r.is_reduction for r in readers)):
                continue
            operations = sum(1 for _ in block.body.block.ops)
            if any(n > 1 and n * operations > MOST_REPEATED for n in (neighbours_read(r, block) for r in readers)):
                continue
            try:
                draft.do(ComputeInline, block=name)
            except ScheduleError:
                continue
        return [draft]
