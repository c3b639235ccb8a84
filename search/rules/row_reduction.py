"""Chains of reductions over rows, such as softmax: all stages of a row under one loop, while the row is in the cache.

Each reduction along contiguous memory becomes a vector of partial results (`rfactor`) that are joined at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeAlias

import numpy.typing as npt

from ...dialects.element import FLOAT32_BYTES
from ...dialects.loop import BlockOp, ForOp
from ...dialects.target import Target
from ...passes.analysis.access import shared_loops
from ...passes.analysis.nest import buffer_name, loops_reduced
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.rfactor import may_trap
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole
from ..sketch.rule import SketchRule
from ..structure.row_chains import RowChain, next_row_chain
from ..structure.strides import accesses, lanes_of_block, nearly_in_rows, output_bytes, run_together
from ._columns import PAIRED_ROW, STRIPS, deal_columns, in_columns, plan_columns, write_columns
from ._lanes import lane_choices, parallel_elements, together, vectors_pay

ROW_BYTES = 32768
"""A stage's row up to this size is kept on the thread's stack; a first-level cache holds about as much.

Softmax of rows of 256 bytes to 128 KiB is as fast on the stack as off it, within the 15 % by which two runs differ (AMD
EPYC, family 25 model 17, one thread, medians of nine alternating rounds beside other work): the size of a stack is what
decides."""
VECTORS_OF_LANES = (1, 2, 4, 8)
"""Vectors side by side along the rows of a chain."""
USUAL_VECTORS = 4
"""The same without a search. With 2 and 8 14 of 115 default schedules change, and take 1.05 and 1.09 of the time, a
norm of 3136 rows of 96 3.7 times as long with 8 (Zen 3)."""
MOST_IN_STRIP = 4
"""Vectors of a strip that a stage without a reduction has side by side, at most; the strip repeats them. With 2 and 8
none of 58 default schedules changes (Zen 3)."""
MOST_SUMS_IN_STRIP = 8
"""Vectors of a strip that a reduction has side by side, at most: their sums are registers. With 4 two of 58 default
schedules change, in 1.05 of the time; with 16 one, in 0.97 (Zen 3)."""
WIDEST_HELD = 8
"""Vectors of a strip without a search, at most, where rows have several points for each column. With 4 and 16 none of
115 default schedules changes (Zen 3)."""
JOINED_ONE_BY_ONE = 4
"""Partial pairs, such as value and position, that are joined without lanes. 2404 rows of 91 take 31 us so, 27 and 278
with the last 2 and all one by one; 64 of 4000 16 and 29 (one core of a Zen 5; the faster of others 115 and 100)."""

OfWidth: TypeAlias = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]


class RowReduction(SketchRule):
    """Schedule the reductions that are left: chains under a common loop over rows, single ones with lanes and threads.

    A row is what all stages share: an image of a channel, a line of a matrix, or a strip of its columns.
    """

    order: ClassVar[int] = 500
    of_unsettled: ClassVar[bool] = True

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        while (chain := next_row_chain(draft, target)) is not None:
            block = draft.block(chain.names[-1])
            if len(chain.names) == 1 and in_columns(block, target):
                plan = plan_columns(draft, block.block_name, target)
                write_columns(draft, plan)
                deal_columns(draft, plan)
                draft.settled.add(block.block_name)
            else:
                write_rows(draft, plan_rows(draft, chain, target))
        return [draft]


@dataclass(frozen=True)
class RowPlan:
    """A chain under one loop over `rows`: its last block stays, the others move to it.

    Where rows are strips of the axis `column`, `strip` is how many columns these have.
    """

    target: Target
    names: tuple[str, ...]
    rows: tuple[str, ...]
    column: str
    strip: Hole | None
    is_parallel: bool

    @property
    def last(self) -> str:
        return self.names[-1]


def plan_rows(draft: Draft, chain: RowChain, target: Target) -> RowPlan:
    """The loops over rows, the width of strips, and whether threads share them."""
    work = sum(prod(draft.sizes(name).values()) for name in chain.names)
    around = draft.loops(chain.names[-1])
    rows = tuple(n for n in chain.rows if n in around)
    strip = _strip_width(draft, chain, target) if chain.column else None
    is_parallel = target.cores > 1 and work >= parallel_elements(target)
    return RowPlan(target, chain.names, rows, chain.column, strip, is_parallel)


def _strip_width(draft: Draft, chain: RowChain, target: Target) -> Hole:
    """Return the hole of a strip's columns: as many as the second-level cache holds, no more than feed the threads.

    Elements count as float32, which sums of half precision are in.
    """
    last = chain.names[-1]
    sizes = draft.sizes(last)
    lanes, extent = lanes_of_block(draft.block(last), target), sizes[chain.column]
    rows = prod(sizes[n] for n in chain.rows if n in sizes)
    choices = tuple(n for n in (lanes * k for k in STRIPS) if n < 2 * extent) or (lanes,)
    tasks = 2 * target.cores if target.cores > 1 else 1
    fed = [n for n in choices if rows * -(-extent // n) >= tasks]
    held = [n for n in fed if n <= WIDEST_HELD * lanes and 2 * FLOAT32_BYTES * chain.points * n <= target.l2_bytes]
    usual = max(fed if chain.points == 1 else held, default=0)
    return Hole.near(f"{last}_width", choices, max(usual, USUAL_VECTORS * lanes), "vector")


def write_rows(draft: Draft, plan: RowPlan) -> None:
    """Move all stages to the rows of the last one, and give each its lanes."""
    draft.settled.update(plan.names)
    row = _row_loop(draft, plan)
    moved = {plan.last}
    if row:
        own = bool(plan.column)
        earlier = reversed(plan.names[:-1])
        moved |= {name for name in earlier if draft.tried(ComputeAt, name, loop=row, unit_loops=own)}
    width = plan.strip
    for name in (n for n in plan.names if n in moved):
        width = _stage(draft, plan, row, name, width)
    if row and plan.is_parallel:
        draft.do(Parallel, block=plan.last, loop=row)


def _row_loop(draft: Draft, plan: RowPlan) -> str:
    """The loops over rows, and over strips of columns, made one at the outside; its name, "" without rows."""
    around, rows, strip = draft.loops(plan.last), [*plan.rows], []
    if plan.strip is not None:
        draft.add(plan.strip)
        around_strip, inside = draft.split(plan.last, plan.column, (0, plan.strip))
        rows.append(around_strip)
        strip = [inside]
    draft.order(plan.last, [*rows, *[n for n in around if n not in (*rows, plan.column)], *strip])
    return draft.fuse(plan.last, rows)


def _stage(draft: Draft, plan: RowPlan, row: str, name: str, width: Hole | None) -> Hole | None:
    """Lanes for one stage, and its row in a buffer of the thread; the lanes that all stages so far share."""
    block, outside = draft.block(name), _outside(draft, plan, row, name)
    contiguous = _contiguous_reduce_loops(block, outside, plan.target)
    across = bool(outside) and _across(block, outside)
    if not block.is_reduction:
        width = _lanes(draft, plan, name, outside, width)
    elif contiguous and not (across and in_columns(block, plan.target)):  # no windows
        width = _partial(draft, plan, name, contiguous, width)
    elif across:
        in_strip = _in_strip(draft, plan, lanes_of_block(block, plan.target), MOST_SUMS_IN_STRIP)
        write_columns(draft, plan_columns(draft, name, plan.target, outside, in_strip))
    block, outside = draft.block(name), _outside(draft, plan, row, name)
    most = plan.target.l2_bytes if plan.column else ROW_BYTES
    if name != plan.last and outside and _row_bytes(block, outside) <= most:
        draft.do(SetScope, block=name, scope="local")
    return width


def _outside(draft: Draft, plan: RowPlan, row: str, name: str) -> int:
    """Count the loops around a stage that are over rows."""
    if name == plan.last:
        return 1 if row else 0
    return len(shared_loops(draft.block(name), draft.block(plan.last)))


# -- lanes ------------------------------------------------------------------------------------------------------------


def _lane_width(draft: Draft, plan: RowPlan, block: BlockOp, extent: int, width: Hole | None) -> Hole:
    """One hole for all stages, whose rows are of one length; none of its choices is two rows long."""
    if width is not None:
        return width
    lanes = lanes_of_block(block, plan.target)
    choices = tuple(n for n in (lanes * k for k in VECTORS_OF_LANES) if n < 2 * extent)
    choices = choices or (lane_choices(extent, lanes)[1],)
    return draft.hole(f"{plan.last}_width", choices, lanes * USUAL_VECTORS, "vector")


def _vectors_in_strip(draft: Draft, plan: RowPlan, lanes: int, most: int = MOST_IN_STRIP) -> Derived:
    """Vectors side by side in a strip."""
    return _of_strip(draft, plan, f"vectors{most}x{lanes}", lambda width: np.clip(width // lanes, 1, most))


def _in_strip(draft: Draft, plan: RowPlan, lanes: int, most: int) -> tuple[Derived, Derived] | None:
    """Vectors side by side in a strip, and how many times those a strip has; None where rows are no strips."""
    if plan.strip is None:
        return None
    vectors = _vectors_in_strip(draft, plan, lanes, most)
    times = _of_strip(draft, plan, f"strips{most}x{lanes}", lambda width: np.maximum(1, width // (lanes * most)))
    return vectors, times


def _of_strip(draft: Draft, plan: RowPlan, label: str, of_width: OfWidth) -> Derived:
    """A number that follows from a strip's width, which stages of as many lanes share."""
    assert plan.strip is not None
    width, name = plan.strip.name, f"{plan.last}_{label}"
    found = next((number for number in draft.derived if number.name == name), None)
    return found or draft.derive(name, lambda c: of_width(c[width]))


def _partial(draft: Draft, plan: RowPlan, name: str, loops: Sequence[ForOp], width: Hole | None) -> Hole:
    """Lanes of partial results, joined behind the row; the lanes."""
    block = draft.block(name)
    axis, extent = together(draft, name, loops)
    width = _lane_width(draft, plan, block, extent, width)
    _, lane = draft.split(name, axis, (0, width))
    try:
        _write_partial(draft, name, lane)
    except ScheduleError:
        return width
    if block.combiner.data == "custom":
        _join_pairs(draft, name, lanes_of_block(block, plan.target))
    else:
        draft.do(Vectorize, block=name, loop=draft.loops(name)[-1])
    return width


def _write_partial(draft: Draft, name: str, lane: str) -> str:
    """Partial results over lanes, in registers; the block that computes them."""
    partial = draft.partial(name, lane)
    draft.do(Vectorize, block=partial, loop=lane)
    outputs = [buffer_name(o) for o in draft.block(partial).outputs]
    for output in outputs if len(outputs) > 1 else [""]:
        draft.do(SetScope, block=partial, buffer=output, scope="local")
    return partial


def _join_pairs(draft: Draft, name: str, lanes: int) -> None:
    """Join partial pairs in vectors, then halves of a vector, the last few one by one.

    LLVM has no reduction of them: one by one 64 take as long as 100 vectors of terms.
    """
    while lanes >= JOINED_ONE_BY_ONE:
        step, lane = draft.split(name, draft.loops(name)[-1], (0, lanes))
        draft.do(Unroll, block=_write_partial(draft, name, lane), loop=step)
        lanes //= 2
    draft.do(Unroll, block=name, loop=draft.loops(name)[-1])


def _lanes(draft: Draft, plan: RowPlan, name: str, outside: int, width: Hole | None) -> Hole | None:
    """Lanes of elements, where they pay; the lanes that all stages so far share."""
    block = draft.block(name)
    loops, lanes = block.enclosing_loops[outside:], lanes_of_block(block, plan.target)
    if not loops:
        return width
    if plan.strip is not None:
        vectors = _vectors_in_strip(draft, plan, lanes)
        _, side, lane = draft.split(name, loops[-1].loop_name, (0, vectors, lanes))
        draft.do(Vectorize, block=name, loop=lane)
        draft.do(Unroll, block=name, loop=side)
        return width
    axis, extent = together(draft, name, loops)
    if not vectors_pay(draft.block(name), axis, extent, lanes):
        return width
    width = _lane_width(draft, plan, block, extent, width)
    _, lane = draft.split(name, axis, (0, width))
    draft.do(Vectorize, block=name, loop=lane)
    return width


def _across(block: BlockOp, outside: int) -> bool:
    """True where neighbouring results of a stage come from neighbouring elements."""
    reduced = loops_reduced(block)
    kept = [x.loop_name for x in block.enclosing_loops[outside:] if x.loop_name not in reduced]
    return bool(kept) and nearly_in_rows(block, kept[-1])


def _contiguous_reduce_loops(block: BlockOp, outside: int, target: Target) -> list[ForOp]:
    """The reduce loops of a stage whose terms lanes can take: innermost, contiguous and of enough terms; else none.

    None either of one that may divide by 0 where lanes are without an element: `rfactor` refuses such widths.
    """
    reduced = loops_reduced(block)
    loops = [x for x in block.enclosing_loops[outside:] if x.loop_name in reduced]
    if may_trap(block) or not loops or loops[-1] is not block.enclosing_loops[-1]:  # columns of a strip are inside
        return []
    if not any(access.step(loops[-1].loop_name) == 1 for access in accesses(block)):
        return []
    lanes = lanes_of_block(block, target)
    enough = PAIRED_ROW * lanes if block.combiner.data == "custom" else lanes // 2
    return loops if prod(x.size for x in loops[-run_together(block, loops) :]) >= enough else []


def _row_bytes(block: BlockOp, outside: int) -> int:
    """Bytes of the output that the loops below the `outside` outermost ones write."""
    size = output_bytes(block)
    spatial = {n for a, e in zip(block.axes, block.bindings.data, strict=True) if not a.reduce for n in e.axes()}
    for loop in block.enclosing_loops[outside:]:
        if loop.loop_name in spatial:
            size *= loop.size
    return size
