"""The sketch rule of the package: reductions outside of the last loop of each block, which runs in strips."""

from __future__ import annotations

import loopwright as lw
from loopwright.dialects.loop import blocks_in

from .strip_mine import StripMine

LANES = (1, 2, 4, 8, 16)
"""Lanes of a strip; those of more than a vector's take several instructions, and fewer loops."""


class StripMining(lw.SketchRule):
    """Schedule every block for a simple core; how many lanes its strips have is searched for."""

    order = 150

    def when(self, target: lw.Target) -> bool:
        return target.kind == "simple-core"

    def apply(self, draft: lw.Draft, target: lw.Target) -> list[lw.Draft]:
        for block in list(blocks_in(draft.module)):
            name, loops = block.block_name, draft.loops(block.block_name)
            spatial = sum(not axis.reduce for axis in block.axes)
            last = loops[spatial - 1]
            fitting = tuple(lanes for lanes in LANES if draft.sizes(name)[last] % lanes == 0)
            draft.order(name, [*loops[: spatial - 1], *loops[spatial:], last])
            draft.do(StripMine, block=name, loop=last, lanes=draft.hole(f"{name}_lanes", fitting, 1, "vector"))
            draft.settled.add(name)
        draft.names.append("strips")
        return [draft]
