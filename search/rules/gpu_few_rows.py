"""Products of few rows on a GPU, with an operand that is contiguous along the terms: dot products of warps.

Such are dense layers of one sample or token with a weight (out, in). Each element of the weight is used for as many
products as there are rows, so that its way from memory is what takes the time: threads read it once, in vectors,
neighbours of neighbours, and nothing goes through shared memory but the sums of several warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialects.element import element_bytes
from ...dialects.target import WARP, Target
from ...passes.analysis.matrix_product import element_of_buffer
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.gpu_dot_model import GpuDotModel
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand, anchors_in, find_anchor
from ..structure.products import VECTOR_BYTES
from ._liked import liked_best
from .gpu_tiling import joined_reductions

MOST_ROWS = 16
"""Rows that one column is multiplied with, at most: twice as many float32 operations as an H200 does in the time that
it reads an element (67 TFLOP/s, 4.8 TB/s)."""
FEW_ROWS = 4
"""Rows up to which nothing else is tried: tiles in shared memory read no element of the weight less, and copy each. A
choice: of more rows tiles share the columns."""
THREADS = (32, 64, 128, 256)
"""Threads that join a dot product: whole warps."""
COLUMNS = (1, 2, 4, 8)
"""Columns of a block of threads."""
STEPS = (1, 2, 4)
"""Vectors of a column that a thread has under way."""


class GpuFewRows(SketchRule):
    """Dot products of few rows on CUDA devices; of more than `FEW_ROWS` beside tiles in shared memory."""

    order: ClassVar[int] = 295

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts, left = [draft], draft.settled | joined_reductions(draft)
        for anchor in anchors_in(draft.module):
            wide = None if anchor.block in left else _wide_operand(anchor)
            if wide is None:
                continue
            made = [grown for one in drafts if (grown := _written(one, anchor.block, target)) is not None]
            alone = made and anchor.kept_results(wide) <= FEW_ROWS
            drafts = made if alone else [*made, *drafts]
        return drafts


@dataclass(frozen=True)
class WarpDotPlan:
    """Dot products along `terms`, one axis, of all `rows` with a few of the axis `column`, by `threads`.

    `outer` axes are blocks. `operands` are the buffers read; each thread has `steps` vectors of `vector` elements of
    each under way.
    """

    block: str
    epilogue: str | None
    rows: tuple[str, ...]
    column: str
    terms: str
    outer: tuple[str, ...]
    operands: tuple[str, ...]
    vector: int
    threads: Hole
    columns: Hole
    steps: Hole
    model: GpuDotModel


def _wide_operand(anchor: Anchor) -> Operand | None:
    """The operand that moves along more results than the other does; None where the structure is not for the anchor."""
    wide = anchor.wide_operand()
    if wide is None or anchor.reduce[0].extent < WARP * _vector(anchor) or anchor.kept_results(wide) > MOST_ROWS:
        return None
    if len({o.name for o in anchor.operands}) < 2 or any(o.load.conditions for o in anchor.operands):
        return None
    return wide


def _bytes(anchor: Anchor) -> int:
    return max(element_bytes(element_of_buffer(o.buffer)) for o in anchor.operands)


def _vector(anchor: Anchor) -> int:
    """Elements that a thread reads at once: rows of both operands are whole vectors."""
    widest = VECTOR_BYTES // _bytes(anchor)
    return next(n for n in (widest, widest // 2, widest // 4, 1) if n and anchor.reduce[0].extent % n == 0)


def plan_warp_dots(anchor: Anchor, target: Target) -> WarpDotPlan | None:
    """Choose axes, and sizes without a search by the model; None where the structure is not for the anchor."""
    wide = _wide_operand(anchor)
    if wide is None:
        return None
    block, (terms,), column = anchor.block, anchor.reduce, anchor.moved_alone(wide)[-1]
    rows = tuple(a.name for a in anchor.spatial if a.name not in wide.axes)
    outer = [a for a in anchor.spatial if a.name not in rows and a is not column]
    vector = _vector(anchor)
    holes = (
        Hole.near(f"{block}_threads", THREADS, WARP, "threads"),
        Hole.near(f"{block}_columns", COLUMNS, 1, "unroll", column.name),
        Hole.near(f"{block}_steps", STEPS, 1, "unroll"),
    )
    model = GpuDotModel(
        target,
        prod(a.extent for a in outer),
        anchor.kept_results(wide),
        column.extent,
        terms.extent,
        vector,
        _bytes(anchor),
        *(hole.name for hole in holes),
    )
    threads, columns, steps = liked_best(holes, model.seconds, model.limit)
    names = tuple(o.name for o in anchor.operands)
    around = tuple(a.name for a in outer)
    return WarpDotPlan(
        block, anchor.epilogue, rows, column.name, terms.name, around, names, vector, threads, columns, steps, model
    )


def _written(draft: Draft, block: str, target: Target) -> Draft | None:
    """A copy of the draft with an anchor as dot products; None where a primitive refuses a step of it."""
    anchor = find_anchor(draft.module, block)
    plan = plan_warp_dots(anchor, target) if anchor is not None else None
    return None if plan is None else draft.with_steps(lambda grown: _write(grown, plan))


def _write(draft: Draft, plan: WarpDotPlan) -> None:
    """Apply all steps: partial sums of threads, what they read, what they come to, then what takes these."""
    block = plan.block
    draft.add(plan.threads, plan.columns, plan.steps)
    steps, side, lane, vector = draft.split(block, plan.terms, (0, plan.steps, plan.threads, plan.vector))
    terms = (lane, steps, side, vector)
    draft.order(block, [lane, *[n for n in draft.loops(block) if n not in terms], *terms[1:]])
    partial = draft.partial(block, lane, 0)
    copies = [_copy(draft, partial, buffer) for buffer in plan.operands]
    task, column = draft.split(block, plan.column, (0, plan.columns))
    around, inside = [*plan.outer, task], [*plan.rows, column]
    others = [n for n in draft.loops(block) if n not in (*around, *inside, lane)]
    draft.order(block, [*others, *around, *inside, lane])
    task = draft.fuse(block, [*others, *around])
    draft.do(Bind, block=block, loop=task, thread="blockIdx.x")
    if plan.epilogue is not None:
        draft.do(SetScope, block=block, scope="local")
        draft.do(ReverseComputeAt, block=plan.epilogue, loop=task)
        _unroll(draft, plan.epilogue, draft.loops(plan.epilogue, task))
        draft.settled.add(plan.epilogue)
    _sum_up(draft, partial, task, terms, copies)
    _unroll(draft, block, inside)
    draft.do(Bind, block=block, loop=lane, thread="threadIdx.x")
    draft.settled |= {block, partial, *copies}
    draft.names.append(f"{block}_dots")
    draft.models.append(plan.model)
    draft.limits.append(plan.model.limit)


def _copy(draft: Draft, partial: str, buffer: str) -> str:
    """A copy of a buffer for the registers of a thread; its block."""
    label = f"{partial}_{buffer}"
    draft.do(CacheRead, block=partial, buffer=buffer, scope="local", label=label)
    return label


def _sum_up(draft: Draft, partial: str, task: str, terms: tuple[str, ...], copies: list[str]) -> None:
    """The sums of each thread, of what it reads in vectors."""
    lane, steps, side, vector = terms
    draft.do(ComputeAt, block=partial, loop=task, unit_loops=True)
    results = [n for n in draft.loops(partial, task) if n not in terms]
    draft.order(partial, [lane, steps, side, *results, vector])
    draft.do(Bind, block=partial, loop=lane, thread="threadIdx.x")
    draft.do(SetScope, block=partial, scope="local")
    for label in copies:
        draft.do(ComputeAt, block=label, loop=side, unit_loops=True)
        *rows, last = draft.loops(label, side)
        _unroll(draft, label, rows)
        draft.do(Vectorize, block=label, loop=last)
    _unroll(draft, partial, [side, *results, vector])


def _unroll(draft: Draft, block: str, loops: list[str]) -> None:
    for loop in loops:
        draft.do(Unroll, block=block, loop=loop)
