"""The steps of attention on matrix units: each thread keeps its digits of scores, weights and results in registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...dialects.attributes import Axis
from ...dialects.buffers import SWIZZLES
from ...dialects.index import axis
from ...dialects.intrinsics import without_columns
from ...passes.analysis.access import consumers
from ...passes.analysis.matrix_product import TURNED_BYTES
from ...passes.analysis.nest import buffer_name
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.online_softmax import OnlineSoftmax
from ...passes.schedule.pad import Pad
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.swizzle import Swizzle
from ...passes.schedule.tensorize import Tensorize
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.attention_model import AttentionModel
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole
from ..structure.attention import AttentionBlocks
from ..structure.products import Factor, Product

Number = Hole | Derived | int

THREADS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
"""Axes for warps, for the rows of a matrix of 8 rows, and for the lanes that hold one of these."""
PANEL = SWIZZLES[0] // TURNED_BYTES
"""Elements of a row in shared memory, where warp groups read it: those of the widest swizzle."""
ROW_LANES, COLUMN_LANES, PAIR = 8, 4, 2
"""Digits of a thread's place in a matrix of sums: 8 x 8 in each register pair (PTX ISA, mma.m16n8k16)."""


@dataclass(frozen=True)
class AttentionPlan:
    """Attention in blocks of `rows` queries, which are `warps` of `tiles` matrices, and of `terms` keys.

    `scores` and `values` are its two products, by one intrinsic of warps, or by those of warp groups with as many
    columns as there are terms, and elements of a value. Registers are to let `resident` blocks fit a multiprocessor.
    Keys and values are copied in `bulk` by the copy engine, or by threads. Ragged rows and keys, which matrices do not
    divide, are extended to whole blocks of them; keys by instructions of warps alone.
    """

    parts: AttentionBlocks
    scores: Product
    values: Product
    warps: Hole
    tiles: Hole
    terms: Hole
    stages: Hole
    resident: Hole
    rows: Derived
    bulk: bool
    model: AttentionModel
    ragged_rows: bool = False
    ragged_keys: bool = False

    @property
    def in_groups(self) -> bool:
        """True where warp groups multiply."""
        return self.scores.intrinsic.reads_shared


@dataclass(frozen=True)
class _Digits:
    """The loops that the rows and columns of what a block writes are split to.

    `warp`, `row` and `column` are those of a thread's place, `tile`, `half`, `matrix` and `pair` of its elements.
    """

    warp: str
    tile: str
    half: str
    row: str
    matrix: tuple[str, ...]
    column: str
    pair: str

    @property
    def place(self) -> tuple[str, str, str]:
        return self.warp, self.row, self.column


@dataclass(frozen=True)
class _Blocks:
    """The blocks of the kernel: `part` weighs and adds up the values of one block of keys, `running` those of all.

    `inside` is all that is computed for a block of keys, what reads others first; `copies` bring queries, keys and
    values to shared memory.
    """

    part: str
    running: str
    inside: tuple[str, ...]
    copies: tuple[str, ...]


def write_attention(draft: Draft, plan: AttentionPlan) -> None:
    """Apply all steps of a plan; ScheduleError where a primitive refuses one."""
    draft.add(plan.warps, plan.tiles, plan.terms, plan.stages, plan.resident, plan.rows)
    draft.limits.append(plan.model.limit)
    _Writer(draft, plan).run()


class _Writer:
    """Writes the steps; `task` is the loop over tiles of queries, `place` the one over blocks of keys.

    `out` is the block that writes the results.
    """

    def __init__(self, draft: Draft, plan: AttentionPlan) -> None:
        self.draft, self.plan, self.parts = draft, plan, plan.parts
        self.task = self.place = ""
        self.out = plan.parts.total
        self._partials: list[str] = []

    def run(self) -> None:
        """Say which blocks there are, where they are computed, and which thread computes what of each."""
        draft, plan = self.draft, self.plan
        blocks = self._over_blocks_of_keys()
        self._take_epilogues()
        for block in (*blocks.inside, blocks.running):
            for buffer in [buffer_name(o) for o in draft.block(block).outputs]:
                draft.do(SetScope, block=block, buffer=buffer, scope="local")
        self._place(blocks.running, [*blocks.inside, *reversed(blocks.copies)])
        self._compute(blocks)
        queries = blocks.copies[0]
        for copy, factor in zip(blocks.copies, (*plan.scores.factors, plan.values.b), strict=True):
            self._fill(copy, factor, self.task if copy is queries else self.place)
        draft.do(Pipeline, block=blocks.running, loop=self.place, stages=plan.stages, bulk=int(plan.bulk))
        loops = draft.loops(self.out)
        task = draft.fuse(self.out, loops[: loops.index(self.task) + 1])
        draft.do(Bind, block=self.out, loop=task, thread="blockIdx.x")
        draft.do(Pragma, block=self.out, loop=task, blocks_per_sm=plan.resident)
        draft.settled.update((*blocks.inside, *blocks.copies, blocks.running, self.out, *self._partials))

    def _over_blocks_of_keys(self) -> _Blocks:
        """Make the softmax one over blocks of keys, with what it reads in shared memory, and pad to whole tiles."""
        draft, plan, parts, total = self.draft, self.plan, self.parts, self.parts.total
        for step in parts.steps[:-1]:
            draft.do(ComputeInline, block=step)
        part, running = OnlineSoftmax(total, 1, 1).check(draft.module).names
        masked = parts.steps[-1:]
        if plan.ragged_keys:
            self._pad(parts.keys, (parts.scores, *masked), plan.terms)
        if plan.ragged_rows:
            self._pad(parts.rows, (parts.scores, *masked), plan.rows)
        copies = [self._copied(parts.scores, plan.scores, factor) for factor in plan.scores.factors]
        if plan.ragged_keys:
            draft.do(OnlineSoftmax, block=total, terms=plan.terms, rounded=1, padded=1)
            copies.append(self._copied(part, plan.values, plan.values.b, draft.block(part).axes[-2:]))
        else:
            copies.append(self._copied(total, plan.values, plan.values.b))
            draft.do(OnlineSoftmax, block=total, terms=plan.terms, rounded=1)
        exponential, largest = parts.exponential, parts.largest
        quotient, denominator = parts.quotient, parts.denominator
        if plan.ragged_rows:
            rows = {**parts.rows, part: parts.rows[total], running: parts.rows[total]}
            self._pad(rows, (exponential, largest, quotient, denominator, part, running), plan.rows)
        return _Blocks(
            part, running, (part, quotient, denominator, exponential, largest, *masked, parts.scores), tuple(copies)
        )

    def _compute(self, blocks: _Blocks) -> None:
        """Have each thread compute its digits of every block: products by instructions, elements, and reductions."""
        plan, parts = self.plan, self.parts
        of_terms = [plan.terms] if plan.in_groups else []
        self._product(parts.scores, parts.rows[parts.scores], parts.keys[parts.scores], *of_terms)
        for block in parts.steps[-1:]:
            self._element(block, parts.rows[block], parts.keys[block], in_pairs=True)
        self._reduction(parts.largest)
        for block in (parts.exponential, parts.quotient):
            self._element(block, parts.rows[block], self.draft.block(block).axes[-1].name)
        row = parts.rows[parts.total]
        self._product(blocks.part, row, parts.columns)
        self._reduction(parts.denominator)
        self._element(blocks.running, row, parts.columns)
        self._results()

    # -- what there is ------------------------------------------------------------------------------------------------

    def _copied(self, block: str, product: Product, factor: Factor, summed: Sequence[Axis] = ()) -> str:
        """Read a factor from shared memory; the block that copies it there. `summed` are the digits of k, if any."""
        label, batch = f"{factor.operand.name}_shared", [a.name for a in product.batch]
        (row,), k = factor.rows, summed or product.k
        axes = (*k, row) if factor.turned else (row, *k)
        layout: tuple[str, ...] = (*batch, *(a.name for a in axes))
        inner = axes[-1]
        if self.plan.in_groups and inner.extent > PANEL:
            layout = (*layout[:-2], f"{inner.name}/{PANEL}", layout[-2], f"{inner.name}%{PANEL}")
        self.draft.do(CacheRead, block=block, buffer=factor.operand.name, scope="shared", layout=layout, label=label)
        return label

    def _pad(self, axes: Mapping[str, str], blocks: Iterable[str], factor: Number) -> None:
        """Extend an axis of blocks, in the order in which they read each other, to a multiple of a tile's."""
        for name in blocks:
            loop = self.draft.block(name).bound[axes[name]].as_axis()
            self.draft.do(Pad, block=name, loop=str(loop), factor=factor)

    def _take_epilogues(self) -> None:
        """Have who reads the results compute them, as far as it is one block that goes over them element by element."""
        draft = self.draft
        with suppress(ScheduleError):
            while len(found := consumers(draft.block(self.out))) == 1 and not found[0].is_reduction:
                draft.do(ComputeInline, block=self.out)
                self.out = found[0].block_name

    def _results_of(self, running: str, name: str) -> str:
        """The loop of the last block over an axis of the running sums: of its own, or within one over several axes."""
        draft, run = self.draft, self.draft.block(running)
        dimension = [e.as_axis() for e in run.write_indices[0]].index(name)
        load = next(load for load in draft.block(self.out).loads if load.buffer is run.outputs[0])
        index = load.indices.data[dimension]
        if (plain := index.as_axis()) is not None:
            return plain
        extent = next(a.extent for a in run.axes if a.name == name)
        (around,) = index.axes()
        if index != axis(around) % extent:
            raise ScheduleError(None, f"'{self.out}' goes over '{name}' in another order")
        return draft.split(self.out, around, (0, extent))[1]

    def _place(self, running: str, inside: list[str]) -> None:
        """Carry sums over blocks of keys for each tile of queries, and compute all else in there."""
        draft = self.draft
        column = self._results_of(running, self.parts.columns)
        row = self._results_of(running, self.parts.rows[self.parts.total])
        self.task, rest = draft.split(self.out, row, (0, self.plan.rows))
        before = [n for n in draft.loops(self.out) if n not in (self.task, rest, column)]
        draft.order(self.out, [*before, self.task, rest, column])
        draft.do(ComputeAt, block=running, loop=self.task, unit_loops=True)
        loops = draft.loops(running, below=self.task)
        self.place = loops[-1]
        draft.order(running, [self.place, *loops[:-1]])
        for block in inside[:-1]:
            draft.do(ComputeAt, block=block, loop=self.place, unit_loops=True)
        draft.do(ComputeAt, block=inside[-1], loop=self.task, unit_loops=True)

    def _inside(self, name: str) -> dict[str, str]:
        """The loop of each axis of a block that has been moved to its place; not that over blocks of keys itself."""
        axes, loops = sorted(self.draft.block(name).axes, key=lambda a: a.reduce), self.draft.loops(name, self.place)
        return dict(zip((a.name for a in axes[: len(loops)]), loops, strict=True))

    # -- digits -------------------------------------------------------------------------------------------------------

    def _rows(self, block: str, loop: str) -> list[str]:
        return self.draft.split(block, loop, (0, self.plan.tiles, 2, ROW_LANES))

    def _columns(self, block: str, loop: str) -> list[str]:
        matrices = 1 if self.plan.in_groups else self.plan.scores.intrinsic.n // ROW_LANES
        return self.draft.split(block, loop, (0, *((matrices,) if matrices > 1 else ()), COLUMN_LANES, PAIR))

    def _digits(self, block: str, row: str, column: str) -> _Digits:
        warp, tile, half, lane = self._rows(block, row)
        *matrix, across, pair = self._columns(block, column)
        return _Digits(warp, tile, half, lane, tuple(matrix), across, pair)

    def _order(self, block: str, wanted: list[str]) -> None:
        """Order the loops that a block has in its place, those of one iteration in front."""
        place = self.task if block == self.out else self.place
        inside = self.draft.loops(block, below=place)
        self.draft.order(block, [*(n for n in inside if n not in wanted), *wanted])

    def _bind(self, block: str, loops: tuple[str, str, str]) -> None:
        for loop, thread in zip(loops, THREADS, strict=True):
            self.draft.do(Bind, block=block, loop=loop, thread=thread)

    def _unroll(self, block: str, *loops: str) -> None:
        for loop in loops:
            self.draft.do(Unroll, block=block, loop=loop)

    def _product(self, block: str, row: str, column: str, *columns: Hole) -> None:
        """Compute a product by the matrix instruction, or its like of other `columns`, each lane its sums.

        One of warp groups has all columns.
        """
        draft, x, loops = self.draft, self.plan.scores.intrinsic, self._inside(block)
        d = self._digits(block, loops[row], loops[column])
        steps, k = draft.split(block, list(loops.values())[-1], (0, x.k))
        apart = d.matrix[: 0 if self.plan.in_groups else 1]
        parts = d.matrix[len(apart) :]
        self._order(block, [*d.place, steps, d.tile, *apart, *parts, d.half, d.pair, k])
        self._bind(block, d.place)
        self._unroll(block, steps, d.tile, *apart)
        before, behind = without_columns(x) if columns else (x.name, "")
        draft.do(Tensorize, block=block, loop=(*parts, d.half)[0], intrinsic=[before, *columns, behind])

    def _element(self, block: str, row: str, column: str, in_pairs: bool = False) -> None:
        """Compute what is of one element, each thread for those it holds; in pairs where it reads global memory."""
        loops = self._inside(block)
        d = self._digits(block, loops[row], loops[column])
        self._order(block, [*d.place, d.tile, *d.matrix, d.half, d.pair])
        self._bind(block, d.place)
        self._unroll(block, d.tile, *d.matrix, d.half)
        self.draft.do(Vectorize if in_pairs else Unroll, block=block, loop=d.pair)

    def _reduction(self, block: str) -> None:
        """Reduce a row over the columns that a thread holds, then over the lanes that hold the row."""
        draft, loops = self.draft, self._inside(block)
        row, column = loops[self.parts.rows[block]], list(loops.values())[-1]
        d = self._digits(block, row, column)
        self._order(block, [d.warp, d.row, d.tile, d.half, d.column, *d.matrix, d.pair])
        partial = draft.partial(block, d.column)
        self._partials.append(partial)
        own, joined = (draft.loops(name, below=d.half) for name in (partial, block))
        self._bind(partial, (d.warp, d.row, own[0]))
        draft.do(Bind, block=block, loop=joined[0], thread=THREADS[-1])
        self._unroll(partial, d.tile, d.half, *own[1:])
        draft.do(SetScope, block=partial, scope="local")

    def _results(self) -> None:
        """Divide the sums at the end, two neighbours at a time."""
        out, (row, column) = self.out, self.draft.loops(self.out, below=self.task)
        d = self._digits(out, row, column)
        self._order(out, [*d.place, d.tile, *d.matrix, d.half, d.pair])
        self._bind(out, d.place)
        self._unroll(out, d.tile, *d.matrix, d.half)
        self.draft.do(Vectorize, block=out, loop=d.pair)

    def _fill(self, copy: str, factor: Factor, place: str) -> None:
        """Copy to shared memory by all threads, 16 bytes each at once, in chunks that lie apart in the banks.

        Boxes are left to the copy engine.
        """
        draft = self.draft
        if self.plan.bulk and place == self.place:
            draft.do(Swizzle, block=copy)
            return
        both = draft.fuse(copy, draft.loops(copy, below=place))
        parts = draft.split(copy, both, (0, self.plan.warps, ROW_LANES, COLUMN_LANES, factor.vector))
        self._bind(copy, (parts[1], parts[2], parts[3]))
        draft.do(Vectorize, block=copy, loop=parts[4])
        draft.do(Swizzle, block=copy)
