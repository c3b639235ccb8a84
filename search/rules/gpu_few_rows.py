"""Products of few rows on a GPU, with an operand that is contiguous along the terms: dot products of warps.

Such are dense layers of one sample or token with a weight (out, in). Constant filters that lie otherwise, as those of
images of one pixel with channels last, are packed so ahead, for up to four rows. Each element of the weight is used for
as many products as there are rows, so that its way from memory is what takes the time: threads read it once, in
vectors, neighbours of neighbours, and nothing goes through shared memory but the sums of several warps. Sums over the
rows alone that are taken with the products, as a norm's are, each block computes beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialects.element import element_bytes
from ...dialects.loop import BlockOp, element_of_buffer
from ...dialects.target import WARP, WIDEST_ACCESS_BYTES, Target
from ...passes.analysis.access import consumers, is_argument, writers
from ...passes.analysis.nest import buffer_name
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.gpu_dot_model import GpuDotModel
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand, anchor_of, anchors_in, find_anchor
from ._ahead import dimension_names, may_be_packed_ahead
from ._best_defaults import with_best_defaults
from .gpu_tiling import joined_reductions

MOST_ROWS = 16
"""Rows that one column is multiplied with, at most: twice as many float32 operations as an H200 does in the time that
it reads an element (67 TFLOP/s, 4.8 TB/s)."""
FEW_ROWS = 4
"""Rows up to which nothing else is tried: tiles in shared memory read no element of the weight less, and copy each. A
choice: of more rows tiles share the columns."""
LEAST_BESIDE = 4096
"""Results from which on a product is computed so with others for the same elements; fewer are left to the rules of
rows, as the gates of a recurrent cell are. A choice: 8 MB of halves of 1024 terms, which take memory longer
than a launch takes."""
LEAST_PACKED = 256
"""Terms, at least, of filters that are packed along them ahead: two vectors of float32 for each thread of a warp. With
144 and 240 terms of one pixel dot products take 1.6 and 1.7 us on an H200, columns of filters as they lie 1.5; with
480, 672 and 1152 1.7, 1.7 and 2.2, and 1.8, 2.1 and 2.2."""
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
        drafts, left = [draft], joined_reductions(draft)
        for anchor in anchors_in(draft.module):
            taken = any(anchor.block in one.settled for one in drafts)
            others = anchor.block in left and _is_for_rows(draft, anchor)
            if others or taken or (wide := _wide_operand(anchor)) is None:
                continue
            made = [grown for one in drafts if (grown := _written(one, anchor.block, target)) is not None]
            alone = made and anchor.kept_results(wide) <= FEW_ROWS
            drafts = made if alone else [*made, *drafts]
        return drafts


def _is_for_rows(draft: Draft, anchor: Anchor) -> bool:
    """True for few results of several reductions that the rules of rows compute in one kernel: of the same elements."""
    return prod(a.extent for a in anchor.spatial) < LEAST_BESIDE and not _sums_beside(draft, anchor).rows


@dataclass(frozen=True)
class WarpDotPlan:
    """Dot products along `terms`, one axis, of all `rows` with a few of the axis `column`, by `threads`.

    `outer` axes are blocks. `operands` are the buffers read, with the dimensions of one element behind the terms; each
    thread has `steps` vectors of `vector` elements of each under way. The block that takes the results also takes those
    of the reductions `beside`, as rows' sums of squares are: each block computes them itself.
    """

    block: str
    epilogue: str | None
    rows: tuple[str, ...]
    column: str
    terms: str
    outer: tuple[str, ...]
    operands: Mapping[str, int]
    beside: tuple[str, ...]
    vector: int
    threads: Hole
    columns: Hole
    steps: Hole
    model: GpuDotModel


def _wide_operand(anchor: Anchor) -> Operand | None:
    """The operand that moves along more results than the other does; None where the structure is not for the anchor."""
    wide = anchor.wide_operand(_lies_along)
    if wide is None or anchor.reduce[0].extent < WARP * _vector(anchor) or anchor.kept_results(wide) > MOST_ROWS:
        return None
    is_left = anchor.kept_results(wide) > FEW_ROWS or anchor.reduce[0].extent < LEAST_PACKED
    if is_left and _packed_ahead(anchor):
        return None
    if len({o.name for o in anchor.operands}) < 2 or any(o.load.conditions for o in anchor.operands):
        return None
    return wide


def _lies_along(operand: Operand, axis: str) -> bool:
    """True for an operand that is contiguous along an axis, or may be laid out so ahead."""
    return operand.is_next_along(axis) or may_be_packed_ahead(operand, (axis,))


def _packed_ahead(anchor: Anchor) -> list[Operand]:
    """The constant operands that are laid out along the terms ahead."""
    terms = anchor.reduce[0].name
    return [operand for operand in anchor.operands if not operand.is_next_along(terms)]


def _with_packed(draft: Draft, anchor: Anchor) -> Anchor:
    """The anchor with these laid out so."""
    terms = anchor.reduce[0].name
    layouts = [(o.name, (*(n for n in dimension_names(o) if n != terms), terms)) for o in _packed_ahead(anchor)]
    for buffer, layout in layouts:  # each step replaces the buffer that an operand of the anchor is
        draft.do(TransformLayout, block=anchor.block, buffer=buffer, layout=layout)
    return anchor_of(draft.module, anchor.block) if layouts else anchor


def _dimension_of(operand: Operand, axis: str) -> int:
    return next(n for n, index in enumerate(operand.indices) if axis in index.axes())


def _bytes(anchor: Anchor) -> int:
    return max(element_bytes(element_of_buffer(o.buffer)) for o in anchor.operands)


def _vector(anchor: Anchor) -> int:
    """Elements that a thread reads at once: rows of both operands are whole vectors."""
    widest = WIDEST_ACCESS_BYTES // _bytes(anchor)
    return next(n for n in (widest, widest // 2, widest // 4, 1) if n and anchor.reduce[0].extent % n == 0)


@dataclass(frozen=True)
class Beside:
    """Reductions that each block computes beside dot products: of their rows alone, and others of the same elements."""

    rows: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()


NONE_BESIDE = Beside()


def _sums_beside(draft: Draft, anchor: Anchor) -> Beside:
    """Reductions along contiguous terms of arguments, whose results the epilogue takes with the anchor's, and it alone.

    They have no more than `FEW_ROWS` rows of results, for each row one or as many as the anchor.
    """
    if anchor.epilogue is None or prod(a.extent for a in anchor.spatial[:-1]) > FEW_ROWS:
        return NONE_BESIDE
    reader, found = draft.block(anchor.epilogue), dict[str, bool]()
    for load in reader.loads:
        for writer in writers(load.buffer):
            if writer.block_name != anchor.block and _is_sum_beside(draft, writer, anchor):
                found[writer.block_name] = any(a.extent > MOST_ROWS for a in writer.axes if not a.reduce)
    return Beside(tuple(n for n, wide in found.items() if not wide), tuple(n for n, wide in found.items() if wide))


def _is_sum_beside(draft: Draft, block: BlockOp, anchor: Anchor) -> bool:
    reduce = [a for a in block.axes if a.reduce]
    if len(reduce) != 1 or block.combiner.data == "custom" or len(consumers(block)) != 1:
        return False
    extents = tuple(a.extent for a in block.axes if not a.reduce and a.extent > 1)
    alike = tuple(a.extent for a in anchor.spatial)
    if block.block_name in draft.settled or extents not in (alike, alike[:-1]):
        return False
    rows = {a.name for a in block.axes if not a.reduce}
    return all(
        is_argument(load.buffer)
        and not load.conditions
        and not load.positions
        and load.indices.data[-1].as_axis() == reduce[0].name
        and all(e.is_constant or e.as_axis() in rows for e in load.indices.data[:-1])
        for load in block.loads
    )


def plan_warp_dots(anchor: Anchor, target: Target, beside: Beside = NONE_BESIDE) -> WarpDotPlan | None:
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
        threads=holes[0].name,
        tile=holes[1].name,
        steps=holes[2].name,
        beside=len(beside.rows),
        alike=len(beside.alike),
    )
    threads, columns, steps = with_best_defaults(holes, model.seconds, model.limit)
    behind = {o.name: len(o.indices) - 1 - _dimension_of(o, terms.name) for o in anchor.operands}
    around = tuple(a.name for a in outer)
    return WarpDotPlan(
        block=block,
        epilogue=anchor.epilogue,
        rows=rows,
        column=column.name,
        terms=terms.name,
        outer=around,
        operands=behind,
        beside=(*beside.rows, *beside.alike),
        vector=vector,
        threads=threads,
        columns=columns,
        steps=steps,
        model=model,
    )


def _written(draft: Draft, block: str, target: Target) -> Draft | None:
    """A copy of the draft with an anchor as dot products; None where a primitive refuses a step of it."""
    anchor = find_anchor(draft.module, block)
    if anchor is None or _wide_operand(anchor) is None:
        return None
    return draft.with_legal_steps(lambda grown: _write(grown, anchor, target), by_estimate=True)


def _write(draft: Draft, anchor: Anchor, target: Target) -> None:
    """Apply all steps: partial sums of threads, what they read, what they come to, then what takes these."""
    anchor = _with_packed(draft, anchor)
    plan = plan_warp_dots(anchor, target, _sums_beside(draft, anchor))
    assert plan is not None, "packing does not change what an anchor is"
    block = plan.block
    draft.add(plan.threads, plan.columns, plan.steps)
    steps, side, lane, vector = _split_terms(draft, plan, block, plan.terms, plan.steps)
    terms = (lane, steps, side, vector)
    draft.order(block, [lane, *[n for n in draft.loops(block) if n not in terms], *terms[1:]])
    partial = draft.partial(block, lane, 0)
    copies = {_copy(draft, partial, buffer): behind for buffer, behind in plan.operands.items()}
    task, column = draft.split(block, plan.column, (0, plan.columns))
    around, inside = [*plan.outer, task], [*plan.rows, column]
    others = [n for n in draft.loops(block) if n not in (*around, *inside, lane)]
    draft.order(block, [*others, *around, *inside, lane])
    task = draft.fuse(block, [*others, *around])
    draft.do(Bind, block=block, loop=task, thread="blockIdx.x")
    if plan.epilogue is not None:
        _take(draft, plan, plan.epilogue, task)
    _sum_up(draft, partial, task, terms, copies)
    _unroll(draft, block, inside)
    draft.do(Bind, block=block, loop=lane, thread="threadIdx.x")
    for name in plan.beside:
        _sum_beside(draft, plan, name, task)
    draft.settled |= {block, partial, *copies}
    draft.names.append(f"{block}_dots")
    draft.models.append(plan.model)
    draft.sure += 1  # memory bounds them, as it does the others: what tells them apart is small, and estimated
    draft.limits.append(plan.model.limit)


def _take(draft: Draft, plan: WarpDotPlan, epilogue: str, task: str) -> None:
    """Have results taken: of several each by a thread, by way of shared memory, else by one thread of the first.

    What is computed beside them lies in registers of all threads, and is taken there.
    """
    spread = plan.model.rows > 1 and not plan.beside
    draft.do(SetScope, block=plan.block, scope="shared" if spread else "local")
    draft.do(ReverseComputeAt, block=epilogue, loop=task)
    results = draft.loops(epilogue, task)
    if spread:
        _, thread = draft.split(epilogue, draft.fuse(epilogue, results), (0, plan.threads))
        draft.do(Bind, block=epilogue, loop=thread, thread="threadIdx.x")
    else:
        _unroll(draft, epilogue, results)
    draft.settled.add(epilogue)


def _sum_beside(draft: Draft, plan: WarpDotPlan, name: str, task: str) -> None:
    """Have the threads of each block of the dot products compute another reduction, too, which they join alike."""
    reduce = {a.name for a in draft.block(name).axes if a.reduce}
    (terms,) = [n for n in draft.loops(name) if n in reduce]
    rows = [n for n in draft.loops(name) if n != terms]
    steps, side, lane, vector = _split_terms(draft, plan, name, terms, 1)
    draft.order(name, [lane, *rows, steps, side, vector])
    partial = draft.partial(name, lane, 0)
    buffers = {buffer_name(load.buffer): None for load in draft.block(partial).loads}
    copies = {_copy(draft, partial, buffer): 0 for buffer in buffers}
    draft.order(name, [*rows, lane])
    draft.do(ComputeAt, block=name, loop=task, unit_loops=True)
    draft.do(SetScope, block=name, scope="local")
    _sum_up(draft, partial, task, (lane, steps, side, vector), copies)
    _unroll(draft, name, [n for n in draft.loops(name, task) if n != lane])
    draft.do(Bind, block=name, loop=lane, thread="threadIdx.x")
    draft.settled |= {name, *copies}


def _split_terms(draft: Draft, plan: WarpDotPlan, block: str, terms: str, under_way: Hole | int) -> list[str]:
    """Split terms to steps of vectors `under_way` of all threads: whole vectors first, of which none is cut.

    Predicates are then asked of vectors: of eight elements they are asked one by one else, where threads have no term
    of the last step.
    """
    vectors, vector = draft.split(block, terms, (0, plan.vector))
    return [*draft.split(block, vectors, (0, under_way, plan.threads)), vector]


def _copy(draft: Draft, partial: str, buffer: str) -> str:
    """A copy of a buffer for the registers of a thread; its block."""
    label = f"{partial}_{buffer}"
    draft.do(CacheRead, block=partial, buffer=buffer, scope="local", label=label)
    return label


def _sum_up(draft: Draft, partial: str, task: str, terms: tuple[str, ...], copies: Mapping[str, int]) -> None:
    """The sums of each thread, of what it reads in vectors; dimensions of one element come behind those of copies."""
    lane, steps, side, vector = terms
    draft.do(ComputeAt, block=partial, loop=task, unit_loops=True)
    results = [n for n in draft.loops(partial, task) if n not in terms]
    draft.order(partial, [lane, steps, side, *results, vector])
    draft.do(Bind, block=partial, loop=lane, thread="threadIdx.x")
    draft.do(SetScope, block=partial, scope="local")
    for label, behind in copies.items():
        draft.do(ComputeAt, block=label, loop=side, unit_loops=True)
        rows = draft.loops(label, side)
        last = rows.pop(-1 - behind)
        draft.order(label, [*rows, last])
        _unroll(draft, label, rows)
        draft.do(Vectorize, block=label, loop=last)
    _unroll(draft, partial, [side, *results, vector])


def _unroll(draft: Draft, block: str, loops: list[str]) -> None:
    for loop in loops:
        draft.do(Unroll, block=block, loop=loop)
