"""Images with repeated edges, as resizes read them, on a GPU: clamped positions in the place of a kernel that pads."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.loop import blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import consumers, is_argument
from ...passes.schedule.clamp_to_edge import ClampToEdge, edges_of
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule


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
            if not any(reader.is_reduction for reader in consumers(block)):
                draft.tried(ClampToEdge, block.block_name)
        return [draft]
