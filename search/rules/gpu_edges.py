"""Images with repeated edges, as resizes read them, on a GPU: clamped positions in the place of a kernel that pads."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import consumers, is_argument
from ...passes.schedule.clamp_to_edge import ClampToEdge, edges_of
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule

MOST_RESULTS = 1 << 22
"""Results of a reader, at most: of more the kernel that pads is a small part, and addresses that have nothing in common
count. On an H200 21x28x28 to 224x224 takes 4.5 us padded and 3.5 clamped (2.6 at best), 128x64x64 to 128x128 6.1 and
3.4, 512x32x32 to 64x64 6.3 and 5.8 (3.8), 256x7x7 to 14x14 2.4 and 1.1, but 19x65x65 to 520x520 (5 million) 11.1 and
13.0 at best, 256x33x33 to 129x129 (4.3 million) 9.9 and 10.9."""


class GpuEdges(SketchRule):
    """Repeated edges are read clamped by blocks without a reduction: of tiles each row would be looked up.

    A CPU's vectors are loaded whole where the edges are there, and gathered at positions that are computed.
    """

    order: ClassVar[int] = 90

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        padded = [b for b in blocks_in(draft.module) if not is_argument(b.outputs[0]) and edges_of(b) is not None]
        for block in reversed(padded):  # those of columns come behind those of rows, which they read
            if all(map(_is_elementwise, consumers(block))):
                draft.tried(ClampToEdge, block.block_name)
        return [draft]


def _is_elementwise(reader: BlockOp) -> bool:
    """True for a block without a reduction, of not too many results."""
    return not reader.is_reduction and prod(axis.extent for axis in reader.axes) <= MOST_RESULTS
