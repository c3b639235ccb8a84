"""The model of a reduction tiled on a GPU, of its plan: which holes are of which axis, operand and part."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...dialects.buffers import buffer_shape
from ...dialects.element import element_bytes
from ...dialects.index import IndexExpr
from ..estimates.gpu_model import GpuModel
from ..estimates.gpu_tile import Aligned, GpuAxis, GpuOperand, GpuReduce, Span
from ..estimates.window_model import SlicedWindows
from ..sketch.hole import Hole
from ..structure.anchor import Operand
from ._gpu_tile_plan import GpuTilePlan, StagedOperand


def gpu_model(plan: GpuTilePlan, width: Hole | None) -> GpuModel:
    """Return the model of a plan's candidates; `width` is that of the vectors that parts are joined in."""
    pair = tuple((a.name, a.extent) for a in plan.variant.fused)
    division = plan.division
    divided = {each.part for each in (division, plan.parts) if each is not None}
    return (SlicedWindows if plan.variant.in_both else GpuModel)(
        target=plan.target,
        outer=prod(a.extent for a in plan.outer if a.name not in divided),
        axes=tuple(GpuAxis(t.name, t.extent, *(h.name for h in t.factors)) for t in plan.axes),
        reduce=tuple(GpuReduce(r.name, r.extent, r.step.name if r.step is not None else "") for r in plan.reduce),
        operands=tuple(_modelled(plan, staged) for staged in plan.operands),
        element_bytes=element_bytes(plan.anchor.element),
        stages=plan.stages.name,
        registers=plan.registers.name,
        unroll=plan.unroll.name,
        split=division.parts.name if division is not None else "",
        join=width.name if width is not None else "",
        divided=division.rest.name if division is not None else "",
        sliced=plan.variant.sliced,
        parts=plan.parts.parts.name if plan.parts is not None else "",
        pair=(pair[0], pair[1]) if len(pair) == 2 else None,
    )


def _modelled(plan: GpuTilePlan, staged: StagedOperand) -> GpuOperand:
    last = plan.variant.fused[-1].name if len(plan.variant.fused) == 1 else ""
    straight = last if last and staged.operand.steps_along(last) else ""
    layout = staged.copy.layout
    row = layout[-1] if layout else straight
    padded = staged.operand.name in plan.anchor.pads
    run, whole = (1, 0) if padded else _run(plan, staged.operand)
    spans = _spans(plan, staged.operand.indices)
    return GpuOperand(spans, staged.vector.name, row, bool(layout), run, whole, padded, _aligned(plan, staged))


def _aligned(plan: GpuTilePlan, staged: StagedOperand) -> Aligned | None:
    """Rows of the copy that begin anew: of all dimensions behind the one whose elements do."""
    if staged.copy.apart is None:
        return None
    axis, factor, offset, _ = staged.copy.apart
    if not staged.copy.layout:
        return Aligned(_spans(plan, staged.operand.indices[axis + 1 :]), factor, offset)
    return Aligned(tuple(Span(((name, 1),)) for name in staged.copy.layout[axis + 1 :]), factor, offset)


def _run(plan: GpuTilePlan, operand: Operand) -> tuple[int, int]:
    """Elements that lie side by side in global memory, and the last dimensions that each tile has whole."""
    kept = {r.name for r in plan.reduce if r.step is None}
    run, whole = 1, 0
    for size, index in zip(reversed(buffer_shape(operand.buffer)), reversed(operand.indices), strict=True):
        run *= size
        if size > 1 and not (len(index.terms) == 1 and index.terms[0][0] in kept):
            break
        whole += size > 1
    return run, whole


def _spans(plan: GpuTilePlan, indices: Sequence[IndexExpr]) -> tuple[Span, ...]:
    known = {t.name for t in plan.axes} | {a.name for a in (*plan.anchor.reduce, *plan.variant.fused)}
    spans = []
    for expr in indices:
        terms = [(a, abs(c)) for a, c in expr.terms if isinstance(a, str)]
        if plan.variant.sliced and plan.division is not None:  # all slices of a step lie side by side
            rest, part = plan.division.rest.name, plan.division.part
            terms = [(rest if a == part else a, c) for a, c in terms if a != rest]
        spans.append(Span(tuple((a, c) for a, c in terms if a in known)))
    return tuple(s for s in spans if s.strides)
