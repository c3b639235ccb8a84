"""Element-by-element blocks on a GPU: neighbouring elements to neighbouring threads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy.typing as npt

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.schedule.bind import Bind
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole, Limit
from ..sketch.rule import SketchRule
from ..structure.chains import unscheduled
from ..structure.strides import moves_in_rows
from ._gpu_factors import block_threads
from ._gpu_turned import plan_gpu_turned, write_gpu_turned

THREADS = (64, 128, 256, 512, 1024)
"""Threads of a block."""
USUAL_THREADS = 256
"""Threads of a block unless searched: enough warps to hide what a load takes, and few enough for several blocks. A
choice: eight blocks of them fill a multiprocessor."""
VECTORS = (1, 2, 4)
"""Elements of a thread: up to 16 bytes of float32, the widest access of a thread (CUDA C++ programming guide)."""
EACH = (1, 2, 4, 8)
"""Elements of a thread that lie a block's threads apart, where no vectors can be moved: their loads are under way at
once. 69x120x64x13 with its middle axes exchanged takes 16.1 us with eight (an H200), 27.7 with one, PyTorch 24.6."""
BLOCKS = 8
"""Blocks of a multiprocessor, at least, where threads have several elements: as many as it has at a time."""


class GpuInjective(SketchRule):
    """Schedule on a GPU what no other rule has scheduled.

    A block that reads along another axis than it writes goes through shared memory, on CUDA: a Mali's is main memory.
    """

    order: ClassVar[int] = 700
    of_unsettled: ClassVar[bool] = True

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for block in unscheduled(draft):
            if not block.enclosing_loops or block.is_reduction:
                continue
            turned = plan_gpu_turned(block, target) if target.kind == "cuda" else None
            if turned is None:
                _write(draft, plan_elements(block, target))
            else:
                write_gpu_turned(draft, turned)
        return [draft]


@dataclass(frozen=True)
class ElementPlan:
    """Elements of a block in `threads` of thread blocks, a `vector` of neighbours to each, or `each` so many apart."""

    name: str
    loops: tuple[str, ...]
    threads: Hole
    vector: Hole
    each: Hole | None = None


def plan_elements(block: BlockOp, target: Target) -> ElementPlan:
    """Vectors where what moves is contiguous and there are enough for all multiprocessors."""
    name = block.block_name
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    last, extent = list(sizes.items())[-1]
    widths = tuple(n for n in VECTORS if extent % n == 0)
    enough = prod(sizes.values()) >= widths[-1] * USUAL_THREADS * max(1, target.cores)
    width = widths[-1] if enough and moves_in_rows(block, last) else 1
    threads = Hole.near(f"{name}_threads", block_threads(target, THREADS), USUAL_THREADS, "threads")
    vector = Hole.near(f"{name}_vector", widths, width, "vector")
    at_once = tuple(n for n in EACH if prod(sizes.values()) >= n * BLOCKS * USUAL_THREADS * max(1, target.cores))
    if target.kind != "cuda" or len(at_once) < 2 or width > 1:
        return ElementPlan(name, tuple(sizes), threads, vector)
    return ElementPlan(name, tuple(sizes), threads, vector, Hole.near(f"{name}_each", at_once, at_once[-1], "unroll"))


def _write(draft: Draft, plan: ElementPlan) -> None:
    """Neighbouring elements to neighbouring threads, a few to each: what they move then goes in vectors."""
    name = plan.name
    draft.add(plan.threads, plan.vector)
    each = [plan.each] if plan.each is not None else []
    draft.add(*each)
    draft.limits += [_one_of(plan.vector, hole) for hole in each]
    parts = draft.split(name, draft.fuse(name, plan.loops), (0, *each, plan.threads, plan.vector))
    block, *apart, thread, vector = parts
    draft.order(name, (block, thread, *apart, vector))
    for loop in apart:
        draft.do(Unroll, block=name, loop=loop)
    draft.do(Bind, block=name, loop=block, thread="blockIdx.x")
    draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
    draft.do(Vectorize, block=name, loop=vector)
    draft.settled.add(name)


def _one_of(vector: Hole, each: Hole) -> Limit:
    """Vectors, or elements apart: where vectors are loaded with gaps, lanes are as far from each other.

    Of transposed convolutions whose phases are put side by side so (an H200), seven of nine with both were slower than
    with vectors alone, 1.2 to 1.6 times as long; three with elements apart alone took 1 / 1.07 to 1 / 1.35.
    """

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray((c[vector.name] == 1) | (c[each.name] == 1))

    return limit
