"""Element-by-element blocks on a GPU: neighbouring elements to neighbouring threads."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.schedule.bind import Bind
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.chains import unscheduled

THREADS = 256
"""Threads of a block unless searched: enough warps to hide what a load takes, and few enough for several blocks."""


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
    """Neighbouring elements to neighbouring threads, a few to each: what they move then goes in vectors."""
    block = draft.block(name)
    loops = [(loop.loop_name, loop.size) for loop in block.enclosing_loops]
    if not loops:
        return
    total = prod(size for _, size in loops)
    vectors = tuple(n for n in (1, 2, 4) if loops[-1][1] % n == 0)
    wide = total >= vectors[-1] * THREADS * max(1, target.cores) and _moves_in_rows(block, loops[-1][0])
    fused = draft.fuse(name, [n for n, _ in loops])
    most = target.max_threads_per_block or THREADS
    choices = tuple(n for n in (64, 128, 256, 512, 1024) if n <= most) or (most,)
    threads = draft.hole(f"{name}_threads", choices, min(THREADS, most), "threads")
    vector = draft.hole(f"{name}_vector", vectors, vectors[-1] if wide else 1, "vector")
    draft.do(Split, block=name, loop=fused, factors=(0, threads, vector))
    draft.do(Bind, block=name, loop=f"{fused}0", thread="blockIdx.x")
    draft.do(Bind, block=name, loop=f"{fused}1", thread="threadIdx.x")
    draft.do(Vectorize, block=name, loop=f"{fused}2")
    draft.settled.add(name)


def _moves_in_rows(block: BlockOp, last: str) -> bool:
    """True where all that the block reads and writes is contiguous along its last axis, or does not move with it."""
    accesses = [*block.write_indices, *(load.indices.data for load in block.loads)]
    return all(
        all(last not in e.axes() for e in outer) and inner.is_linear_in(last) and inner.coefficient(last) in (0, 1)
        for *outer, inner in filter(None, accesses)
    )
