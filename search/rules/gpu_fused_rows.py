"""Chains of reductions on a GPU that go over several axes, over inner ones, or over few elements: one kernel for each.

What goes along the last axis alone, in rows of some length, is left to `gpu_rows`.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from ...dialects.target import Target
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.gpu_chains import Shape, chains_of
from ._gpu_joined_rows import plan_joined_rows, write_joined_rows
from ._gpu_tiled_rows import SHORT, plan_tiled_rows, write_tiled_rows

LONG = 64
"""Terms from which on several threads for a result pay, whatever their number. A choice: two for each thread of a warp,
as `gpu_rows.SHORT_ROW`."""
THREADS_PER_CORE = 512
"""Results for each multiprocessor that keep it busy with a thread for each. A choice: a quarter of the 2048 it can
hold."""
MOST_ALONE = 1 << 18
"""Elements that one block of threads takes at most where there is a single row. A choice: 256 for each of 1024 threads,
15 us of a multiprocessor that gets `FILL_BYTES_PER_CYCLE_SM`, beyond which a second launch costs less."""
MOST_WITHIN = 4
"""Elements of a row of the last block for each term of its reductions, at most. A choice: with more, writing them is
what takes long, and wants all threads."""
MOST_DRAFTS = 4
"""Ways to go on that the rule makes of one draft, at most. A choice: a search divides its trials among sketches."""


class GpuFusedRows(SketchRule):
    """Chains of reductions over several axes, over inner axes, or over short rows."""

    order: ClassVar[int] = 450
    of_unsettled: ClassVar[bool] = True

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for chain in chains_of(draft):
            shape = Shape.of(draft, chain)
            if not _worth(shape, target):
                continue
            made = [grown for one in drafts if (grown := one.with_steps(partial(_write, shape=shape, target=target)))]
            drafts = [*made, *drafts] if shape.is_plain and len(drafts) < MOST_DRAFTS else made or drafts
        return drafts


def _worth(shape: Shape, target: Target) -> bool:
    """True where there is something to gain over what later rules make of a chain."""
    told = any(not a.reduce for a in shape.last.axes)  # rows, if of one element: without, there is no loop for blocks
    if shape.along is None or shape.terms < 2 or not told or shape.within > MOST_WITHIN * shape.terms:
        return False
    few = shape.rows < THREADS_PER_CORE * max(1, target.cores)
    if shape.is_plain:
        joined = target.kind == "cuda" and shape.named  # by parts of a warp each (`gpu_rows`)
        return not joined and shape.terms < SHORT and shape.rows >= SHORT * max(1, target.cores)
    if not shape.is_single:
        return shape.rows > 1 or shape.terms <= MOST_ALONE
    if shape.across:
        return few and shape.terms >= SHORT
    if not shape.named:
        return shape.terms >= LONG
    alone = shape.chain.last in shape.chain.reductions
    axes = sum(a.reduce and a.extent > 1 for a in shape.deepest.axes)
    return (not alone or axes > 1) and (shape.terms >= LONG or (few and shape.terms >= SHORT) or not alone)


def _write(draft: Draft, shape: Shape, target: Target) -> None:
    """Apply all steps: by threads that join along a row, or by tiles."""
    if shape.named and not shape.across and shape.together >= SHORT:
        write_joined_rows(draft, plan_joined_rows(shape, target))
    else:
        write_tiled_rows(draft, plan_tiled_rows(shape, target))
    draft.names.append(f"{shape.chain.last}_rows")
