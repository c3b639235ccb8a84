"""Chains of reductions over rows on a GPU: a block of threads a row, partial results joined across the threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...dialects.kernel import SHARED_ALIGNMENT
from ...dialects.loop import BlockOp, buffer_shape
from ...dialects.multiprocessor import multiprocessor_of
from ...dialects.target import WARP, Target
from ...passes.primitive import Primitive, ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.rfactor import may_trap
from ...passes.schedule.set_scope import SetScope
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import epilogue_of
from ..structure.chains import along_reduce, next_chain, row_dimensions
from ..structure.gpu_chains import reduced
from ..structure.strides import output_bytes
from ._gpu_joined_rows import joining_threads
from ._gpu_results import plan_results, write_results

SHORT_ROW = 64
"""Terms of a result below which a single thread reduces them: two for each thread of a warp. Not measured but where it
is far away: on an H200, 240 results of 784 terms take 35.1 us in a thread each, and 1.3 us where 32 threads join."""
REGISTERS = 32
"""Elements of a row that a thread keeps in registers, at most.

Longer rows wait in shared memory; those that do not fit there are computed again by each reader. Not measured: chosen
so that rows of as many stages as softmax has leave half of the 255 registers of a thread free.
"""


class GpuRows(SketchRule):
    """Schedule the reductions that are left: rows to blocks, elements of a row to threads."""

    order: ClassVar[int] = 500

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
class RowPlan:
    """A block of threads for each row: the last block of `chain` stays, the others move to it.

    `rows` are the loops over rows. `repeated` are computed again where they are read. Of the choices of `threads`,
    `fitting` have all that is kept in shared memory; `in_registers` says that threads keep rows.
    """

    chain: tuple[str, ...]
    rows: tuple[str, ...]
    threads: Hole
    repeated: tuple[str, ...]
    fitting: tuple[int, ...]
    in_registers: bool

    @property
    def last(self) -> str:
        return self.chain[-1]

    def fits(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Return the mask of candidates with threads whose rows are in shared memory."""
        return np.isin(columns[self.threads.name], self.fitting)


def plan_rows(chain: Sequence[BlockOp], target: Target) -> RowPlan:
    """Plan which stages of a chain are kept for a row, by how many threads, and where."""
    last = chain[-1]
    around = {x.loop_name for x in last.enclosing_loops}
    names = [e.as_axis() for e in last.write_indices[0]][: row_dimensions(last)]
    longest = _longest([block for block in chain if along_reduce(block)])
    threads = joining_threads(last.block_name, target, longest, longest)
    in_registers = -(-longest // threads.default) <= REGISTERS
    kept, repeated, fitting = list(chain), [], threads.choices
    if target.max_shared_bytes and not in_registers:
        kept = [block for block in chain if block.is_reduction]
        for block in (b for b in chain[:-1] if not b.is_reduction):
            if _shared_bytes(last, [*kept, block], threads.default, target) <= target.max_shared_bytes:
                kept.append(block)
            else:
                repeated.append(block.block_name)
        fitting = tuple(n for n in fitting if _shared_bytes(last, kept, n, target) <= target.max_shared_bytes)
    return RowPlan(
        tuple(block.block_name for block in chain),
        tuple(n for n in names if n is not None and n in around),
        threads,
        tuple(repeated),
        fitting,
        in_registers,
    )


def _shared_bytes(last: BlockOp, stages: Sequence[BlockOp], threads: int, target: Target) -> int:
    """Shared memory for rows, as long as a multiple of the threads, and for a value of each warp of a reduction.

    Only CUDA's threads have warps to join their values in: elsewhere it is a value of each thread.
    """
    values = -(-threads // WARP) if target.kind == "cuda" else threads
    rows = row_dimensions(last)
    total = 0
    for block in stages:
        row = prod(buffer_shape(block.outputs[0])[rows:])
        size = (values if block.is_reduction else -(-row // threads) * threads) * output_bytes(block)
        total += -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
    return total


def _write(draft: Draft, plan: RowPlan) -> None:
    """Move all stages to the rows of the last one, and share each row among threads."""
    draft.settled.update(plan.chain)
    draft.add(plan.threads)
    row = draft.fuse(plan.last, plan.rows)
    if row:
        draft.do(Bind, block=plan.last, loop=row, thread="blockIdx.x")
    for name in plan.repeated:
        _tried(draft, ComputeInline, name)
    if len(plan.fitting) < len(plan.threads.choices):
        draft.limits.append(plan.fits)
    stages = [n for n in plan.chain if n not in plan.repeated]
    moved = {plan.last}
    for name in reversed(stages[:-1]):
        if _tried(draft, ComputeAt, name, loop=row):
            moved.add(name)
    for name in (n for n in stages if n in moved):
        (_joined if draft.block(name).is_reduction else _dealt)(draft, plan, name)


def _tried(draft: Draft, step: type[Primitive[Any]], name: str, **options: object) -> bool:
    """Do a step of a block; where it is not legal, the block is left to later rules."""
    try:
        draft.do(step, block=name, **options)
    except ScheduleError:
        draft.settled.discard(name)
        return False
    return True


def _dealt(draft: Draft, plan: RowPlan, name: str) -> None:
    """Elements of a row to threads; they stay in registers, or in shared memory where a thread has many."""
    loops = [x.loop_name for x in draft.block(name).enclosing_loops if x.loop_kind == "serial"]
    if not loops:  # rows of one element
        _in_registers(draft, plan, name)
        return
    _, thread = draft.split(name, loops[-1], (0, plan.threads))
    draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
    if name != plan.last:
        draft.do(SetScope, block=name, scope="local" if plan.in_registers else "shared")


def _joined(draft: Draft, plan: RowPlan, name: str) -> None:
    """Each thread adds up every so many elements of a row, then the threads join what they have."""
    block = draft.block(name)
    axes = [a for a in block.axes if a.reduce and a.extent > 1]
    if axes:
        loop = block.bound[axes[-1].name].as_axis() or axes[-1].name  # a row's loop around may have the axis's name
        step, thread = draft.split(name, loop, (0, plan.threads))
        partial = draft.partial(name, thread)
        inside = [n for n in draft.loops(partial) if n != thread]
        draft.order(partial, (thread, *inside[inside.index(step) :]))
        draft.do(Bind, block=partial, loop=thread, thread="threadIdx.x")
        if plan.rows:
            draft.do(SetScope, block=partial, scope="local")
        draft.do(Bind, block=name, loop=draft.loops(name)[-1], thread="threadIdx.x")
    _in_registers(draft, plan, name)


def _in_registers(draft: Draft, plan: RowPlan, name: str) -> None:
    """Keep what a stage has for a row in registers, where there are rows and others read it."""
    if name != plan.last and plan.rows:
        draft.do(SetScope, block=name, scope="local")
