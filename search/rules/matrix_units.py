"""Products on the matrix units of a CPU: register tiles of instructions, the operand of columns packed for them."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.loop import buffer_shape
from ...dialects.target import Target
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.pad import Pad
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.tensorize import Tensorize
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, anchor_of, anchors_in, find_anchor
from ._ahead import dimension_names, may_be_packed_ahead
from ._unit_plan import Fit, UnitPlan, UnitProduct, best_fits, line_read, plan_product, unit_product, window_pad
from .injective import spread


class MatrixUnits(SketchRule):
    """On CPUs, beside tiles of plain multiply-adds: the estimates say which is tried first.

    Convolutions with channels last are products, too: of channels, summed over the window, and pixels of a line are
    rows. What they read is padded before, by a block of its own, as instructions have no predicates. Intel's tiles are
    cut to what divides the extents; where that is little, and for other instructions, extents are padded: with zeros
    in a copy of what is read, and results that nobody takes. What a window reads is not copied, as the copy would be
    larger: the block that pads it pads its lines and channels further.
    """

    order: ClassVar[int] = 275

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            if anchor.block not in draft.settled:
                fits = best_fits(anchor, target)
                drafts += [made for one in drafts for fit in fits if (made := _written(one, anchor, fit, target))]
        return drafts


def _written(draft: Draft, anchor: Anchor, fit: Fit, target: Target) -> Draft | None:
    """A copy of the draft with an anchor on a unit; None where a primitive refuses a step of it."""
    fresh = find_anchor(draft.module, anchor.block)
    if fresh is None or fresh.block in draft.settled:
        return None
    return draft.with_legal_steps(lambda grown: _write(grown, fresh, fit, target))


def _write(draft: Draft, anchor: Anchor, fit: Fit, target: Target) -> None:
    """Apply all steps: operands laid out and padded, tiles, then what takes the sums."""
    parts = unit_product(anchor, fit.intrinsic, fit.k_axes)
    assert parts is not None
    padded = fit.padded(parts)
    out = _hold_sums(draft, anchor, fit, bool(padded))
    inner = parts.k_names[-1]
    is_ahead = may_be_packed_ahead(parts.b, (parts.column.name, *parts.k_names))
    if is_ahead:
        rest = [name for name in dimension_names(parts.b) if name not in (parts.column.name, inner)]
        draft.do(TransformLayout, block=anchor.block, buffer=parts.b.name, layout=_layout(parts, fit, rest))
    anchor = _pad(draft, anchor, fit, parts, target)
    parts = parts.renewed(anchor)
    plan = plan_product(anchor, fit, parts, is_ahead, target)
    draft.add(*plan.holes)
    draft.limits += [plan.model.limit_registers, plan.model.limit_extents]
    panel = "" if is_ahead else _panel(draft, plan, fit)
    task, tile = _tile(draft, plan)
    if out:
        _take_sums(draft, out, tile)
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


def _hold_sums(draft: Draft, anchor: Anchor, fit: Fit, padded: bool) -> str:
    """Let sums wait in a local buffer for the block that takes them; none where tiles are stored where they belong."""
    if anchor.epilogue is not None:
        draft.do(SetScope, block=anchor.block, scope="local")
        return anchor.epilogue
    if fit.intrinsic.tiles and not padded:
        return ""
    out = f"{anchor.output}_tile"
    draft.do(CacheWrite, block=anchor.block, buffer=anchor.output, scope="local", label=out)
    return out


def _pad(draft: Draft, anchor: Anchor, fit: Fit, parts: UnitProduct, target: Target) -> Anchor:
    """Extend axes to whole instructions, in copies of operands that are not packed; the anchor after that."""
    padded = fit.padded(parts)
    if not padded:
        return anchor
    _pad_window(draft, anchor, fit, parts)
    for name, extent in padded.items():
        draft.do(Pad, block=anchor.block, loop=name, factor=extent)
    if fit.copies_a(parts):
        label = f"{parts.a.name}_padded"
        row, k, m, depth = parts.row, parts.k_names[-1], fit.intrinsic.m, fit.intrinsic.k
        rest = tuple(name for name in dimension_names(parts.a) if name in parts.a.axes and name != k)
        layout = (*rest, k)
        if row is not None:
            rest = tuple(name for name in rest if name != row.name)
            layout = (*rest, f"{row.name}/{m}", f"{k}/{depth}", f"{row.name}%{m}", f"{k}%{depth}")
        draft.do(CacheRead, block=anchor.block, buffer=parts.a.name, scope="global", layout=layout, label=label)
        spread(draft, label, target)
    return anchor_of(draft.module, anchor.block)


def _pad_window(draft: Draft, anchor: Anchor, fit: Fit, parts: UnitProduct) -> None:
    """Have the block that pads what a window reads do so as far as whole instructions read."""
    padded, around = fit.padded(parts), window_pad(anchor, parts)
    if around is None:
        return
    name, shape = around.block_name, buffer_shape(parts.a.buffer)
    loops = draft.loops(name)
    if parts.k_names[-1] in padded:
        draft.do(Pad, block=name, loop=loops[-1], factor=fit.group)
    if parts.row is not None and parts.row.name in padded:
        dimension, length = line_read(anchor, parts, padded[parts.row.name])
        if length > shape[dimension]:
            draft.do(Pad, block=name, loop=loops[dimension], factor=length)


def _layout(parts: UnitProduct, fit: Fit, rest: list[str]) -> tuple[str, ...]:
    """`b[k, j]` -> `b[j / n, k / group, j % n, k % group]`, with the tiles and groups that axes are padded to."""
    j, k, n, group = parts.column.name, parts.k_names[-1], fit.intrinsic.n, fit.group
    padded = fit.padded(parts)
    tiles, groups = (f":{padded[name] // size}" if name in padded else "" for name, size in ((j, n), (k, group)))
    return (f"{j}/{n}{tiles}", *rest, f"{k}/{group}{groups}", f"{j}%{n}", f"{k}%{group}")


def _panel(draft: Draft, plan: UnitPlan, fit: Fit) -> str:
    """Pack `b` in each run; the block that copies."""
    b = plan.parts.b
    label = f"{b.name}_panel"
    rest = [name for name in (*plan.outer, *plan.reduce, *plan.parts.k_names[:-1]) if name in b.axes]
    draft.do(
        CacheRead,
        block=plan.block,
        buffer=b.name,
        scope="global",
        layout=_layout(plan.parts, fit, rest),
        label=label,
    )
    return label


def _tile(draft: Draft, plan: UnitPlan) -> tuple[str, str]:
    """Tasks, register tiles, steps of k, instructions; the loop over tasks and the innermost over register tiles.

    Tasks go along columns first where `b` is the larger operand: each part of it is read by all rows in turn.
    """
    block, intrinsic, parts = plan.block, plan.intrinsic, plan.parts
    lines, rows, row_tiles, columns, column_tiles, steps = plan.holes
    j = draft.split(block, parts.column.name, (0, column_tiles, columns, intrinsic.n))
    k = draft.split(block, draft.fuse(block, parts.k_names), (0, steps, intrinsic.k))
    around, tiles, registers, inside = [], [j[1]], [j[2]], [j[3]]
    if parts.row is not None:
        i = draft.split(block, parts.row.name, (0, row_tiles, rows, *([intrinsic.m] if plan.has_rows else [])))
        around, tiles, registers, inside = [i[0]], [j[1], i[1]], [i[2], j[2]], [*i[3:], j[3]]
    if parts.line is not None:
        y = draft.split(block, parts.line.name, (0, lines))
        around, registers = [y[0], *around], [y[1], *registers]
    tasks = [*plan.outer, j[0], *around] if plan.model.columns_first else [*plan.outer, *around, j[0]]
    order = [*tasks, *tiles, *plan.reduce, k[0], k[1], *registers, *inside, k[2]]
    draft.order(block, [*[n for n in draft.loops(block) if n not in order], *order])
    task = draft.fuse(block, tasks)
    for name in (k[1], *registers):
        draft.do(Unroll, block=block, loop=name)
    return task, tiles[-1]


def _take_sums(draft: Draft, out: str, tile: str) -> None:
    """Sums of a register tile are taken from the local buffer at once."""
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
