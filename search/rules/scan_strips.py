"""Cumulative sums along an axis that is not the last, on a CPU: in strips of columns that a cache holds.

A strip's rows are added up in parts of the axis, then what is before each part, then each part is scanned in registers
and stored. The second reading is of a cache, where stages one after the other would go through memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.index import axis
from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import readers, writers
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.clone import Clone
from ...passes.schedule.collapse import Collapse
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.strides import lanes_of_block, output_bytes
from ._choices import up_to
from ._lanes import deal, is_costly, parallel_elements
from .triangular_sums import MOST_TERMS

SIDE_BY_SIDE = 4
"""Vectors of a part side by side: additions of a column wait for each other. 147x1024 takes 17 us so, 26 with two
(strips of 256 columns, one core of a Zen 5; onnxruntime 17). Fewer where these divide rows that are whole vectors: of a
last part of some of four each is asked for in all parts, and 129x2208 takes 54 us, 25 in twos."""
TILES = (1, 2, 4, 8, 16)
"""Of these in a strip."""
USUAL_TILES = 4
"""The same without a search, fewer where the strip's rows would fill more than half of the second-level cache: rows of
so many lines are read ahead. 147x1024, 136x3968 and 400x500 take 16, 52 and 25 us in strips of 4, 17, 53 and 22 of 2,
31, 49 and 22 of 1; in stages one after the other 31, 83 and 30 (one core of a Zen 5)."""


class ScanStrips(SketchRule):
    """A block joins what each part of an axis comes to and what is before the part; lanes are beside the axis."""

    order: ClassVar[int] = 285

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for name in [block.block_name for block in blocks_in(draft.module)]:
            _collapse(draft, draft.block(name))
        for block in list(blocks_in(draft.module)):
            plan = None if block.block_name in draft.settled else _plan(block, target)
            if plan is not None:
                draft = draft.with_steps(partial(_write, plan=plan)) or draft
        return [draft]


def _collapse(draft: Draft, block: BlockOp) -> None:
    """Make one axis of those behind the axis of a scan, as lanes and strips run through them alike.

    129x92x24 takes 24 us so, 47 with lanes of the last axis alone (one core of a Zen 5; onnxruntime 34).
    """
    scan = _scan_of(block) if _may_join(block) else None
    if scan is None:
        return
    names = [a.name for a in block.axes]
    behind = names[names.index(scan.along) + 1 :]
    if len(behind) > 1:
        draft.tried(Collapse, block.block_name, axes=tuple(behind))


def _may_join(block: BlockOp) -> bool:
    return not block.is_reduction and len(block.outputs) == 1 and not block.conditions and len(block.axes) > 1


@dataclass(frozen=True)
class StripPlan:
    """The block that `joins`, the sums `within` parts and those `before` each, and the axis of parts of so many `rows`.

    Lanes are along the last axis. `tasks` are the axes around the strips.
    """

    joins: str
    within: str
    before: str
    totals: str
    along: str
    rows: int
    tasks: tuple[str, ...]
    last: str
    lanes: int
    vectors: int
    tiles: Hole
    is_parallel: bool


def _plan(block: BlockOp, target: Target) -> StripPlan | None:
    scan = _scan_of(block) if _may_join(block) else None
    if scan is None or is_costly(scan.within):
        return None
    *outer, last = block.axes
    lanes = lanes_of_block(block, target)
    if scan.along == last.name or last.extent < 2 * lanes:
        return None
    whole, rest = divmod(last.extent, lanes)
    vectors = min(SIDE_BY_SIDE, whole)
    if not rest:
        vectors = next((n for n in range(vectors, 1, -1) if whole % n == 0), vectors)
    tiles = last.extent // (lanes * vectors)
    rows = next(a.extent for a in outer if a.name == scan.along)
    tasks = tuple(a.name for a in outer if a.name != scan.along)
    usual = USUAL_TILES
    while usual > 1 and 2 * rows * usual * vectors * lanes * output_bytes(block) > target.l2_bytes:
        usual //= 2
    elements = prod(a.extent for a in block.axes)
    is_parallel = target.cores > 1 and elements >= parallel_elements(target)
    beside = prod(a.extent for a in outer if a.name in tasks)
    while is_parallel and usual > 1 and beside * -(-tiles // usual) < target.cores:
        usual //= 2
    name = block.block_name
    hole = Hole.near(f"{name}_tiles", up_to(TILES, tiles), usual)
    return StripPlan(
        name,
        scan.within.block_name,
        scan.before.block_name,
        f"{scan.within.block_name}_totals",
        scan.along,
        scan.rows,
        tasks,
        last.name,
        lanes,
        vectors,
        hole,
        is_parallel,
    )


@dataclass(frozen=True)
class _Scan:
    within: BlockOp
    before: BlockOp
    along: str
    rows: int


def _scan_of(block: BlockOp) -> _Scan | None:
    """The scan whose parts a block joins: of one buffer it reads row `a mod rows` of part `a floordiv rows`.

    What is before each part is of another block, which reads the same buffer, for no one else.
    """
    ranges = {a.name: (0, a.extent - 1) for a in block.axes}
    for load in block.loads:
        if load.conditions or load.positions or len(load.indices.data) != len(block.axes) + 1:
            continue
        sources = writers(load.buffer)
        if len(sources) != 1 or not sources[0].is_reduction or len(sources[0].axes) != len(block.axes) + 2:
            continue
        (within,) = sources
        terms = next(a.extent for a in within.axes if a.reduce)
        others = [r for r in readers(load.buffer) if r is not block]
        if len(others) != 1 or terms > MOST_TERMS or not others[0].is_reduction or len(others[0].outputs) != 1:
            continue
        (before,) = others
        few = all(a.extent <= MOST_TERMS for a in before.axes if a.reduce)
        if not few or readers(before.outputs[0]) != [block] or before.block_name == within.block_name:
            continue
        for place, one in enumerate(block.axes):
            names = [axis(a.name) for a in block.axes]
            read = [*names[:place], axis(one.name) // terms, axis(one.name) % terms, *names[place + 1 :]]
            if [e.simplify(ranges) for e in read] == [e.simplify(ranges) for e in load.indices.data]:
                return _Scan(within, before, one.name, terms)
    return None


def _write(draft: Draft, plan: StripPlan) -> None:
    """`parts; before; i, j { join }` -> `strips of j { totals; before; parts of i { tiles { part; join } } }`."""
    joins = plan.joins
    draft.add(plan.tiles)
    draft.do(Clone, block=plan.within, reader=plan.before, label=plan.totals)
    strip, tile, *vector = draft.split(joins, plan.last, (0, plan.tiles, plan.vectors, plan.lanes))
    part, row = draft.split(joins, plan.along, (0, plan.rows))
    draft.order(joins, [*plan.tasks, strip, part, tile, row, *vector])
    draft.do(ComputeAt, block=plan.within, loop=tile)
    draft.do(SetScope, block=plan.within, scope="local")
    kept = draft.block(plan.before).outputs[0]
    stored = f"{plan.before}_tile"
    draft.do(CacheWrite, block=plan.before, buffer=kept.name_hint, scope="local", label=stored)
    for block in (stored, plan.before, plan.totals):
        draft.do(ComputeAt, block=block, loop=strip)
    around = {*plan.tasks, strip, part, tile}
    _write_out(draft, plan, plan.within, around, plan.vectors)
    _write_lanes(draft, joins, [row, *vector])
    place, written = _write_out(draft, plan, plan.before, around, 1)
    draft.do(ReverseComputeAt, block=stored, loop=place)
    _write_lanes(draft, stored, written)
    *parts, columns, terms = [n for n in draft.loops(plan.totals) if n not in around]
    place, *vector = draft.split(plan.totals, columns, (0, plan.vectors, plan.lanes))
    draft.order(plan.totals, [*parts, place, terms, *vector])
    _write_lanes(draft, plan.totals, [terms, *vector])
    if plan.is_parallel:
        deal(draft, joins, [*plan.tasks, strip])
    draft.settled |= {joins, plan.within, plan.before, plan.totals, stored}
    draft.names.append("strips")


def _write_out(draft: Draft, plan: StripPlan, block: str, around: set[str], vectors: int) -> tuple[str, list[str]]:
    """Sums of rows up to each one, in registers: the loop over `vectors` of them, and what is written out in it."""
    *others, rows, columns, terms = [n for n in draft.loops(block) if n not in around]
    place, *vector = draft.split(block, columns, (0, vectors, plan.lanes))
    draft.order(block, [*others, place, terms, rows, *vector])
    _write_lanes(draft, block, [terms, rows, *vector])
    return place, [rows, *vector]


def _write_lanes(draft: Draft, block: str, loops: list[str]) -> None:
    *written, lanes = loops
    draft.do(Vectorize, block=block, loop=lanes)
    for loop in written:
        draft.do(Unroll, block=block, loop=loop)
