"""Element-by-element blocks on a GPU: neighbouring elements to neighbouring threads."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.target import Target
from ...passes.analysis.nest import find_block
from ...passes.schedule.bind import Bind
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.split import Split
from ..chains import unscheduled
from ..sketch import Draft
from ..sketch_rules import SketchRule


class GpuInjective(SketchRule):
    """What no rule has scheduled, on a GPU."""

    order: ClassVar[int] = 700

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for block in unscheduled(draft):
            if block.enclosing_loops and not block.is_reduction:
                bind_all(draft, block.block_name, target)
        return [draft]


def bind_all(draft: Draft, name: str, target: Target) -> None:
    """Neighbouring elements to neighbouring threads, a few blocks' worth of them at a time."""
    loops = [(loop.loop_name, loop.size) for loop in find_block(None, draft.module, name).enclosing_loops]
    if not loops:
        return
    if len(loops) > 1:
        draft.do(Fuse, block=name, loops=tuple(n for n, _ in loops))
    fused = "_".join(n for n, _ in loops)
    threads = min(256, target.max_threads_per_block or 256)
    draft.do(Split, block=name, loop=fused, factors=(0, threads))
    draft.do(Bind, block=name, loop=f"{fused}0", thread="blockIdx.x")
    draft.do(Bind, block=name, loop=f"{fused}1", thread="threadIdx.x")
    draft.settled.add(name)
