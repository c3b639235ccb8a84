"""The steps of attention on matrix units: each thread keeps its digits of scores, weights and results in registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...dialects.attributes import Axis
from ...dialects.buffers import SWIZZLES
from ...dialects.index import axis
from ...dialects.intrinsics import without_columns
from ...dialects.target import Target
from ...passes.analysis.access import consumers
from ...passes.analysis.matrix_product import TURNED_BYTES
from ...passes.analysis.nest import buffer_name
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.join import Join
from ...passes.schedule.online_softmax import OnlineSoftmax
from ...passes.schedule.pad import Pad
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.tensorize import Tensorize
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole, Number
from ..structure.attention import AttentionBlocks
from ..structure.products import Factor, Product
from ._gpu_copies import Reads, among_threads, place_rows, rows_for
from ._gpu_joins import PART_AXIS, bind_part, share_threads

THREADS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
"""Axes for warps, for the rows of a matrix of 8 rows, and for the lanes that hold one of these."""
PANEL = SWIZZLES[0] // TURNED_BYTES
"""Elements of a row in shared memory, where warp groups read it: those of the widest swizzle."""
JOINING_THREADS, JOINED_AT_ONCE = 128, 64
"""Threads of a block that joins parts, an element each, and the steps of that that are written out."""
ROW_LANES, COLUMN_LANES, PAIR = 8, 4, 2
"""Digits of a thread's place in a matrix of sums: 8 x 8 in each register pair (PTX ISA, mma.m16n8k16)."""


@dataclass(frozen=True)
class AttentionPlan:
    """Attention in blocks of `rows` queries, which are `warps` of `tiles` matrices, and of `terms` keys.

    `scores` and `values` are its two products, by one intrinsic of warps, or by those of warp groups with as many
    columns as there are terms, and elements of a value. Registers are to let `resident` blocks fit a multiprocessor.
    Keys and values are copied in `bulk` by the copy engine, or by threads. Ragged rows and keys, which matrices do not
    divide, are extended to whole blocks of them; keys by instructions of warps alone. Blocks of keys may be
    `divided` into parts on blocks of threads of their own, whose sums a second kernel joins, or these blocks
    where they are `clustered`.
    """

    target: Target
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
    ragged_rows: bool = False
    ragged_keys: bool = False
    divided: Hole | None = None
    clustered: bool = False

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


def write_attention(draft: Draft, plan: AttentionPlan) -> None:
    """Apply all steps of a plan; ScheduleError where a primitive refuses one."""
    parts = () if plan.divided is None else (plan.divided,)
    draft.add(plan.warps, plan.tiles, plan.terms, plan.stages, plan.resident, *parts, plan.rows)
    _Writer(draft, plan).run()


class _Writer:
    """Writes the steps; `task` is the loop over tiles of queries, `place` the one over blocks of keys.

    `out` is the block that writes the results, or what a part comes to, of which another one then writes them.
    """

    def __init__(self, draft: Draft, plan: AttentionPlan) -> None:
        self.draft, self.plan, self.parts = draft, plan, plan.parts
        self.task = self.place = ""
        self.out = self._result = plan.parts.total
        self._partials: list[str] = []
        self._others: list[str] = []
        self._loops_of: dict[str, dict[str, str]] = {}

    def run(self) -> None:
        draft, parts, total = self.draft, self.parts, self.parts.total
        for step in parts.steps[:-1]:
            draft.do(ComputeInline, block=step)
        part, running = OnlineSoftmax(total, 1, 1).check(draft.module).names
        masked = parts.steps[-1:]
        copies = self._in_blocks(part, masked)
        inside = [part, parts.quotient, parts.denominator, parts.exponential, parts.largest, *masked, parts.scores]
        running = self._carried(running, inside)
        self._place(running, [*inside, *reversed(copies)])
        of_terms = [self.plan.terms] if self.plan.in_groups else []
        self._product(parts.scores, parts.rows[parts.scores], parts.keys[parts.scores], *of_terms)
        for block in masked:
            self._element(block, parts.rows[block], parts.keys[block], in_pairs=True)
        self._reduction(parts.largest)
        for block in (parts.exponential, parts.quotient):
            self._element(block, parts.rows[block], draft.block(block).axes[-1].name)
        self._product(part, parts.rows[total], parts.columns)
        self._reduction(parts.denominator)
        self._element(running, parts.rows[total], parts.columns)
        for block in (self.out, *self._others):
            self._results(block)
        for copy, factor in zip(copies, (*self.plan.scores.factors, self.plan.values.b), strict=True):
            self._fill(copy, factor, self.task if copy is copies[0] else self.place)
        draft.do(Pipeline, block=running, loop=self.place, stages=self.plan.stages, bulk=int(self.plan.bulk))
        if self.plan.clustered:
            bind_part(draft, self.out, draft.loops(self.out)[0])
        loops = draft.loops(self.out)[1 if self.plan.clustered else 0 :]
        task = draft.fuse(self.out, loops[: loops.index(self.task) + 1])
        draft.do(Bind, block=self.out, loop=task, thread="blockIdx.x")
        draft.do(Pragma, block=self.out, loop=task, blocks_per_sm=self.plan.resident)
        if self.plan.clustered:
            draft.do(Join, block=self._result, cluster=PART_AXIS)
        draft.settled.update((*inside, *copies, running, self.out, *self._partials))

    def _in_blocks(self, part: str, masked: Sequence[str]) -> list[str]:
        """Go over blocks of keys, whole ones; the blocks that copy factors to shared memory."""
        draft, parts, plan, total = self.draft, self.parts, self.plan, self.parts.total
        if plan.ragged_keys:
            self._pad(parts.keys, (parts.scores, *masked), plan.terms)
        if plan.ragged_rows:
            self._pad(parts.rows, (parts.scores, *masked), plan.rows)
        copies = [self._copied(parts.scores, plan.scores, factor) for factor in plan.scores.factors]
        values = plan.values
        if not plan.ragged_keys:
            copies.append(self._copied(total, values, values.b))
        padded = {"padded": 1} if plan.ragged_keys else {}
        draft.do(OnlineSoftmax, block=total, terms=plan.terms, rounded=1, **padded)
        if plan.ragged_keys:
            copies.append(self._copied(part, values, values.b, draft.block(part).axes[-2:]))
        return copies

    def _carried(self, running: str, inside: Sequence[str]) -> str:
        """Keep all that is computed inside in registers, of whole matrices of queries; the block that carries sums."""
        draft, parts, total = self.draft, self.parts, self.parts.total
        part, quotient, denominator, exponential, largest, *_ = inside
        self._take_epilogues()
        carried = running if self.plan.divided is None else self._divide(running, self.plan.divided)
        if self.plan.ragged_rows:
            rows = {**parts.rows, part: parts.rows[total], carried: parts.rows[total]}
            self._pad(rows, (largest, exponential, quotient, denominator, part, carried), self.plan.rows)
        for block in (*inside, *([carried] if carried == running else [])):
            for buffer in [buffer_name(o) for o in draft.block(block).outputs]:
                draft.do(SetScope, block=block, buffer=buffer, scope="local")
        return carried

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
        around = next(iter(index.axes()), "")
        if not around or index != axis(around) % extent:
            raise ScheduleError(None, f"'{self.out}' goes over '{name}' in another order")
        return draft.split(self.out, around, (0, extent))[1]

    def _place(self, running: str, inside: list[str]) -> None:
        """Carry sums over blocks of keys for each tile of queries, and compute all else in there."""
        draft = self.draft
        if self.plan.divided is None:
            column = self._results_of(running, self.parts.columns)
            row = self._results_of(running, self.parts.rows[self.parts.total])
            self.task, rest = draft.split(self.out, row, (0, self.plan.rows))
            before = [n for n in draft.loops(self.out) if n not in (self.task, rest, column)]
            draft.order(self.out, [*before, self.task, rest, column])
            draft.do(ComputeAt, block=running, loop=self.task, unit_loops=True)
            loops = draft.loops(running, below=self.task)
        else:
            self.task, loops = self._place_part(running)
        self.place = loops[-1]
        draft.order(running, [self.place, *loops[:-1]])
        for block in inside[:-1]:
            draft.do(ComputeAt, block=block, loop=self.place, unit_loops=True)
        draft.do(ComputeAt, block=inside[-1], loop=self.task, unit_loops=True)

    # -- parts of the keys --------------------------------------------------------------------------------------------

    def _divide(self, running: str, parts: Hole) -> str:
        """Carry sums over the blocks of keys of a part, and join parts behind; the block that carries.

        Sums, their denominators and the maxima that both are relative to go through global memory.
        """
        draft, result = self.draft, self.out
        self._result = result
        names = self.parts.rows[self.parts.total], self.parts.columns
        inside = [self._results_of(running, name) for name in names] if self.plan.clustered else []
        part, _ = draft.split(running, draft.loops(running)[-1], (parts, 0))
        draft.order(running, [part, *(n for n in draft.loops(running) if n != part)])
        carried = draft.partial(running, part, 0)
        copies = []
        for buffer in [buffer_name(o) for o in draft.block(carried).outputs]:
            copies.append(f"{buffer}_out")
            draft.do(CacheWrite, block=carried, buffer=buffer, scope="local", label=copies[-1])
        self.out, *self._others = copies
        thread = self._place_results(result, inside, parts)
        draft.do(ComputeAt, block=running, loop=thread, unit_loops=True)
        for buffer in [buffer_name(o) for o in draft.block(running).outputs]:
            draft.do(SetScope, block=running, buffer=buffer, scope="local")
        draft.do(Pragma, block=running, loop=draft.loops(running, thread)[-1], auto_unroll_max_step=JOINED_AT_ONCE)
        draft.settled.update((running, result, *self._others))
        return carried

    def _place_results(self, result: str, inside: Sequence[str], parts: Hole) -> str:
        """Give results to threads, those of one tile to the threads that computed it where parts are joined there.

        Returns the innermost loop over threads.
        """
        draft = self.draft
        threads: dict[str, Number] = {THREADS[-1]: JOINING_THREADS}
        if self.plan.clustered:
            threads = dict(zip(THREADS, (self.plan.warps, ROW_LANES, COLUMN_LANES), strict=True))
            draft.order(result, [*(n for n in draft.loops(result) if n not in inside), *inside])
            block, within = draft.fuse(result, draft.loops(result)[: -len(inside)]), draft.fuse(result, inside)
            if self.plan.clustered:
                threads = self._share_threads(within, threads, parts.name)
                part, within = draft.split(result, within, (parts, 0))
                draft.do(Bind, block=result, loop=part, thread=PART_AXIS)
            rounds, *bound = draft.split(result, within, (0, *threads.values()))
            draft.do(Pragma, block=result, loop=rounds, auto_unroll_max_step=JOINED_AT_ONCE)
        else:
            block, *bound = draft.split(result, draft.fuse(result, draft.loops(result)), (0, *threads.values()))
        draft.do(Bind, block=result, loop=block, thread="blockIdx.x")
        for kind, loop in zip(threads, bound, strict=True):
            draft.do(Bind, block=result, loop=loop, thread=kind)
        return bound[-1]

    def _share_threads(self, within: str, threads: Mapping[str, Number], parts: str) -> dict[str, Number]:
        """Give each block of a cluster as many results, and as many threads as divide these."""
        draft = self.draft
        results = draft.sizes(self._result)[within]
        draft.limits.append(lambda c: np.asarray(results % c[parts] == 0))
        return share_threads(draft, self.parts.total, lambda c: np.maximum(1, results // c[parts]), threads)

    def _place_part(self, carried: str) -> tuple[str, list[str]]:
        """Write what the tiles of queries carry behind their blocks of keys; the loop over tiles, and those inside."""
        draft, block = self.draft, self.draft.block(carried)
        names = self.parts.rows[self.parts.total], self.parts.columns
        row, column = (str(block.bound[n].as_axis()) for n in names)
        task, rest = draft.split(carried, row, (0, self.plan.rows))
        place = draft.loops(carried)[-1]
        before = [n for n in draft.loops(carried) if n not in (task, rest, column, place)]
        draft.order(carried, [*before, task, rest, column, place])
        for out in (self.out, *self._others):
            draft.do(ReverseComputeAt, block=out, loop=task)
        self._loops_of[carried] = dict(zip(names, (rest, column), strict=True))
        return task, [rest, column, place]

    def _inside(self, name: str) -> dict[str, str]:
        """The loop of each axis of a block that has been moved to its place; not that over blocks of keys itself."""
        if name in self._loops_of:
            return self._loops_of[name]
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
        place = self.task if block in (self.out, *self._others) else self.place
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

    def _results(self, out: str) -> None:
        """Divide the sums at the end, or write those of a part, two neighbours at a time."""
        row, column = self.draft.loops(out, below=self.task)
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
            place_rows(draft, copy, rows_for(Reads.MATRICES))
            return
        threads: Iterable[Number] = (self.plan.warps, ROW_LANES, COLUMN_LANES)
        own = draft.loops(copy, below=place)
        among_threads(draft, copy, own, dict(zip(THREADS, threads, strict=True)), factor.vector)
        place_rows(draft, copy, rows_for(Reads.MATRICES))
