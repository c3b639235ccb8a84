"""Inline what is cheap to compute again where it is read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from ...dialects.index import Div
from ...dialects.loop import BlockOp, LoadOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import consumers, is_argument
from ...passes.analysis.views import is_view
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_inline import ComputeInline
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import anchors_in, reads_by_data
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
"""Operations that a reader may get more by reading a neighbourhood, and that several readers may each get: stencils of
stencils grow with every stage. With 20 and 80 none of 58 default schedules changes (Zen 3). A choice: a 3 x 3 window of
four operations."""


@dataclass(frozen=True)
class AlwaysInline(SketchRule):
    """Blocks without a reduction into their readers; padding waits for the rule of its reader."""

    order: ClassVar[int] = 100
    costly: tuple[str, ...] = COSTLY

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        anchors = anchors_in(draft.module)
        left = draft.settled.union(*(anchor.pads for anchor in anchors))
        tiled = {anchor.block for anchor in anchors}
        for block in list(blocks_in(draft.module)):
            if block.block_name in left or is_view(block) or not self._is_cheap(block):
                continue
            if not target.is_gpu and _divides_again(block):
                continue
            if reads_by_data(block) and any(reader.block_name in tiled for reader in consumers(block)):
                continue  # of what a tile reads so, nobody knows which part it is
            with suppress(ScheduleError):
                draft.do(ComputeInline, block=block.block_name)
        return [draft]

    def _is_cheap(self, block: BlockOp) -> bool:
        """True where a block may be computed again wherever it is read.

        Not one that picks its arithmetic by position: repeating it would repeat a product with a matrix.
        """
        if block.is_reduction or is_argument(block.outputs[0]) or picked_axes(block):
            return False
        readers, operations = consumers(block), [op.name for op in block.body.block.ops]
        if any(name in self.costly for name in operations) and (
            len(readers) > 1 or any(r.is_reduction for r in readers)
        ):
            return False
        if len(readers) > 1 and len(operations) > MOST_REPEATED:
            return False  # of recurrences, whose terms read the two before them, code would grow by the golden ratio
        times = (neighbours_read(reader, block) for reader in readers)
        return all(n <= 1 or n * len(operations) <= MOST_REPEATED for n in times)


def _divides_again(block: BlockOp) -> bool:
    """True for what is put together of several parts by quotients, and read by a quotient: lanes would be gathered.

    Such as the sums before each part of a cumulative sum, which are sums of sums themselves: each is read for a part of
    16 elements, all of one vector. 763x1023 takes 372 us with them in their reader, 283 apart (one core of a Zen 5).
    """
    own = sum(_has_quotients(load) for load in block.loads)
    theirs = [load for reader in consumers(block) for load in reader.loads if load.buffer is block.outputs[0]]
    return len(block.loads) > 1 and own > 0 and any(map(_has_quotients, theirs))


def _has_quotients(load: LoadOp) -> bool:
    return any(isinstance(atom, Div) for e in load.indices.data for atom, _ in e.terms)
