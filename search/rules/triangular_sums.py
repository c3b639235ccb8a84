"""Sums of all elements up to each along a short axis, on a CPU: every term written out, so that none is asked about.

Such as the parts of a cumulative sum. Where terms are in a loop, each asks for its lanes, and those that are off are
added all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.attributes import Axis
from ...dialects.target import Target
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, anchors_in
from ._choices import up_to
from ._lanes import deal, lane_choices, lanes_of, threads_pay

MOST_TERMS = 32
"""Terms that are written out, at most, each for as many results: so many sums are kept in the registers of AVX-512."""
SIDE_BY_SIDE = (1, 2, 4, 8)
"""Rows, or vectors, that are written out beside each other."""
USUAL_ROWS, USUAL_VECTORS = 4, 2
"""The same without a search. With lanes along the sums 129x80x32 takes 73 us in rows of 4, 76, 91 and 94 of 2, 8 and
10, 288 with terms in a loop; with lanes beside them 64x20x500 takes 48 and 49 us in vectors of 2 and 1, 240 with terms
in a loop (one core of a Zen 5)."""


class TriangularSums(SketchRule):
    """Results are sums up to their place along an axis of theirs, or from it on: a condition says of which terms."""

    order: ClassVar[int] = 290

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for anchor in anchors_in(draft.module):
            plan = None if anchor.block in draft.settled else _plan(anchor, target)
            if plan is not None:
                draft = draft.with_steps(partial(_write, plan=plan)) or draft
        return [draft]


@dataclass(frozen=True)
class TrianglePlan:
    """Lanes along the last axes of the results; the axis of the sums, which may be it, and the terms are written out.

    Axes of the results behind that of the sums are `lane_axes`, which become one. `beside` are rows around the lanes
    where these are along the sums, else vectors, so many of them side by side.
    """

    block: str
    output: str
    epilogue: str | None
    outer: tuple[str, ...]
    along: str
    lane_axes: tuple[str, ...]
    terms: str
    lanes: int
    beside: Hole
    is_parallel: bool


def _plan(anchor: Anchor, target: Target) -> TrianglePlan | None:
    """Plan the sums of an anchor; None where no condition says of a short axis which of its terms are added."""
    if len(anchor.operands) != 1 or len(anchor.reduce) != 1 or anchor.pads:
        return None
    (terms,), along = anchor.reduce, _axis_of_sums(anchor)
    if along is None or max(terms.extent, along.extent) > MOST_TERMS:
        return None
    place = anchor.spatial.index(along)
    behind = anchor.spatial[place + 1 :] or (along,)
    outer = anchor.spatial[:place]
    width = prod(axis.extent for axis in behind)
    lanes = lane_choices(width, lanes_of(anchor, target))[1]
    is_along = behind == (along,)
    if width < lanes // 2 or (is_along and not outer):
        return None
    rows = prod(axis.extent for axis in outer) if is_along else -(-width // lanes)
    usual = USUAL_ROWS if is_along else USUAL_VECTORS
    beside = Hole.near(f"{anchor.block}_beside", up_to(SIDE_BY_SIDE, rows), usual, "unroll")
    work = prod(axis.extent for axis in (*anchor.spatial, terms))
    return TrianglePlan(
        anchor.block,
        anchor.output,
        anchor.epilogue,
        tuple(axis.name for axis in outer),
        along.name,
        tuple(axis.name for axis in behind),
        terms.name,
        lanes,
        beside,
        threads_pay(target, work, lanes),
    )


def _axis_of_sums(anchor: Anchor) -> Axis | None:
    """The axis along which terms up to a result's own place are added, or those from it on."""
    (operand,), (terms,) = anchor.operands, anchor.reduce
    for condition in operand.load.conditions:
        for axis in anchor.spatial:
            both = (terms.name, axis.name)
            moved = set(condition.axes()) == {*both} and all(map(condition.is_linear_in, both))
            if moved and prod(map(condition.coefficient, both)) == -1:
                return axis
    return None


def _write(draft: Draft, plan: TrianglePlan) -> None:
    """`i, s, j, k` -> `i and tiles of j as one, k, s, j`, the last three written out, sums stored by each tile."""
    block = plan.block
    draft.add(plan.beside)
    lane = draft.fuse(block, plan.lane_axes)
    if plan.along == lane:
        around, *tile = draft.split(block, draft.fuse(block, plan.outer), (0, plan.beside))
        tile += draft.split(block, lane, (0, plan.lanes))
        tasks = [around]
    else:
        around, *vectors = draft.split(block, lane, (0, plan.beside, plan.lanes))
        tile, tasks = [plan.along, *vectors], [*plan.outer, around]
    *written, lanes = tile
    order = [*tasks, plan.terms, *tile]
    draft.order(block, [*[n for n in draft.loops(block) if n not in order], *order])
    task = draft.fuse(block, tasks)
    draft.do(Vectorize, block=block, loop=lanes)
    for loop in (plan.terms, *written):
        draft.do(Unroll, block=block, loop=loop)
    out = plan.epilogue or f"{plan.output}_tile"
    if plan.epilogue is None:
        draft.do(CacheWrite, block=block, buffer=plan.output, scope="local", label=out)
    else:
        draft.do(SetScope, block=block, scope="local")
    draft.do(ReverseComputeAt, block=out, loop=task)
    if len(plan.lane_axes) > 1:
        names = [e.as_axis() for e in draft.block(block).write_indices[0]]
        kept = [n for n in names if n is not None and n not in plan.lane_axes]
        buffer = out if plan.epilogue is None else plan.output
        draft.do(TransformLayout, block=block, buffer=buffer, layout=(*kept, "*".join(plan.lane_axes)))
    draft.do(Vectorize, block=out, loop=lanes)
    for loop in written:
        draft.do(Unroll, block=out, loop=loop)
    if plan.is_parallel:
        deal(draft, block, [task])
    draft.settled |= {block, out}
    draft.names.append("triangle")
