"""Attention of few keys on the lanes of a GPU as one kernel: scores of some queries with all keys in shared memory.

A warp has a few queries, and its lanes all keys for them, then all elements of their results: what a warp's softmax
joins, its own lanes have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.loop import BlockOp, LoadOp, blocks_in, buffer_shape, element_of_buffer
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import WARP, Target
from ...passes.analysis.nest import buffer_name
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ..estimates.lane_attention_model import LaneAttentionModel
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import epilogue_of
from ..structure.attention import AttentionBlocks, find_attention
from ._choices import up_to
from ._gpu_copies import Reads, SharedCopy, bring, in_registers, into_registers, place_rows, rows_for

WARPS, ROWS = (1, 2, 4, 8), (1, 2, 4, 8)
"""Warps of a block, and queries of a warp."""
STEPS, TERMS = (16, 32, 64), (16, 32, 64, 128)
"""Elements of a key, and values, that a fill of shared memory brings, the one while there is another: half at most."""
STAGES = (2, 3)
"""Stages of both pipelines that fill shared memory. Without any, 12 heads of 128 queries and keys took 7.8 us on an
H200 where several candidates with two took 6.2 to 6.4, and three kernels 8.7."""
UNROLLED = 512
"""Statements that the steps of a fill may become when they are unrolled. A choice, as of large products."""
LANES, ROWS_OF_BLOCK = "threadIdx.x", "threadIdx.y"


@dataclass(frozen=True)
class LanePlan:
    """Attention in blocks of `warps` with `rows` queries each.

    `step` elements of all keys are brought at a time, then `terms` values, in `stages` each. `keys` and `values` are
    the buffers of the factors that queries and weights are multiplied by, `depth` is the axis that scores sum over.
    """

    parts: AttentionBlocks
    warps: Hole
    rows: Hole
    step: Hole
    terms: Hole
    stages: tuple[Hole, Hole]
    keys: str
    values: str
    depth: str
    columns_of_lane: int
    model: LaneAttentionModel


class GpuLaneAttention(SketchRule):
    """Two products of float32 with a softmax between them, whose scores of some queries fit shared memory."""

    order: ClassVar[int] = 56

    def when(self, target: Target) -> bool:
        return target.kind == "cuda" and target.warp_size == WARP

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for name in [block.block_name for block in blocks_in(draft.module) if block.is_reduction]:
            plan = plan_lanes(draft.block(name), draft, target)
            grown = plan and draft.with_legal_steps(partial(_write, plan=plan), by_estimate=True)
            draft = grown or draft
        return [draft]


def plan_lanes(total: BlockOp, draft: Draft, target: Target) -> LanePlan | None:
    """Plan the attention whose last block is given; None for another block, or where lanes do not share its values."""
    parts = find_attention(total)
    if parts is None or any(element_bytes(element_of_buffer(o)) != FLOAT32_BYTES for o in total.outputs):
        return None
    scores, name = draft.block(parts.scores), total.block_name
    depth = next(a for a in scores.axes if a.reduce)
    columns = next(a for a in total.axes if a.name == parts.columns)
    keys = _factor(scores, parts.keys[parts.scores], depth.name)
    values = _factor(total, next(a.name for a in total.axes if a.reduce), columns.name)
    queries = _factor(scores, parts.rows[parts.scores], depth.name)
    if not keys or not values or queries != parts.queries or len({keys, values, queries}) < 3:
        return None
    width = columns.extent // WARP
    if columns.extent % WARP or width not in (1, 2, VECTOR) or depth.extent % VECTOR:
        return None
    if depth.extent < 2 * STEPS[0] or parts.key_extent < 2 * TERMS[0]:
        return None
    warps = Hole.near(f"{name}_warps", WARPS, 4, "threads", name)
    rows = Hole.near(f"{name}_rows", ROWS, 4, "tile", name)
    steps, some = (up_to(listed, n // 2) for listed, n in ((STEPS, depth.extent), (TERMS, parts.key_extent)))
    step, terms = Hole.near(f"{name}_step", steps, 32), Hole.near(f"{name}_terms", some, 32)
    stages = (
        Hole.near(f"{name}_key_stages", STAGES, 2, "stages"),
        Hole.near(f"{name}_value_stages", STAGES, 2, "stages"),
    )
    batch = prod(a.extent for a in total.axes if not a.reduce and a.name not in (parts.rows[name], parts.columns))
    model = LaneAttentionModel(
        target,
        batch,
        parts.row_extent,
        parts.key_extent,
        (depth.extent, columns.extent),
        (warps.name, rows.name, step.name, terms.name, stages[0].name, stages[1].name),
    )
    return LanePlan(parts, warps, rows, step, terms, stages, keys, values, depth.name, width, model)


def _factor(block: BlockOp, axis: str, last: str) -> str:
    """The buffer of whole vectors that a product reads along an axis and, side by side, along `last`; else ""."""
    found = [load for load in block.loads if any(axis in e.axes() for e in load.indices.data)]
    found = [load for load in found if last in load.indices.data[-1].axes()]
    if len(found) != 1 or found[0].conditions or found[0].positions or not _has_vectors(found[0], last):
        return ""
    return buffer_name(found[0].buffer)


def _has_vectors(load: LoadOp, last: str) -> bool:
    """True where neighbours along an axis are vectors that begin at multiples of their size."""
    index = load.indices.data[-1]
    others = [index.coefficient(n) for n in index.axes() if n != last]
    aligned = all(n % VECTOR == 0 for n in (*others, index.const, buffer_shape(load.buffer)[-1]))
    return aligned and index.coefficient(last) == 1 and element_bytes(element_of_buffer(load.buffer)) == FLOAT32_BYTES


def _write(draft: Draft, plan: LanePlan) -> None:
    draft.add(plan.warps, plan.rows, plan.step, plan.terms, *plan.stages)
    draft.limits.append(plan.model.limit)
    _Writer(draft, plan).run()
    draft.names.append(f"attention_{plan.parts.total}_lanes")
    draft.models.append(plan.model)
    draft.sure += 1


class _Writer:
    """Writes the steps; `grid` is the loop over blocks of threads."""

    def __init__(self, draft: Draft, plan: LanePlan) -> None:
        self.draft, self.plan, self.parts = draft, plan, plan.parts
        self.grid = ""

    def run(self) -> None:
        draft, parts = self.draft, self.parts
        masked = self._steps()
        draft.do(ComputeInline, block=parts.exponential)
        partials = {name: self._partial(name) for name in (parts.largest, parts.denominator)}
        self._total()
        self._element(parts.quotient)
        draft.do(SetScope, block=parts.quotient, scope="shared")
        rank = len(draft.block(parts.quotient).write_indices[0])
        place_rows(draft, parts.quotient, rows_for(Reads.VECTORS, rank - 2))
        for name in (parts.denominator, parts.largest):
            self._joined(name, partials[name])
        self._scores(masked)
        draft.settled |= {parts.quotient, *partials, *partials.values(), masked, parts.scores, parts.total}

    def _steps(self) -> str:
        """The block that gives what the softmax reads: the last step behind the scores, or a copy of these."""
        draft, parts = self.draft, self.parts
        if not parts.steps:
            label = f"{parts.scores}_whole"
            draft.do(CacheWrite, block=parts.scores, scope="local", label=label)
            return label
        for step in parts.steps[:-1]:
            draft.do(ComputeInline, block=step)
        draft.do(SetScope, block=parts.scores, scope="local")
        return parts.steps[-1]

    def _partial(self, name: str) -> str:
        """Partial results of lanes, neighbours by neighbours; the block that computes them."""
        draft = self.draft
        (key,) = [a.name for a in draft.block(name).axes if a.reduce]
        rest, lane = draft.split(name, key, (0, WARP))
        draft.order(name, (lane, *[n for n in draft.loops(name) if n not in (lane, rest)], rest))
        return draft.partial(name, lane, 0)

    # -- the sum of values ------------------------------------------------------------------------------------------

    def _total(self) -> None:
        """Tile the weighted sum, whose loop over tiles all else goes into, with copies of weights and of values."""
        draft, plan, name = self.draft, self.plan, self.parts.total
        epilogue = epilogue_of(draft.block(name))
        row, column = self.parts.rows[name], self.parts.columns
        (term,) = [a.name for a in draft.block(name).axes if a.reduce]
        blocks, warp, own = draft.split(name, row, (0, plan.warps, plan.rows))
        lane, width = draft.split(name, column, (0, plan.columns_of_lane))
        fill, rest = draft.split(name, term, (0, plan.terms))
        some, one = draft.split(name, rest, (0, VECTOR))
        used = (blocks, warp, own, lane, width, fill, some, one)
        batch = [n for n in draft.loops(name) if n not in used]
        draft.order(name, (*batch, blocks, warp, lane, fill, some, one, own, width))
        self.grid = draft.fuse(name, [*batch, blocks])
        draft.do(Bind, block=name, loop=self.grid, thread="blockIdx.x")
        self._bind(name, warp, lane)
        out = epilogue or f"{name}_tile"
        if epilogue is None:
            draft.do(CacheWrite, block=name, scope="local", label=out)
        else:
            draft.do(SetScope, block=name, scope="local")
        draft.do(ReverseComputeAt, block=out, loop=lane)
        in_registers(draft, out, draft.loops(out, lane))
        in_registers(draft, name, [own, width])
        weights = f"{self.parts.quotient}_own"
        (buffer,) = [buffer_name(o) for o in draft.block(self.parts.quotient).outputs]
        draft.do(CacheRead, block=name, buffer=buffer, scope="local", label=weights)
        into_registers(draft, weights, some)
        values = f"{plan.values}_shared"
        draft.do(CacheRead, block=name, buffer=plan.values, scope="shared", label=values)
        draft.do(CacheRead, block=name, buffer=values, scope="local", label=f"{values}_own")
        into_registers(draft, f"{values}_own", one)
        self._fetch(values, fill)
        draft.do(Pragma, block=name, loop=some, auto_unroll_max_step=UNROLLED)
        draft.do(Pipeline, block=name, loop=fill, stages=plan.stages[1])
        draft.settled.add(out)

    # -- softmax ----------------------------------------------------------------------------------------------------

    def _loops(self, name: str, axes: Sequence[str]) -> list[str]:
        """The loops of a block below the grid that iterators are bound to."""
        block = self.draft.block(name)
        below = self.draft.loops(name, self.grid)
        return [next(n for n in below if n in block.bound[axis].axes()) for axis in axes]

    def _at_grid(self, name: str) -> None:
        self.draft.do(ComputeAt, block=name, loop=self.grid, unit_loops=True)

    def _element(self, name: str) -> None:
        """An element of each lane's keys, of each query of its warp."""
        draft = self.draft
        self._at_grid(name)
        key = draft.block(name).axes[-1].name
        row, key = self._loops(name, (self.parts.rows[name], key))
        warp, own = draft.split(name, row, (self.plan.warps, 0))
        rest, lane = draft.split(name, key, (0, WARP))
        draft.order(name, (warp, lane, own, rest))
        self._bind(name, warp, lane)

    def _joined(self, name: str, partial: str) -> None:
        """Sums of lanes, and of the warp, for each of its queries."""
        draft, row = self.draft, self.parts.rows[name]
        self._at_grid(name)
        (key,) = [a.name for a in draft.block(name).axes if a.reduce]
        own_row, lane = self._loops(name, (row, key))
        warp, _ = draft.split(name, own_row, (self.plan.warps, 0))
        self._bind(name, warp, lane)
        self._at_grid(partial)
        block = draft.block(partial)
        written = block.write_indices[0]
        axes = [str(e.as_axis()) for e in written]
        before = [str(e.as_axis()) for e in draft.block(name).write_indices[0]]
        of_row = axes[1 + before.index(row)]
        (rest,) = [a.name for a in block.axes if a.reduce]
        own_row, lane, rest = self._loops(partial, (of_row, axes[0], rest))
        warp, own = draft.split(partial, own_row, (self.plan.warps, 0))
        draft.order(partial, (warp, lane, own, rest))
        self._bind(partial, warp, lane)
        for each in (name, partial):
            draft.do(SetScope, block=each, scope="local")

    # -- scores -----------------------------------------------------------------------------------------------------

    def _scores(self, masked: str) -> None:
        """Tile the scores in registers, and have what the softmax reads written to shared memory."""
        draft, plan, parts, name = self.draft, self.plan, self.parts, self.parts.scores
        queries, keys = (f"{buffer}_shared" for buffer in (parts.queries, plan.keys))
        batch = [a.name for a in draft.block(name).axes]
        own = (parts.rows[name], parts.keys[name], plan.depth)
        batch = [n for n in batch if n not in own]
        for buffer, copy, axis in ((parts.queries, queries, own[0]), (plan.keys, keys, own[1])):
            layout = (*batch, axis, plan.depth)
            shared = SharedCopy(buffer, copy, layout, rows_for(Reads.ROWS, len(layout) - 2))
            shared.read_by(draft, name)
            shared.keep_apart(draft)
            draft.do(CacheRead, block=name, buffer=copy, scope="local", label=f"{copy}_own")
        self._at_grid(masked)
        self._at_grid(name)
        row, key, depth = self._loops(name, own)
        warp, mine = draft.split(name, row, (plan.warps, 0))
        rest, lane = draft.split(name, key, (0, WARP))
        fill, steps = draft.split(name, depth, (0, plan.step))
        some, one = draft.split(name, steps, (0, VECTOR))
        draft.order(name, (warp, lane, fill, some, rest, one, mine))
        self._bind(name, warp, lane)
        self._unroll(name, [rest, one, mine])
        row, key = self._loops(masked, self._row_and_key_of(masked))
        draft.split(masked, row, (plan.warps, 0))  # as those of scores, which it follows, beyond the last ones too
        draft.split(masked, key, (0, WARP))
        draft.do(SetScope, block=masked, scope="shared")
        draft.do(ReverseComputeAt, block=masked, loop=lane)
        self._unroll(masked, draft.loops(masked, lane))
        into_registers(draft, f"{queries}_own", some)
        into_registers(draft, f"{keys}_own", rest)
        for copy in (queries, keys):
            self._fetch(copy, fill)
        draft.do(Pragma, block=name, loop=some, auto_unroll_max_step=UNROLLED)
        draft.do(Pipeline, block=name, loop=fill, stages=plan.stages[0])

    def _row_and_key_of(self, masked: str) -> tuple[str, str]:
        """The axes of queries and of keys of what the softmax reads."""
        parts = self.parts
        if masked in parts.keys:
            return parts.rows[masked], parts.keys[masked]
        before, after = (self.draft.block(name).write_indices[0] for name in (parts.scores, masked))
        places = [str(e.as_axis()) for e in before]
        row, key = (str(after[places.index(name[parts.scores])].as_axis()) for name in (parts.rows, parts.keys))
        return row, key

    # -- parts of all of them ---------------------------------------------------------------------------------------

    def _bind(self, name: str, warp: str, lane: str) -> None:
        self.draft.do(Bind, block=name, loop=warp, thread=ROWS_OF_BLOCK)
        self.draft.do(Bind, block=name, loop=lane, thread=LANES)

    def _unroll(self, name: str, loops: Sequence[str]) -> None:
        for loop in loops:
            self.draft.do(Unroll, block=name, loop=loop)

    def _fetch(self, name: str, loop: str) -> None:
        """Fill shared memory by all threads together, each with vectors."""
        bring(self.draft, name, loop, {ROWS_OF_BLOCK: self.plan.warps, LANES: WARP}, VECTOR)
