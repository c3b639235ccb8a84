"""A product whose terms groups of a block of threads share, and whose rows are read along them: its plan and steps.

So are its columns, where their terms lie side by side and nothing packs them ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.analysis.views import run_of
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.gpu_model import GpuModel
from ..estimates.gpu_tile import Aligned, GpuAxis, GpuOperand, GpuReduce, Span
from ..estimates.sliced_model import SlicedModel, copied_at_once
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Derived, Hole, Kind
from ..structure.anchor import Anchor, Operand, anchor_of
from ..structure.kinds import contraction_of
from ._ahead import may_be_packed_ahead
from ._gpu_copies import Reads, SharedCopy, bring, in_registers, into_registers, rows_for
from ._gpu_division import Division, blocks_of_sum, joining_block, plan_division, sum_up, write_division
from ._gpu_joins import loops_by_axis
from ._gpu_large_tiles import LARGE_UNROLLED
from ._gpu_tile_plan import product_of
from ._gpu_tiles import join_parts, plan_join

LEAST_PRODUCTS = 2_000_000
"""Multiply-adds of a product, at least. A choice: with fewer, most of the time is that of a launch. 14 convolutions of
one tap with 3 to 6 million take 1 / 1.24 of the time of other structures (an H200), 28 with up to 10 1 / 1.17, and
192x14x14 to 64, of 2.4, 2.2 us for 2.7."""
MOST_RESULTS, MOST_OF_SCATTERED = 1 << 22, 1 << 24
"""Results, at most, and for pixels that are strided or no whole vectors, which other structures, of images, copy one by
one as well. A choice: more keep all multiprocessors busy. Of ten products of one to three million results (an H200) two
took 1 / 1.15 and 1 / 1.26 of the time, one 1.22 times as long by a tile that is not chosen any more. Of convolutions of
one tap with 4 to 20 million six took 1.08 to 1.32 times as long and one 1 / 1.09, but of scattered pixels 1 / 1.68,
1 / 1.28, 1 / 1.18 and 1.02; 2712x2910x568 is estimated at 1.1 times what it takes."""
MOST_OF_TURNED = 1 << 20
"""The same for columns whose terms lie side by side. Of 81 products drawn at random (an H200) the ten with more took
1.07 times as long as by other structures (0.94 to 1.40), the others 1 / 1.14 (1 / 1.63 to 1.15)."""
MOST_AXES = 4
"""Axes of the results, at most: those before rows and columns are on blocks of their own. A choice: two of a batch."""
LEAST_COLUMNS, USUAL_ROWS = 32, (8, 4)
"""Columns, at least: those of the smallest tiles; and threads and results of one along rows that defaults have."""
LEAST_TERMS = 32
"""Terms of a product, at least: two fills of two slices of 8. With 32 to 63 of them 14 convolutions of one tap take
1 / 1.13 of the time of other structures (an H200), and with 8 to 31 filters as rows 19 take 1 / 1.36."""
ROWS_THREADS, ROWS_INNER = (2, 4, 8, 12, 16), (2, 3, 4, 5, 6, 7, 8, 10, 12)
"""Threads, and results of a thread, along rows. Neighbouring threads have neighbouring rows, so that a warp's vectors
are in different banks: with four or eight rows side by side in a thread they would be in the same ones."""
COLUMNS_VIRTUAL, COLUMNS_THREADS = (1, 2, 3), (8, 16, 32)
"""Vectors of results of a thread, and threads, along columns."""
COLUMNS_INNER = (2, 3, 4, 5, 6, 8, 10, 12)
"""Results of a thread along columns whose terms lie side by side, which are read along these as rows are: copied by
vectors, where other tiles turn them round one by one. On an H200 dense 197x3072 to 768 takes 30.9 us so and 39.7
otherwise, 67x1344 to 928 9.7 and 13.8, scores of 12 heads of 128 rows by 64 2.8 and 3.4."""
SLICES, STEPS, STAGES = (2, 4, 8), (8, 16, 32), (2, 3, 4)
"""Groups of threads that share the terms, terms of each in a fill of shared memory, and stages of the pipeline.

Untuned on an H200 10.2 us for 196x1536x384 where 12.5 was chosen of other structures, 8.8 for 784x768x192 and 10.7, 7.5
for 128x768x768 and 9.3, 20.1 for 128x3072x768 and 22.5. Written by hand (22 variants and some near the best of each)
such kernels took 8.8, 8.2, 7.2 and 18.2, the best with 4 or 8 slices, 5 to 12 rows by 4 to 12 columns in a thread."""


def is_sliced(anchor: Anchor, target: Target, pixels: bool = False) -> bool:
    """True for a product of few results, as float32, on CUDA devices; rows or columns may be `pixels` made one axis.

    Rows of a factor may begin anywhere: their elements are copied one by one then, and read as vectors all the same. On
    an H200 weighted 8x623x977x80 takes 32.2 us so and 42.0 otherwise, 12x152x293x80 6.0 and 8.8, 777x1025x513 32.0 and
    35.1.
    """
    if target.kind != "cuda" or len(anchor.reduce) != 1 or contraction_of(anchor) is None:
        return False
    if not 2 <= len(anchor.spatial) <= MOST_AXES:
        return False
    (*_, rows, columns), (terms,) = anchor.spatial, anchor.reduce
    if anchor.pads or element_bytes(anchor.element) != FLOAT32_BYTES:
        return False
    results = prod(axis.extent for axis in anchor.spatial)
    work = results * terms.extent
    if work < LEAST_PRODUCTS or results > MOST_OF_SCATTERED or terms.extent < LEAST_TERMS:
        return False
    if columns.extent < LEAST_COLUMNS or not _tiles_of_rows(anchor):
        return False
    found = factors_of_product(anchor)
    if found is None or not all(_is_plain(operand, rows.name, terms.name) for operand in found):
        return False
    if _is_turned(anchor, found[1]):
        return results <= MOST_OF_TURNED
    return results <= MOST_RESULTS or (pixels and copied_at_once(_run_of(found[1])) == 1)


def rows_together(anchor: Anchor) -> int:
    """Neighbouring rows of a product that have the same columns: all, or those of a group."""
    rows = anchor.spatial[-2]
    return anchor.run_of(rows.name) if anchor.shared_by_all(rows.name) else rows.extent


def _tiles_of_rows(anchor: Anchor) -> list[tuple[int, int]]:
    """Threads, and results of a thread, of tiles that go into the rows, or that divide those of a group."""
    together, groups = rows_together(anchor), rows_together(anchor) < anchor.spatial[-2].extent
    pairs = [(threads, inner) for threads in ROWS_THREADS for inner in ROWS_INNER if threads * inner <= together]
    return [pair for pair in pairs if not groups or together % prod(pair) == 0]


def factors_of_product(anchor: Anchor) -> tuple[Operand, Operand] | None:
    """The factors by rows, with terms side by side, and by columns, of which columns or terms are; None for others."""
    (*_, rows, columns), (terms,) = anchor.spatial, anchor.reduce
    if anchor.shared_by_all(rows.name):
        anchor = anchor.within_runs(rows.name)
    by_rows = [o for o in anchor.operands if o.steps_along(terms.name) and rows.name in o.axes]
    by_columns = [o for o in anchor.operands if columns.name in o.axes and _lies_by(o, columns, terms)]
    if not by_columns and not by_rows[1:]:
        by_columns = [o for o in anchor.operands if columns.name in o.axes and o.steps_along(terms.name)]
    if len(by_rows) != 1 or len(by_columns) != 1 or by_rows[0].name == by_columns[0].name:
        return None
    found = by_rows[0], by_columns[0]
    return found if columns.name not in found[0].axes and rows.name not in found[1].axes else None


def _run_of(operand: Operand) -> int:
    """Elements of a row of a factor, which the next row begins behind; one of what is read at a stride."""
    steps = any(isinstance(atom, str) and c == 1 for atom, c in operand.indices[-1].terms)
    return run_of(operand.buffer) if steps else 1


def _is_gathered(operand: Operand, terms: str) -> bool:
    """True for a factor whose rows are not those of its buffer, as the pixels of a convolution with strides."""
    return any(e.as_axis() is None and not e.is_constant and terms not in e.axes() for e in operand.indices)


def _is_plain(operand: Operand, rows: str, terms: str) -> bool:
    """True for a factor that is read at its axes, and whose tiles begin at multiples of a vector of a row.

    Terms may begin elsewhere for each group of rows, unless they are strided, too.
    """
    groups = set() if _is_gathered(operand, terms) else {rows}
    return all(e.const % VECTOR == 0 and len(e.axes() - groups) <= 1 for e in operand.indices)


def _lies_by(operand: Operand, columns: Axis, terms: Axis) -> bool:
    """True for a factor whose columns lie side by side, or are laid out so, ahead (`packed_row`) or when copied."""
    packed = columns.extent % VECTOR == 0 and may_be_packed_ahead(operand, (columns.name,))
    return packed or operand.steps_along(columns.name) or _is_gathered(operand, terms.name)


def _is_turned(anchor: Anchor, by_columns: Operand) -> bool:
    """True for a factor by columns whose terms lie side by side, and which nothing lays out otherwise."""
    return not _lies_by(by_columns, anchor.spatial[-1], anchor.reduce[0])


@dataclass(frozen=True)
class _Plan:
    """The numbers of a product in slices: those of rows and of columns are threads, and results of a thread.

    `runs` are elements of rows of the factors that lie side by side, which the next row begins behind. In a `turned`
    product terms of a column do, too, and neighbouring threads have neighbouring columns.

    `fixed` are those that have one choice, which the model asks of tiles in general: virtual threads along rows,
    elements of a vector, copies through registers and unrolled steps.
    """

    anchor: Anchor
    factors: tuple[Operand, Operand]
    copies: tuple[SharedCopy, SharedCopy]
    runs: tuple[int, int]
    rows: tuple[Hole, Hole]
    columns: tuple[Hole, Hole, Hole]
    slices: Hole
    step: Hole
    stages: Hole
    fixed: tuple[Hole, Hole, Hole, Hole]
    threads: Derived
    width: Derived
    tiles: tuple[Derived, Derived]
    turned: bool

    @property
    def holes(self) -> list[Hole]:
        return [*self.rows, *self.columns, self.slices, self.step, self.stages, *self.fixed]


def write_sliced(draft: Draft, anchor: Anchor, divided: bool, target: Target) -> Iterator[GpuModel]:
    """Plan a product in slices, with its model, then do the steps. Where it is `divided` blocks have parts of terms."""
    division = plan_division(anchor, False) if divided else None
    if division is not None:
        anchor = write_division(draft, division)
    plan = _plan(anchor)
    fills = -(-anchor.reduce[0].extent // (plan.slices.default * plan.step.default))
    if fills < plan.stages.default:
        raise ScheduleError(None, f"'{anchor.block}' has fewer fills of shared memory than its pipeline has stages")
    draft.add(*plan.holes, plan.threads, plan.width, *plan.tiles)
    model = _model(plan, division, target)
    draft.limits.append(model.limit)
    tile, together = plan.tiles[0].name, rows_together(anchor)
    if together < anchor.spatial[-2].extent:
        draft.limits.append(lambda c: np.asarray(together % c[tile] == 0))
    numbers = [*plan.holes, *([division.parts] if division is not None else [])]
    resident = Derived.of(f"{anchor.block}_shared_resident", model.fitting_blocks, numbers)
    draft.add(resident)
    joined = plan_join(draft, anchor.block, division) if division is not None else None
    draft.sure += 1
    draft.unseen += 1
    draft.settled |= {anchor.block, *([anchor.epilogue] if anchor.epilogue else [])}
    if division is not None:
        draft.settled |= blocks_of_sum(draft, division)
    yield model if joined is None else replace(model, join=joined.name)
    _write(draft, plan, resident)
    if division is not None and joined is not None:
        join_parts(draft, division, joined)


def _hole(block: str, name: str, choices: tuple[int, ...], wanted: int, kind: Kind = "tile") -> Hole:
    return Hole.near(f"{block}_shared_{name}", choices, wanted, kind)


def _fixed(block: str) -> tuple[Hole, Hole, Hole, Hole]:
    return (
        _hole(block, "rows_virtual", (1,), 1),
        _hole(block, "vector", (VECTOR,), VECTOR, "vector"),
        _hole(block, "registers", (0,), 0),
        _hole(block, "unroll", (LARGE_UNROLLED,), LARGE_UNROLLED, "unroll"),
    )


def _plan(anchor: Anchor) -> _Plan:
    block, factors = anchor.block, factors_of_product(anchor)
    assert factors is not None
    usual = min(_tiles_of_rows(anchor), key=lambda pair: (abs(prod(pair) - prod(USUAL_ROWS)), pair != USUAL_ROWS))
    rows = (
        _hole(block, "rows_threads", ROWS_THREADS, usual[0], "threads"),
        _hole(block, "rows_inner", ROWS_INNER, usual[1]),
    )
    turned = _is_turned(anchor, factors[1])
    columns = (
        _hole(block, "columns_virtual", (1,) if turned else COLUMNS_VIRTUAL, min(COLUMNS_VIRTUAL)),
        _hole(block, "columns_threads", COLUMNS_THREADS, 8, "threads"),
        _hole(block, "columns_inner", COLUMNS_INNER if turned else (VECTOR,), VECTOR),
    )
    slices = _hole(block, "slices", SLICES, min(SLICES), "parts")
    of_slice, counted = (rows[0], columns[1]), (rows[1], columns[0], columns[2], slices)

    def product(name: str, holes: tuple[Hole, ...]) -> Derived:
        return Derived.of(f"{block}_shared_{name}", product_of([hole.name for hole in holes]), holes)

    return _Plan(
        anchor,
        factors,
        (_copy(anchor, factors[0], True), _copy(anchor, factors[1], turned)),
        (_run_of(factors[0]), _run_of(factors[1])),
        rows,
        columns,
        slices,
        _hole(block, "step", STEPS, min(STEPS)),
        _hole(block, "stages", STAGES, 2, "stages"),
        _fixed(block),
        product("all_threads", (slices, *of_slice)),
        Derived.of(f"{block}_shared_width", partial(_width, [hole.name for hole in counted]), counted),
        (product("row_tile", rows), product("column_tile", columns)),
        turned,
    )


def _width(counted: Sequence[str], c: Columns) -> npt.NDArray[np.int64]:
    """Results that a thread adds up side by side: as many as go evenly into all threads."""
    *own, slices = counted
    return np.asarray(np.gcd(VECTOR, np.maximum(1, np.prod([c[name] for name in own], axis=0) // c[slices])))


def _model(plan: _Plan, division: Division | None, target: Target) -> SlicedModel:
    (*others, rows, columns), (terms,) = plan.anchor.spatial, plan.anchor.reduce
    extent = terms.extent if division is None else division.divided.extent
    virtual, vector, registers, unroll = (hole.name for hole in plan.fixed)

    def spans(*axes: Axis) -> tuple[Span, ...]:
        return tuple(Span(((axis.name, 1),)) for axis in axes)

    def read_along(axis: Axis, copy: SharedCopy, run: int) -> GpuOperand:
        if copy.apart is None:
            return GpuOperand(spans(terms, axis), vector, axis.name, run=run)
        aligned = Aligned(spans(terms), copy.apart.factor, copy.apart.offset)
        return GpuOperand(spans(axis, terms), vector, "", run=run, aligned=aligned)

    return SlicedModel(
        target=target,
        outer=prod(axis.extent for axis in others if division is None or axis.name != division.part),
        axes=(
            GpuAxis(rows.name, rows.extent, virtual, plan.rows[0].name, plan.rows[1].name),
            GpuAxis(columns.name, columns.extent, *(hole.name for hole in plan.columns)),
        ),
        reduce=(GpuReduce(terms.name, extent, plan.step.name),),
        operands=tuple(map(read_along, (rows, columns), plan.copies, plan.runs)),
        element_bytes=FLOAT32_BYTES,
        stages=plan.stages.name,
        registers=registers,
        unroll=unroll,
        split=plan.slices.name,
        divided=terms.name,
        sliced=True,
        parts=division.parts.name if division is not None else "",
        turned=plan.turned,
    )


def _write(draft: Draft, plan: _Plan, resident: Derived) -> None:
    """Sums of slices in registers of their threads, then in shared memory, where all threads add them up."""
    anchor = plan.anchor
    (terms,) = anchor.reduce
    for shared, operand in zip(plan.copies, plan.factors, strict=True):
        if _is_gathered(operand, terms.name):
            shared.read_by(draft, anchor.block)
    fill, part, steps = draft.split(anchor.block, terms.name, (0, plan.slices, plan.step))
    others = [n for n in draft.loops(anchor.block) if n not in (fill, part, steps)]
    draft.order(anchor.block, (part, *others, fill, steps))
    sums = draft.partial(anchor.block, part, 0)
    found = anchor_of(draft.module, sums)
    copy = f"{found.output}_tile"
    draft.do(CacheWrite, block=sums, buffer=found.output, scope="local", label=copy)
    division = Division(anchor.block, terms, plan.slices, True)
    grid = _results(draft, plan, division)
    draft.do(ComputeAt, block=copy, loop=grid, unit_loops=True)
    draft.do(SetScope, block=copy, scope="shared")
    for shared, operand in zip(plan.copies, plan.factors, strict=True):
        if not _is_gathered(operand, terms.name):
            shared.read_by(draft, sums)
        draft.do(CacheRead, block=sums, buffer=shared.label, scope="local", label=f"{shared.label}_own")
    for shared in plan.copies:
        shared.keep_apart(draft)
    draft.do(ComputeAt, block=sums, loop=grid, unit_loops=True)
    _tile(draft, plan, _Sums(sums, copy, grid))
    draft.do(Pragma, block=sums, loop=grid, blocks_per_sm=resident)
    draft.settled |= {sums, copy}


def _copy(anchor: Anchor, operand: Operand, along_terms: bool) -> SharedCopy:
    """The copy of a factor, which threads read along terms or along columns; a gathered one has rows of its own."""
    columns, terms = anchor.spatial[-1].name, anchor.reduce[0].name
    layout = tuple(sorted(operand.axes, key=lambda axis: axis == columns)) if _is_gathered(operand, terms) else ()
    apart = rows_for(Reads.TERMS, len(layout or operand.indices) - 2) if along_terms else None
    return SharedCopy(operand.name, f"{operand.name}_shared", layout, apart)


@dataclass(frozen=True)
class _Sums:
    """The block of the sums of slices, that of their copies, and the loop over blocks of threads."""

    block: str
    copy: str
    grid: str

    def loops(self, draft: Draft) -> list[str]:
        """The loops over slices, rows and columns, and those over fills and the terms of one."""
        block, below = draft.block(self.block), draft.loops(self.block, self.grid)
        written = [str(e.as_axis()) for e in block.write_indices[0]]
        axes = [*written, *(a.name for a in block.axes if a.reduce)]
        return [next(loop for loop in below if loop in block.bound[axis].axes()) for axis in axes]


def _results(draft: Draft, plan: _Plan, division: Division) -> str:
    """Tile what is written, and have it add up the slices; the loop over blocks of threads."""
    out = joining_block(draft, division)
    loops = loops_by_axis(draft, division.final, out)
    wide = [loops[axis.name] for axis in plan.anchor.spatial[-2:]]
    taker = draft.block(out)
    if (last := taker.write_indices[0][-1].as_axis()) is None or taker.bound[last].as_axis() != wide[-1]:
        raise ScheduleError(None, f"'{out}' must write columns side by side")
    inside = []
    blocks = [loop for loop in draft.loops(out) if loop not in wide]
    for loop, tile in zip(wide, plan.tiles, strict=True):
        outer, inner = draft.split(out, loop, (0, tile))
        blocks.append(outer)
        inside.append(inner)
    draft.order(out, (*blocks, *inside))
    grid, results = draft.fuse(out, blocks), draft.fuse(out, inside)
    draft.do(Bind, block=out, loop=grid, thread="blockIdx.x")
    _, thread, vector = draft.split(out, results, (0, plan.threads, plan.width))
    draft.do(Bind, block=out, loop=thread, thread="threadIdx.x")
    draft.do(Vectorize, block=out, loop=vector)
    sum_up(draft, division, out, thread)
    return grid


def _columns(draft: Draft, plan: _Plan, block: str, loop: str) -> tuple[list[str], str, list[str], list[str]]:
    """The loops over columns: those apart, as rows are, over threads, over vectors of a thread, and over lanes."""
    if plan.turned:
        apart, column = draft.split(block, loop, plan.columns[:0:-1])
        return [apart], column, [], []
    virtual, column, vector = draft.split(block, loop, plan.columns)
    return [], column, [virtual], [vector]


def _tile(draft: Draft, plan: _Plan, sums: _Sums) -> None:
    """Divide a tile among threads, and bring its factors a fill at a time."""
    name = sums.block
    part, *_, rows, columns, fill, steps = sums.loops(draft)
    own, row = draft.split(name, rows, plan.rows[::-1])
    apart, column, virtual, vector = _columns(draft, plan, name, columns)
    some, one = draft.split(name, steps, (0, VECTOR))
    inside = (fill, some, one, *virtual, *vector)
    outside = (own, *apart, part, row, column)
    of_parts = [n for n in draft.loops(name, sums.grid) if n not in (*outside, *inside)] if plan.turned else []
    draft.order(name, (*outside, *of_parts, *inside))
    for loop in (own, *apart):
        draft.do(Bind, block=name, loop=loop, thread="vthread")
    thread = draft.fuse(name, [part, row, column])
    draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
    for loop in (one, *virtual):
        draft.do(Unroll, block=name, loop=loop)
    for loop in vector:
        draft.do(Vectorize, block=name, loop=loop)
    draft.do(ReverseComputeAt, block=sums.copy, loop=thread)
    if vector:
        in_registers(draft, sums.copy, draft.loops(sums.copy, thread))
    for copy, loop in zip(plan.copies, (some, *virtual, *([some] if plan.turned else [])), strict=True):
        into_registers(draft, f"{copy.label}_own", loop)
    for copy, run in zip(plan.copies, plan.runs, strict=True):
        bring(draft, copy.label, fill, {"threadIdx.x": plan.threads}, copied_at_once(run))
    draft.do(Pragma, block=name, loop=some, auto_unroll_max_step=LARGE_UNROLLED)
    draft.do(Pipeline, block=name, loop=fill, stages=plan.stages)
