"""Chains of reductions over rows on a GPU: a block of threads a row, partial results joined across the threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.element import element_bytes
from ...dialects.kernel import SHARED_ALIGNMENT
from ...dialects.loop import BlockOp, LoadOp, buffer_shape, element_of_buffer, scope_of
from ...dialects.multiprocessor import multiprocessor_of
from ...dialects.target import WARP, WIDEST_ACCESS_BYTES, Target
from ...passes.analysis.access import consumers, is_argument
from ...passes.analysis.nest import buffer_name
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.rfactor import may_trap
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Derived, Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import epilogue_of
from ..structure.chains import along_reduce, next_chain, row_dimensions
from ..structure.gpu_chains import reduced
from ..structure.strides import moves_in_rows, output_bytes
from ._gpu_joined_rows import RowsOfBlock, joining_threads
from ._gpu_results import plan_results, write_results

SHORT_ROW = 64
"""Terms of a result below which a single thread reduces them: two for each thread of a warp. A choice, measured where
it is far away: on an H200, 240 results of 784 terms take 35.1 us in a thread each, and 1.3 us where 32 threads join."""
VECTORS = (1, 2, 4, 8)
"""Elements of a row that a thread takes at once: up to 16 bytes, the widest access of a thread."""
REGISTERS = 32
"""Elements of a row that a thread keeps in registers, at most. Longer rows wait in shared memory; those that do not fit
there are computed again by each reader. A choice: rows of as many stages as softmax has leave half of the 255 registers
of a thread free."""


class GpuRows(SketchRule):
    """Schedule the reductions that are left: rows to blocks, elements of a row to threads."""

    order: ClassVar[int] = 500
    of_unsettled: ClassVar[bool] = True

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        while (names := next_chain(draft)) is not None:
            chain = [draft.block(name) for name in names]
            if any(_joins_in_no_threads(block) for block in chain):
                chain = chain[-1:]
            alone = _one_thread_a_result(chain, target)
            if alone is not None:
                draft.settled.add(alone.block_name)
                write_results(draft, plan_results(alone, target))
            else:
                _write(draft, plan_rows(chain, target))
        return [draft]


def _joins_in_no_threads(block: BlockOp) -> bool:
    """True for combiners without a name, and for a division by what is reduced: it fails in threads without an element.

    A chain with such a one is several, each ending in one block.
    """
    return block.combiner.data == "custom" or may_trap(block)


def _one_thread_a_result(chain: Sequence[BlockOp], target: Target) -> BlockOp | None:
    """The reduction of a chain whose results are told apart by threads; None where threads share a row.

    That is one of few terms, or over what is not contiguous: neighbouring threads then read neighbouring elements. Or
    of short rows with results for every scheduler, such as the windows of a pool. A block behind it that takes its
    results one by one is left to move to it.
    """
    first, last = chain[0], chain[-1]
    contiguous = [block for block in chain if along_reduce(block)]
    terms = max((reduced(block) for block in contiguous), default=1)
    short = terms < SHORT_ROW or (_longest(contiguous) < SHORT_ROW and _fills_schedulers(first, target))
    if len(chain) == 1:
        return last if short or _joins_in_no_threads(last) else None
    with_epilogue = len(chain) == 2 and first.is_reduction and epilogue_of(first) == last.block_name
    return first if with_epilogue and short else None


def _fills_schedulers(reduction: BlockOp, target: Target) -> bool:
    """True where there is a warp of results for each scheduler of each multiprocessor."""
    results = prod(a.extent for a in reduction.axes if not a.reduce)
    return results >= WARP * multiprocessor_of(target).schedulers * max(1, target.cores)


def _longest(chain: Sequence[BlockOp]) -> int:
    return max((a.extent for block in chain for a in block.axes if a.reduce), default=0)


@dataclass(frozen=True)
class GpuRowPlan:
    """A block of threads for each row, or for several (`block`): the last block of `chain` stays, others move to it.

    `rows` are the loops over rows. `repeated` are computed again where they are read. Each thread takes a `vector` of
    neighbours at a time where rows are whole vectors. Of the choices of `threads`, `fitting` have all that is kept in
    shared memory; `in_registers` says that threads keep rows.
    """

    chain: tuple[str, ...]
    rows: tuple[str, ...]
    threads: Hole
    vector: Derived | None
    repeated: tuple[str, ...]
    fitting: tuple[int, ...]
    in_registers: bool
    block: RowsOfBlock | None

    @property
    def last(self) -> str:
        return self.chain[-1]

    def fits(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Return the mask of candidates with threads whose rows are in shared memory."""
        return np.isin(columns[self.threads.name], self.fitting)


def plan_rows(chain: Sequence[BlockOp], target: Target) -> GpuRowPlan:
    """Plan which stages of a chain are kept for a row, by how many threads, and where."""
    last = chain[-1]
    around = {x.loop_name for x in last.enclosing_loops}
    names = [e.as_axis() for e in last.write_indices[0]][: row_dimensions(last)]
    longest = _longest([block for block in chain if along_reduce(block)])
    threads = joining_threads(last.block_name, target, longest, longest)
    holding = tuple(n for n in threads.choices if -(-longest // n) <= REGISTERS and _are_read_in_place(chain))
    kept, repeated = list(chain), []
    rows = tuple(n for n in names if n is not None and n in around)
    block = None
    if holding:
        threads = Hole.near(threads.name, holding, threads.default, "threads")
        count = prod(x.size for x in last.enclosing_loops if x.loop_name in rows)
        block = RowsOfBlock.of(last.block_name, target, count, threads, longest) if rows else None
        threads = threads if block is None else block.threads
    elif target.max_shared_bytes:
        kept = [block for block in chain if block.is_reduction]
        for stage in (b for b in chain[:-1] if not b.is_reduction):
            read_again = len(consumers(stage)) > 1
            if read_again and _fits_shared(last, [*kept, stage], threads.default, 1, target):
                kept.append(stage)
            else:
                repeated.append(stage.block_name)
    widths = {n: _width(_widths(chain), longest, n) if rows else 1 for n in threads.choices}
    vector = None
    if set(widths.values()) != {1}:
        vector = Derived.of(f"{last.block_name}_vector", partial(_width_of, widths, threads.name), [threads])
    return GpuRowPlan(
        tuple(block.block_name for block in chain),
        rows,
        threads,
        vector,
        tuple(repeated),
        tuple(n for n, width in widths.items() if holding or _fits_shared(last, kept, n, width, target)),
        bool(holding),
        block,
    )


def _are_read_in_place(chain: Sequence[BlockOp]) -> bool:
    """True where stages are read at iterators of who reads them within a row, so by the thread that computed them.

    A reshape reads a row of 13 at `i mod 13`, and a sum over columns of a row of several dimensions takes what is dealt
    out along its columns: what another thread has in its registers.
    """
    kept = {output for block in chain[:-1] if not block.is_reduction for output in block.outputs}
    within = row_dimensions(chain[-1])
    return all(_is_read_in_place(block, load, within) for block in chain for load in block.loads if load.buffer in kept)


def _is_read_in_place(block: BlockOp, load: LoadOp, within: int) -> bool:
    """True where a load takes elements of a row, which has dimensions from `within` on, that its thread has computed.

    Threads have those along the last dimension, and a block is dealt out along its last axis, or that which it reduces.
    """
    sizes = zip(load.indices.data[within:], buffer_shape(load.buffer)[within:], strict=True)
    places = [index.as_axis() for index, size in sizes if size > 1]
    if None in places or not places:
        return not places
    dealt = [a.name for a in block.axes if a.reduce and a.extent > 1]
    if not block.is_reduction:
        written = zip(block.write_indices[0][within:], buffer_shape(block.outputs[0])[within:], strict=True)
        dealt = [name for index, size in written if size > 1 and (name := index.as_axis()) is not None]
    return bool(dealt) and places[-1] == dealt[-1]


def _widths(chain: Sequence[BlockOp]) -> list[int]:
    """Elements that a thread may take at once: those of one access, of which all rows are whole vectors."""
    axes = [_along(block) for block in chain]
    if not all(axis and moves_in_rows(block, axis.name) for block, axis in zip(chain, axes, strict=True)):
        return [1]
    widest = WIDEST_ACCESS_BYTES // max(_widest_bytes(block) for block in chain)
    return [n for n in VECTORS if n <= widest and all(axis and axis.extent % n == 0 for axis in axes)]


def _width(widths: Sequence[int], longest: int, threads: int) -> int:
    """The widest vector of which all threads have as many, or else of which all have one, or else an element."""
    even = [n for n in widths if longest % (n * threads) == 0]
    return max(even or [n for n in widths if n * threads <= longest] or [1])


def _width_of(widths: Mapping[int, int], threads: str, columns: Columns) -> npt.NDArray[np.int64]:
    """The vectors of candidates, by the column of their threads."""
    return np.array([widths[int(n)] for n in columns[threads]], dtype=np.int64)


def _along(block: BlockOp) -> Axis | None:
    """The one axis along which a block goes over its row: the one that it reduces over, or else its last."""
    if block.is_reduction:
        reduce = [a for a in block.axes if a.reduce and a.extent > 1]
        return reduce[0] if len(reduce) == 1 else None
    last = block.write_indices[0][-1].as_axis()
    return next((a for a in block.axes if a.name == last), None)


def _widest_bytes(block: BlockOp) -> int:
    """Bytes of the widest element that a block moves from or to arrays of the caller, which vectors are of."""
    buffers = [b for b in (*block.outputs, *(load.buffer for load in block.loads)) if is_argument(b)]
    return max((element_bytes(element_of_buffer(buffer)) for buffer in buffers), default=1)


def _fits_shared(last: BlockOp, stages: Sequence[BlockOp], threads: int, width: int, target: Target) -> bool:
    """True where shared memory holds rows in whole rounds of the threads, and a value of each warp of a reduction.

    Only CUDA's threads have warps to join their values in: elsewhere it is a value of each thread.
    """
    if not target.max_shared_bytes:
        return True
    values, round_of_all = -(-threads // WARP) if target.kind == "cuda" else threads, threads * width
    rows = row_dimensions(last)
    total = 0
    for block in stages:
        row = prod(buffer_shape(block.outputs[0])[rows:])
        size = (values if block.is_reduction else -(-row // round_of_all) * round_of_all) * output_bytes(block)
        total += -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
    return total <= target.max_shared_bytes


def _write(draft: Draft, plan: GpuRowPlan) -> None:
    """Move all stages to the rows of the last one, and share each row among threads."""
    draft.settled.update(plan.chain)
    draft.add(plan.threads)
    row = draft.fuse(plan.last, plan.rows)
    if plan.block is not None:
        draft.add(plan.block.rows)
        draft.limits.append(plan.block.fits)
        row = plan.block.bind(draft, plan.last, row)
    elif row:
        draft.do(Bind, block=plan.last, loop=row, thread="blockIdx.x")
    for name in plan.repeated:
        draft.tried(ComputeInline, name)
    if plan.vector is not None:
        draft.add(plan.vector)
    if not plan.in_registers:
        draft.limits.append(plan.fits)
    stages = [n for n in plan.chain if n not in plan.repeated]
    unit_loops = {} if plan.block is None else {"unit_loops": True}
    moved = {plan.last}
    for name in reversed(stages[:-1]):
        if draft.tried(ComputeAt, name, loop=row, **unit_loops):
            moved.add(name)
    for name in (n for n in stages if n in moved):
        (_joined if draft.block(name).is_reduction else _dealt)(draft, plan, name)


def _dealt(draft: Draft, plan: GpuRowPlan, name: str) -> None:
    """Elements of a row to threads; they stay in registers, or in shared memory where a thread has many."""
    loops = [x.loop_name for x in draft.block(name).enclosing_loops if x.loop_kind == "serial" and x.size > 1]
    if not loops:  # rows of one element
        _in_registers(draft, plan, name)
        return
    step, thread, vector = _shared_out(draft, plan, name, loops[-1])
    if plan.in_registers:
        draft.do(Unroll, block=name, loop=step)
    else:  # what is beyond the end of a row is then the end of a loop, and no branch in it
        draft.order(name, (thread, step))
    draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
    if vector:
        draft.do(Vectorize, block=name, loop=vector)
    if name != plan.last:
        draft.do(SetScope, block=name, scope="local" if plan.in_registers else "shared")


def _shared_out(draft: Draft, plan: GpuRowPlan, name: str, loop: str) -> tuple[str, str, str]:
    """Split a loop along a row: the loops of steps, of threads, and over a vector, "" where there are none."""
    vector = ""
    if plan.vector is not None:
        loop, vector = draft.split(name, loop, (0, plan.vector))
    step, thread = draft.split(name, loop, (0, plan.threads))
    return step, thread, vector


def _joined(draft: Draft, plan: GpuRowPlan, name: str) -> None:
    """Each thread adds up every so many elements of a row, then the threads join what they have."""
    block = draft.block(name)
    axes = [a for a in block.axes if a.reduce and a.extent > 1]
    if axes:
        held = plan.in_registers and bool(plan.rows)
        loop = block.bound[axes[-1].name].as_axis() or axes[-1].name  # a row's loop around may have the axis's name
        step, thread, vector = _shared_out(draft, plan, name, loop)
        made = draft.partial(name, thread)
        inside = [n for n in draft.loops(made) if n != thread]
        at = inside.index(step)
        # Each step that is written out tests by itself what is beyond the end of a row; others end the loop there.
        places = (step, thread, *inside[at + 1 :]) if held else (thread, *inside[at:])
        draft.order(made, places)
        draft.do(Bind, block=made, loop=thread, thread="threadIdx.x")
        if plan.rows:
            draft.do(SetScope, block=made, scope="local")
        if vector:
            _read_in_vectors(draft, made, thread if held else step)
        for written_out in filter(None, (step if held else "", vector)):
            draft.do(Unroll, block=made, loop=written_out)
        draft.do(Bind, block=name, loop=draft.loops(name)[-1], thread="threadIdx.x")
    _in_registers(draft, plan, name)


def _read_in_vectors(draft: Draft, name: str, around: str) -> None:
    """Read what partial results are made of in vectors, inside a loop: a reduction takes its terms one by one."""
    block = draft.block(name)
    reduced_over = {a.name for a in block.axes if a.reduce}
    moving = [load for load in block.loads if reduced_over & {n for e in load.indices.data for n in e.axes()}]
    for buffer in {buffer_name(load.buffer): None for load in moving if _in_global_memory(load)}:
        label = f"{name}_{buffer}"
        draft.do(CacheRead, block=name, buffer=buffer, scope="local", label=label)
        draft.do(ComputeAt, block=label, loop=around, unit_loops=True)
        draft.do(Vectorize, block=label, loop=draft.loops(label, around)[-1])
        draft.settled.add(label)


def _in_global_memory(load: LoadOp) -> bool:
    return is_argument(load.buffer) or scope_of(load.buffer) == "global"


def _in_registers(draft: Draft, plan: GpuRowPlan, name: str) -> None:
    """Keep what a stage has for a row in registers, where there are rows and others read it."""
    if name != plan.last and plan.rows:
        draft.do(SetScope, block=name, scope="local")
