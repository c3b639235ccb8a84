"""Products of few rows with an operand that is contiguous along the terms: dot products in lanes, nothing packed.

Such are a dense layer of one sample with a weight (out, in) that is no constant, or the scores of one new token.
Packing reads and writes the operand once before it is read, which only many rows pay for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialects.target import Target
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.dot_model import DotModel
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand, anchors_in, find_anchor
from ._ahead import may_be_packed_ahead
from ._best_defaults import with_best_defaults
from ._choices import up_to
from ._lanes import is_costly, lanes_of, threads_pay
from ._row_lanes import rows_as_lanes

MOST_ROWS = 32
"""Rows that one column is multiplied with, at most; more are left to tiles of packed panels alone, which reuse more.

One core of an AMD EPYC (Zen 3), other work beside, untuned, packed and as dot products, and PyTorch's oneDNN: 1 x 4096
x 4096 154, 2.6 and 2.8 ms; 16 x 2048 x 1000 43.6, 1.1 and 1.4 ms (panels gathered; in lines 2.8 ms); 8 x 256 x 768 155,
78 and 90 us; scores of one token, 12 heads of 512 x 64, 233, 72 and 110 us."""
LEAST_TERMS = 4
"""Vectors that the terms fill, at least: joining the lanes of a sum takes about as long as two vectors of terms."""
ROWS = (1, 2, 3, 4, 5, 6, 8)
"""Rows of a register tile."""
COLUMNS = (1, 2, 3, 4, 6, 8)
"""Columns of a register tile."""
VECTORS = (1, 2, 4)
"""Vectors of terms side by side."""


class FewRows(SketchRule):
    """On CPUs, beside tiles of packed panels: the estimates say which is tried first."""

    order: ClassVar[int] = 250

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            if anchor.block not in draft.settled and _wide_operand(anchor, target) is not None:
                drafts += [made for one in drafts if (made := _written(one, anchor.block, target)) is not None]
        return drafts


@dataclass(frozen=True)
class DotPlan:
    """Dot products along `terms`, one axis: `rows` times `columns` of them side by side, each in `width` lanes.

    The axis `row`, "" where there is one row, is one that the wide operand does not move along, `column` one that it
    alone moves along; `outer` axes are tasks.
    """

    block: str
    epilogue: str | None
    row: str
    column: str
    terms: str
    outer: tuple[str, ...]
    rows: Hole
    columns: Hole
    width: Hole
    model: DotModel


def _wide_operand(anchor: Anchor, target: Target) -> Operand | None:
    """The operand that moves along more results than the others do; None where the structure is not for the anchor."""
    wide = anchor.wide_operand(Operand.is_next_along)
    lanes = lanes_of(anchor, target)
    if wide is None or anchor.reduce[0].extent < LEAST_TERMS * lanes or anchor.kept_results(wide) > MOST_ROWS:
        return None
    if may_be_packed_ahead(wide, (anchor.spatial[-1].name,)) or rows_as_lanes(anchor, target) is not None:
        return None
    return wide


def _plan(anchor: Anchor, wide: Operand, target: Target) -> DotPlan:
    """Choose the axes of the tile, and its sizes without a search by the model."""
    block, (terms,) = anchor.block, anchor.reduce
    lanes = max(2, lanes_of(anchor, target))
    across = [a for a in anchor.spatial if a.name not in wide.axes]
    row, column = max(across, key=lambda a: a.extent, default=None), anchor.moved_alone(wide)[-1]
    row_extent = row.extent if row else 1
    outer = [a for a in anchor.spatial if a not in (row, column)]
    rows = Hole.near(f"{block}_rows", up_to(ROWS, row_extent), 1, "unroll")
    columns = Hole.near(f"{block}_columns", up_to(COLUMNS, column.extent), 1, "unroll")
    width = Hole.near(f"{block}_width", tuple(lanes * n for n in VECTORS), lanes, "vector")
    model = DotModel(
        target,
        prod(a.extent for a in outer),
        row_extent,
        column.extent,
        terms.extent,
        lanes,
        rows.name,
        columns.name,
        width.name,
    )
    rows, columns, width = with_best_defaults(
        (rows, columns, width), model.seconds, model.limit_registers, model.limit_waste
    )
    names = tuple(a.name for a in outer)
    own = row.name if row else ""
    return DotPlan(block, anchor.epilogue, own, column.name, terms.name, names, rows, columns, width, model)


def _written(draft: Draft, block: str, target: Target) -> Draft | None:
    """A copy of the draft with an anchor as dot products; None where a primitive refuses a step of it."""
    anchor = find_anchor(draft.module, block)
    wide = _wide_operand(anchor, target) if anchor else None
    if anchor is None or wide is None:
        return None
    plan = _plan(anchor, wide, target)
    return draft.with_steps(lambda grown: _write(grown, plan, target))


def _write(draft: Draft, plan: DotPlan, target: Target) -> None:
    """Apply all steps: a tile's partial sums in lanes, then their sums, then what takes these.

    Results of a tile are no vector, so that what takes long of each, as gelu does, is left to lanes behind all tiles:
    there are few.
    """
    block = plan.block
    draft.add(plan.rows, plan.columns, plan.width)
    task, column = draft.split(block, plan.column, (0, plan.columns))
    tile = [column]
    around = [*plan.outer, task]
    inside = task
    if plan.row:
        inside, row = draft.split(block, plan.row, (0, plan.rows))
        tile.insert(0, row)
        around.append(inside)
    steps, lane = draft.split(block, plan.terms, (0, plan.width))
    order = [*around, steps, *tile, lane]
    draft.order(block, [*[n for n in draft.loops(block) if n not in order], *order])  # those of extent 1 are outermost
    partial = draft.partial(block, lane)
    for name in (partial, block):
        draft.do(Vectorize, block=name, loop=lane)
        for loop in tile:
            draft.do(Unroll, block=name, loop=loop)
    draft.do(SetScope, block=partial, scope="local")
    if plan.epilogue is not None and not is_costly(draft.block(plan.epilogue)):
        draft.do(SetScope, block=block, scope="local")
        draft.do(ReverseComputeAt, block=plan.epilogue, loop=inside)
        draft.settled.add(plan.epilogue)
    model = plan.model
    if threads_pay(target, model.outer * model.row_extent * model.column_extent * model.terms, model.lanes):
        draft.do(Parallel, block=block, loop=draft.fuse(block, [*plan.outer, task]))
    draft.settled.add(block)
    draft.names.append("dots")
    draft.models.append(plan.model)
    draft.limits += [plan.model.limit_registers, plan.model.limit_waste]
