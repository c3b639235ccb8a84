"""Products on the matrix units of a CPU: register tiles of instructions, the operand of columns packed for them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialects.attributes import Axis
from ...dialects.intrinsics import Intrinsic, intrinsics
from ...dialects.target import Target
from ...passes.analysis.matrix_product import element_of_buffer
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.tensorize import Tensorize
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.unit_model import UnitModel
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand, anchors_in, find_anchor
from ._ahead import dimension_names, may_be_packed_ahead
from ._liked import liked_best

MOST_UNITS = 2
"""Intrinsics that get a sketch each, of those that fit an anchor, by products in a cycle. A choice: a search divides
its trials among sketches, and the third best unit of current CPUs does a quarter of the best one's work."""
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
"""Instructions of a register tile along rows; images of common networks are 7 times a power of 2 wide."""
COLUMNS = (1, 2, 3, 4)
"""Instructions of a register tile along columns."""
TILES = (1, 2, 4, 8, 16, 32)
"""Register tiles of a task along each side."""
STEPS = (1, 2, 4)
"""Steps of k that are written out."""


class MatrixUnits(SketchRule):
    """On CPUs, beside tiles of plain multiply-adds: the estimates say which is tried first.

    Convolutions with channels last are products, too: of channels, summed over the window, and pixels of a line are
    rows. What they read is padded before, by a block of its own, as instructions have no predicates. Extents must be
    multiples of the instruction's, as one cannot be cut.
    """

    order: ClassVar[int] = 275

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            if anchor.block not in draft.settled:
                units = _units(anchor, target)
                drafts += [made for one in drafts for unit in units if (made := _written(one, anchor, unit, target))]
        return drafts


@dataclass(frozen=True)
class UnitProduct:
    """An anchor as a product of matrices: its operands, and the axes that are rows, columns and k; rows may be none."""

    a: Operand
    b: Operand
    row: Axis | None
    column: Axis
    k: Axis


@dataclass(frozen=True)
class UnitPlan:
    """A product in tiles, whose `holes` are instructions of a register tile along rows, register tiles of a task along
    rows, the same along columns, and steps that are written out.

    `outer` are the other spatial axes, `reduce` the other reduce axes; `group` neighbours of k lie side by side in b.
    """

    anchor: Anchor
    intrinsic: Intrinsic
    parts: UnitProduct
    outer: tuple[str, ...]
    reduce: tuple[str, ...]
    is_ahead: bool
    holes: tuple[Hole, ...]
    model: UnitModel

    @property
    def block(self) -> str:
        return self.anchor.block

    @property
    def group(self) -> int:
        return self.intrinsic.held_extents("b")[-1]


def _units(anchor: Anchor, target: Target) -> list[Intrinsic]:
    """The intrinsics that fit an anchor best, those that do most in a cycle first."""
    found = [x for x in intrinsics(target) if _as_product(anchor, x) is not None]
    return sorted(found, key=lambda x: (-x.m * x.n * x.k / x.cycles, x.name))[:MOST_UNITS]


def _as_product(anchor: Anchor, intrinsic: Intrinsic) -> UnitProduct | None:
    """The anchor as a product that instructions divide evenly; None where it is none."""
    if len(anchor.operands) != 2 or anchor.element != intrinsic.c.type:
        return None
    *others, column = anchor.spatial
    moving = [o for o in anchor.operands if column.name in o.axes]
    if len(moving) != 1 or column.extent % intrinsic.n:
        return None
    (b,) = moving
    (a,) = (o for o in anchor.operands if o is not b)
    if [element_of_buffer(o.buffer) for o in (a, b)] != [intrinsic.a.type, intrinsic.b.type]:
        return None
    inner = [x for x in anchor.reduce if x.name in b.axes and a.steps_along(x.name) and x.extent % intrinsic.k == 0]
    rows = [x for x in others if x.name not in b.axes and x.extent % intrinsic.m == 0]
    if not inner or (intrinsic.m > 1 and not rows):
        return None
    return UnitProduct(a, b, rows[-1] if rows else None, column, inner[-1])


def _plan(anchor: Anchor, intrinsic: Intrinsic, parts: UnitProduct, target: Target) -> UnitPlan:
    """Choose the axes of the tiles, and their sizes without a search by the model."""
    block, row = anchor.block, parts.row
    rows = row.extent // intrinsic.m if row else 1
    columns, k = parts.column.extent // intrinsic.n, parts.k.extent // intrinsic.k
    choices = {
        "unit_rows": _dividing(ROWS, rows),
        "row_tiles": _dividing(TILES, rows),
        "unit_columns": _dividing(COLUMNS, columns),
        "column_tiles": _dividing(TILES, columns),
        "unit_steps": _dividing(STEPS, k),
    }
    holes = [Hole.near(f"{block}_{name}", numbers, 1) for name, numbers in choices.items()]
    outer = tuple(x for x in anchor.spatial if x not in (row, parts.column))
    reduce = tuple(x for x in anchor.reduce if x is not parts.k)
    is_ahead = may_be_packed_ahead(parts.b, (parts.column.name, parts.k.name))
    extents = {x.name: x.extent for x in (*anchor.spatial, *anchor.reduce)}
    model = UnitModel(
        target,
        intrinsic,
        outer=prod(x.extent for x in outer),
        rows=rows,
        columns=columns,
        depth=k * prod(x.extent for x in reduce),
        packed=0 if is_ahead else prod(extents[n] for n in parts.b.axes),
        names=tuple(hole.name for hole in holes),
    )
    outer_names, reduce_names = tuple(x.name for x in outer), tuple(x.name for x in reduce)
    found = liked_best(holes, model.seconds, model.limit_registers, model.limit_extents)
    return UnitPlan(anchor, intrinsic, parts, outer_names, reduce_names, is_ahead, found, model)


def _dividing(choices: tuple[int, ...], extent: int) -> tuple[int, ...]:
    return tuple(n for n in choices if extent % n == 0)


def _written(draft: Draft, anchor: Anchor, intrinsic: Intrinsic, target: Target) -> Draft | None:
    """A copy of the draft with an anchor on a unit; None where a primitive refuses a step of it."""
    fresh = find_anchor(draft.module, anchor.block)
    parts = _as_product(fresh, intrinsic) if fresh and fresh.block not in draft.settled else None
    if fresh is None or parts is None:
        return None
    plan = _plan(fresh, intrinsic, parts, target)
    return draft.with_legal_steps(lambda grown: _write(grown, plan, target))


def _write(draft: Draft, plan: UnitPlan, target: Target) -> None:
    """Apply all steps: the packed operand, tiles, then what takes the sums."""
    draft.add(*plan.holes)
    draft.limits += [plan.model.limit_registers, plan.model.limit_extents]
    panel = _pack(draft, plan)
    task, tile = _tile(draft, plan)
    _take_sums(draft, plan, tile)
    draft.do(Tensorize, block=plan.block, loop=draft.loops(plan.block)[-_digits(plan)], intrinsic=plan.intrinsic.name)
    if panel:
        _copy(draft, panel, target)
    if target.cores > 1:
        draft.do(Parallel, block=plan.block, loop=task)
    draft.settled.add(plan.block)
    draft.names.append(plan.intrinsic.name.partition(".")[0])
    draft.models.append(plan.model)


def _digits(plan: UnitPlan) -> int:
    """Loops of an instruction."""
    return len(plan.intrinsic.held_extents("c")) + 1


def _pack(draft: Draft, plan: UnitPlan) -> str:
    """`b[k, j]` -> `b[j / n, k / group, j % n, k % group]`, ahead or in each run; the block that copies, or none."""
    j, k, n, group = plan.parts.column.name, plan.parts.k.name, plan.intrinsic.n, plan.group
    inner = (f"{k}/{group}", f"{j}%{n}", f"{k}%{group}")
    b = plan.parts.b
    if plan.is_ahead:
        rest = [name for name in dimension_names(b) if name not in (j, k)]
        draft.do(TransformLayout, block=plan.block, buffer=b.name, layout=(f"{j}/{n}", *rest, *inner))
        return ""
    label = f"{b.name}_panel"
    rest = [name for name in (*plan.outer, *plan.reduce) if name in b.axes]
    draft.do(
        CacheRead, block=plan.block, buffer=b.name, scope="global", layout=(f"{j}/{n}", *rest, *inner), label=label
    )
    return label


def _tile(draft: Draft, plan: UnitPlan) -> tuple[str, str]:
    """Tasks, register tiles, steps of k, instructions; the loop over tasks and the innermost over register tiles."""
    block, intrinsic, row = plan.block, plan.intrinsic, plan.parts.row
    rows, row_tiles, columns, column_tiles, steps = plan.holes
    j = draft.split(block, plan.parts.column.name, (0, column_tiles, columns, intrinsic.n))
    k = draft.split(block, plan.parts.k.name, (0, steps, intrinsic.k))
    tasks, tiles, registers, inside = [*plan.outer, j[0]], [j[1]], [j[2]], [j[3]]
    if row is not None:
        factors = (row_tiles, rows, *((intrinsic.m,) if intrinsic.m > 1 else ()))
        i = draft.split(block, row.name, (0, *factors))
        tasks, tiles, registers = [*plan.outer, i[0], j[0]], [j[1], i[1]], [i[2], j[2]]
        inside = [*i[3:], j[3]]
    order = [*tasks, *tiles, *plan.reduce, k[0], k[1], *registers, *inside, k[2]]
    draft.order(block, [*[n for n in draft.loops(block) if n not in order], *order])
    task = draft.fuse(block, tasks)
    for name in (k[1], *registers):
        draft.do(Unroll, block=block, loop=name)
    return task, tiles[-1]


def _take_sums(draft: Draft, plan: UnitPlan, tile: str) -> None:
    """Sums of a register tile, and what takes them from there; tiles of an instruction are stored where they belong."""
    out = plan.anchor.epilogue
    if out is not None:
        draft.do(SetScope, block=plan.block, scope="local")
    elif plan.intrinsic.rows == 1:
        out = f"{plan.anchor.output}_tile"
        draft.do(CacheWrite, block=plan.block, buffer=plan.anchor.output, scope="local", label=out)
    if out is not None:
        draft.do(ReverseComputeAt, block=out, loop=tile)
        draft.do(Vectorize, block=out, loop=draft.loops(out)[-1])
        draft.settled.add(out)


def _copy(draft: Draft, panel: str, target: Target) -> None:
    """Pack before all tiles, by all threads: groups of k at once, which are neighbours in the panel."""
    around = draft.loops(panel)
    draft.do(Unroll, block=panel, loop=around[-1])
    draft.settled.add(panel)
    if target.cores > 1:
        draft.do(Parallel, block=panel, loop=draft.fuse(panel, around[:2]))
