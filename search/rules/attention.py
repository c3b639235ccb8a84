"""Attention on a CPU in one pass: for a block of queries, scores, softmax and the weighted sum while they are cached.

Queries are lanes, so that the reductions of softmax are elementwise, and keys and values are read as they are.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

import numpy.typing as npt

from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import is_argument
from ...passes.analysis.nest import buffer_name, function_of
from ...passes.primitive import ScheduleError
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.online_softmax import OnlineSoftmax
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.cpu_attention_model import CpuAttentionModel
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Derived, Hole
from ..sketch.rule import SketchRule
from ..structure.attention import AttentionBlocks, find_attention
from ..structure.strides import lanes_of_block, output_bytes
from ._choices import up_to
from ._copied_lines import in_lanes
from ._rounded_weights import with_rounded_weights
from ._turned import TURNED_BYTES

TERMS = (64, 128, 256, 512)
"""Keys of a block. Where queries see no key behind them, blocks of which nothing is left are skipped: 12 heads of 512 x
512 x 64 take 14.6, 14.0 and 14.3 ms in blocks of 64, 128 and 256, and 16.7 all at a time; 4 of 1024 x 1024 x 64 take
11.1, 14.5, 15.7 and 19.5 (one core of an AMD EPYC, Zen 3, medians of alternating rounds)."""
TILE = (2, 3, 4, 5, 6, 8, 12)
"""Keys, or elements of a value, of a register tile."""
VECTORS = (1, 2, 3, 4, 5, 6, 7)
"""Vectors of queries of a register tile: five for 77 queries in vectors of 16, which four and eight do not divide. 8
heads of these take 65 us so, 78 in tiles of three, 93 before in tiles of one (one core of a Zen 5, onnxruntime 88)."""
TILES = (1, 2, 3, 4, 8)
"""Register tiles of queries that a task has."""


class Attention(SketchRule):
    """Two products with a softmax between them, where there are queries enough for the lanes of a vector.

    Softmax is over all keys at a time, or over blocks of them with a running maximum; the first does less, the second
    stays in a smaller cache.
    """

    order: ClassVar[int] = 50

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for name in [block.block_name for block in blocks_in(draft.module) if block.is_reduction]:
            plans = plan_attention(with_rounded_weights(draft, name).block(name), target)
            started = [with_rounded_weights(one, name) for one in drafts] if plans else []
            grown = [
                made for one in started for plan in plans if (made := one.with_legal_steps(partial(_write, plan=plan)))
            ]
            drafts = grown or drafts
        return drafts


@dataclass(frozen=True)
class AttentionPlan:
    """Attention in tasks of `rows` queries, which are `tiles` of `vectors` of `lanes`.

    A register tile has so many `keys` of scores, `columns` of results, for each of its queries; a block of keys has
    `terms`, or all where that is None.
    """

    target: Target
    parts: AttentionBlocks
    lanes: int
    vectors: Hole
    tiles: Hole
    rows: Derived
    keys: Hole
    columns: Hole
    terms: Hole | None
    model: CpuAttentionModel

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Register tiles that fit the registers, and tasks that are not mostly beyond the last query."""
        vectors = c[self.vectors.name]
        sums = vectors * np.maximum(c[self.keys.name], c[self.columns.name])
        fits = sums + vectors + 1 <= self.target.vector_registers
        filled = c[self.rows.name] < 2 * max(self.parts.row_extent, self.lanes)
        return np.asarray(fits & filled)


def plan_attention(block: BlockOp, target: Target) -> list[AttentionPlan]:
    """Plan the attention whose last block is given, with all keys at a time and in blocks; none for another block.

    What is tried first their estimates say.
    """
    found, lanes = find_attention(block), lanes_of_block(block, target)
    if found is None or lanes < 2 or found.row_extent < lanes or not _may_be_packed(block, found):
        return []
    name = block.block_name
    columns = next(a.extent for a in block.axes if a.name == found.columns)
    vectors = Hole.near(f"{name}_vectors", up_to(VECTORS, -(-found.row_extent // lanes)), 2, "vector")
    tiles = Hole.near(f"{name}_tiles", up_to(TILES, -(-found.row_extent // (lanes * vectors.default))), 2)
    keys = Hole.near(f"{name}_keys", up_to(TILE, found.key_extent), 4, "unroll")
    parts = Hole.near(f"{name}_columns", up_to(TILE, columns), 4, "unroll")
    model = CpuAttentionModel(
        target,
        prod(a.extent for a in block.axes if not a.reduce and a.name not in (found.columns, found.rows[name])),
        found.row_extent,
        found.key_extent,
        (prod(a.extent for a in _scores(block, found).axes if a.reduce), columns),
        lanes,
        output_bytes(block),
        (vectors.name, tiles.name, keys.name, parts.name),
        ends_early=found.ends_early,
    )
    rows = Derived.of(f"{name}_rows", lambda c: lanes * c[vectors.name] * c[tiles.name], (vectors, tiles))
    whole = AttentionPlan(target, found, lanes, vectors, tiles, rows, keys, parts, None, model)
    choices = tuple(n for n in TERMS if n < found.key_extent)
    if not choices:
        return [whole]
    terms = Hole(f"{name}_terms", choices, choices[-1])
    return [whole, replace(whole, terms=terms, model=replace(model, terms=terms.name))]


def _may_be_packed(block: BlockOp, found: AttentionBlocks) -> bool:
    """True where the scores read queries at axes of theirs."""
    load = next(load for load in _scores(block, found).loads if buffer_name(load.buffer) == found.queries)
    return all(e.as_axis() is not None for e in load.indices.data)


def _scores(block: BlockOp, found: AttentionBlocks) -> BlockOp:
    return next(b for b in blocks_in(function_of(block)) if b.block_name == found.scores)


@dataclass(frozen=True)
class _Blocks:
    """The blocks that steps make: `part` adds up the values of a block of keys in registers, which `tile` copies.

    `masked` is the last of the scores; `running` carries the sums over blocks of keys, where there are several.
    """

    masked: str
    part: str
    tile: str
    running: str


def _write(draft: Draft, plan: AttentionPlan) -> None:
    """Say which blocks there are, where a task computes them, in which tiles, and how it lays out what they write."""
    draft.names.append("attention" if plan.terms is None else "attention_blocks")
    draft.add(plan.vectors, plan.tiles, plan.rows, plan.keys, plan.columns)
    if plan.terms is not None:
        draft.add(plan.terms)
    draft.limits.append(plan.limit)
    draft.models.append(plan.model)
    draft.sure += 1
    made, total = _over_blocks_of_keys(draft, plan), plan.parts.total
    whole = replace(plan, parts=_with_axes(plan.parts, made))
    parts = whole.parts
    softmax = (parts.largest, parts.exponential, parts.denominator)
    task, place = _in_tasks(draft, whole, made)
    for block in (made.tile, made.part, *reversed(softmax), made.masked):
        draft.do(ComputeAt, block=block, loop=place, unit_loops=True)
    _tiled(draft, whole, made.masked, parts.scores, place)
    _tiled(draft, whole, made.tile, made.part, place)
    for block in softmax:
        _elementwise(draft, whole, block, place)
    _pack_queries(draft, whole, task)
    _turn_masks(draft, made.masked, parts.rows[made.masked])
    for block in (parts.scores, made.masked, *softmax, made.part, made.tile):
        _rows_last(draft, block, parts.rows[block])
    if plan.terms is not None:
        _rows_last(draft, made.running, parts.rows[total])
        _vectors(draft, made.running, plan.lanes)
    _store(draft, plan)
    _launch(draft, total, task, plan.target)


def _over_blocks_of_keys(draft: Draft, plan: AttentionPlan) -> _Blocks:
    """Make the softmax one over blocks of keys, or over all of them at a time, with sums in registers."""
    for step in plan.parts.steps[:-1]:
        draft.do(ComputeInline, block=step)
    total = plan.parts.total
    part, running = OnlineSoftmax(total, 1).check(draft.module).names
    draft.do(OnlineSoftmax, block=total, terms=plan.terms if plan.terms is not None else 0)
    masked = _scored(draft, plan.parts)
    return _Blocks(masked, part, _staged(draft, part), running)


def _with_axes(parts: AttentionBlocks, made: _Blocks) -> AttentionBlocks:
    """The parts with the axes of the blocks that were made."""
    rows = {**parts.rows, made.part: parts.rows[parts.total], made.tile: parts.rows[parts.total]}
    keys = {**parts.keys}
    if not parts.steps:
        rows[made.masked], keys[made.masked] = parts.rows[parts.scores], parts.keys[parts.scores]
    return replace(parts, rows=rows, keys=keys)


def _in_tasks(draft: Draft, plan: AttentionPlan, made: _Blocks) -> tuple[str, str]:
    """Divide the queries among tasks; the loop over these, and the one in it where blocks of keys are computed."""
    total, row = plan.parts.total, plan.parts.rows[plan.parts.total]
    task, rest = draft.split(total, row, (0, plan.rows))
    draft.order(total, [*_before(draft, total, task), task, *draft.loops(total, below=rest), rest])
    return task, task if plan.terms is None else _carried(draft, made.running, task, row)


def _store(draft: Draft, plan: AttentionPlan) -> None:
    """Store results along values, of so many neighbouring queries that loads of sums are turned in registers.

    Along queries where values are shorter than a vector.
    """
    total, columns = plan.parts.total, plan.parts.columns
    block = draft.block(total)
    extent = next(a.extent for a in block.axes if a.name == columns)
    if extent < plan.lanes or block.write_indices[0][-1].as_axis() != columns:
        _vectors(draft, total, plan.lanes)
        return
    *_, column, row = draft.loops(total)
    rows = draft.split(total, row, (0, TURNED_BYTES // output_bytes(block)))
    parts = draft.split(total, column, (0, plan.lanes))
    draft.order(total, [rows[0], parts[0], rows[1], parts[1]])
    draft.do(Unroll, block=total, loop=rows[1])
    draft.do(Vectorize, block=total, loop=parts[1])


def _launch(draft: Draft, total: str, task: str, target: Target) -> None:
    """Make one loop of all around the last block, to that over tasks, and give it to threads."""
    around = draft.loops(total)
    task = draft.fuse(total, around[: around.index(task) + 1])
    if target.cores > 1:
        draft.do(Parallel, block=total, loop=task)
    draft.settled.update(block.block_name for block in blocks_in(draft.module) if task in draft.loops(block.block_name))


def _scored(draft: Draft, parts: AttentionBlocks) -> str:
    """Keep scores in registers until the last step on them; the block that writes what softmax reads."""
    if not parts.steps:
        return _staged(draft, parts.scores)
    draft.do(SetScope, block=parts.scores, scope="local")
    return parts.steps[-1]


def _staged(draft: Draft, name: str) -> str:
    """Keep the sums of a block in registers; the block that copies them from there."""
    (output,) = draft.block(name).outputs
    label = f"{name}_tile"
    draft.do(CacheWrite, block=name, buffer=buffer_name(output), scope="local", label=label)
    return label


def _before(draft: Draft, name: str, loop: str) -> list[str]:
    around = draft.loops(name)
    return around[: around.index(loop)]


def _inside(draft: Draft, name: str, place: str) -> dict[str, str]:
    """The loop of each axis of a block that has just been moved to the loop `place`."""
    axes = sorted(draft.block(name).axes, key=lambda a: a.reduce)
    return dict(zip((a.name for a in axes), draft.loops(name, below=place), strict=True))


def _carried(draft: Draft, running: str, task: str, row: str) -> str:
    """Carry maximum and sums over blocks of keys in each task; the loop over them."""
    draft.do(ComputeAt, block=running, loop=task, unit_loops=True)
    loops = _inside(draft, running, task)
    blocks = list(loops.values())[-1]
    draft.order(running, [blocks, *(n for n in loops.values() if n not in (blocks, loops[row])), loops[row]])
    return blocks


def _tiled(draft: Draft, plan: AttentionPlan, copy: str, product: str, place: str) -> None:
    """Compute a product in register tiles, which `copy` takes from there."""
    names, side = ({}, plan.columns) if copy not in plan.parts.keys else (plan.parts.keys, plan.keys)
    loops = _inside(draft, copy, place)
    row, other = loops.pop(plan.parts.rows[copy]), loops.pop(names.get(copy, plan.parts.columns))
    outer, vectors, lanes = draft.split(copy, row, (0, plan.vectors, plan.lanes))
    tiles, inner = draft.split(copy, other, (0, side))
    draft.order(copy, [*loops.values(), outer, tiles, inner, vectors, lanes])
    _registers(draft, copy, (inner, vectors), lanes)
    draft.do(ComputeAt, block=product, loop=tiles, unit_loops=True)
    loops = _inside(draft, product, tiles)
    row, across = loops.pop(plan.parts.rows[product]), loops.pop(names.get(product, plan.parts.columns))
    vectors, lanes = draft.split(product, row, (0, plan.lanes))
    draft.order(product, [*loops.values(), across, vectors, lanes])
    _registers(draft, product, (across, vectors), lanes)


def _registers(draft: Draft, name: str, unrolled: tuple[str, ...], lanes: str) -> None:
    draft.do(Vectorize, block=name, loop=lanes)
    for loop in unrolled:
        draft.do(Unroll, block=name, loop=loop)


def _elementwise(draft: Draft, plan: AttentionPlan, name: str, place: str) -> None:
    """Vectors of queries for a step of the softmax, or a reduction of it, which goes over keys outside of them."""
    loops = _inside(draft, name, place)
    row = loops[plan.parts.rows[name]]
    outer, vectors, lanes = draft.split(name, row, (0, plan.vectors, plan.lanes))
    draft.order(name, [outer, *(n for n in loops.values() if n != row), vectors, lanes])
    _registers(draft, name, (vectors,), lanes)


def _pack_queries(draft: Draft, plan: AttentionPlan, task: str) -> None:
    """Lay the queries of a task out with rows as lanes."""
    scores, buffer = plan.parts.scores, plan.parts.queries
    row, label = plan.parts.rows[scores], f"{buffer}_panel"
    load = next(load for load in draft.block(scores).loads if buffer_name(load.buffer) == buffer)
    others = (str(e.as_axis()) for e in load.indices.data if e.as_axis() != row)
    draft.do(CacheRead, block=scores, buffer=buffer, scope="global", layout=(*others, row), label=label)
    draft.do(ComputeAt, block=label, loop=task, unit_loops=True)
    in_lanes(draft, label, plan.lanes)


def _turn_masks(draft: Draft, name: str, row: str) -> None:
    """Lay masks that are constants out ahead with rows as lanes; the lanes of others are loaded one by one."""
    for load in draft.block(name).loads:
        names = [e.as_axis() for e in load.indices.data]
        if row in names[:-1] and None not in names and is_argument(load.buffer):
            layout = (*(str(n) for n in names if n != row), row)
            with suppress(ScheduleError):
                draft.do(TransformLayout, block=name, buffer=buffer_name(load.buffer), layout=layout)


def _vectors(draft: Draft, name: str, lanes: int) -> None:
    """Make the innermost loop one of vectors."""
    _, inner = draft.split(name, draft.loops(name)[-1], (0, lanes))
    draft.do(Vectorize, block=name, loop=inner)


def _rows_last(draft: Draft, name: str, row: str) -> None:
    """Have neighbouring rows next to each other in all that a block writes."""
    block = draft.block(name)
    names = [str(e.as_axis()) for e in block.write_indices[0]]
    if names[-1] != row:
        layout = (*(n for n in names if n != row), row)
        for output in [buffer_name(o) for o in block.outputs]:
            draft.do(TransformLayout, block=name, buffer=output, layout=layout)
