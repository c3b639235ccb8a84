"""Blocks on a GPU that read along one axis and write along another, such as transposes: tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.element import element_bytes
from ...dialects.loop import BlockOp, LoadOp
from ...dialects.multiprocessor import GPU_LINE_BYTES
from ...dialects.target import Target
from ...passes.analysis.access import is_argument
from ...passes.analysis.nest import buffer_name
from ...passes.schedule.bind import Bind
from ...passes.schedule.unroll import Unroll
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole, Limit
from ..structure.strides import Access, accesses
from ._gpu_copies import Reads, SharedCopy, bring, rows_for
from ._gpu_factors import UNKNOWN_THREADS
from ._turned import turned_axes

SHORTEST = 16
"""Along a shorter axis a tile has less than half a line of 4-byte elements: copying it gains little. A choice."""
COLUMNS = (32, 64)
"""Neighbouring threads along what is written."""
ROWS = (4, 8, 16)
"""Threads along what is read."""
EACH = (2, 4, 8)
"""Elements of a thread along what is read, that many threads apart."""
USUAL_THREADS = 256
"""Threads of a block unless searched. With 4 elements each a multiprocessor has 32 KB under way. A choice: some 40 KB
hide 800 cycles of latency at 48 bytes a cycle."""


@dataclass(frozen=True)
class GpuTurnedPlan:
    """Tiles of a loop that a block reads along and one that it writes along, `columns` by `rows` threads.

    `copied` are the buffers that are read so, whose tiles go through shared memory, with the iterators that each is
    read by, those of the tile last.
    """

    name: str
    read: str
    written: str
    copied: tuple[tuple[str, tuple[str, ...]], ...]
    element_bytes: int
    columns: Hole
    rows: Hole
    each: Hole
    limit: Limit


def plan_gpu_turned(block: BlockOp, target: Target) -> GpuTurnedPlan | None:
    """Plan tiles in shared memory for a block; None where it reads along what it writes, or along a short axis."""
    axes = turned_axes(block)
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    if axes is None or min(sizes[n] for n in axes) < SHORTEST or block.conditions:
        return None
    read, written = axes
    iterators = {e.as_axis(): a.name for a, e in zip(block.axes, block.bindings.data, strict=True)}
    if None in iterators or len(iterators) != len(sizes):
        return None
    turned = [load for load, access in _loads(block) if _is_turned(access, read, written)]
    if any(not _may_be_copied(block, load) for load in turned):
        return None
    last = (iterators[written], iterators[read])
    copied = tuple((buffer_name(load.buffer), (*_others(load, last), *last)) for load in turned)
    size = min(element_bytes(load.result.type) for load in turned)
    name, most = block.block_name, target.max_threads_per_block or UNKNOWN_THREADS
    wide = tuple(n for n in COLUMNS if n * size >= GPU_LINE_BYTES) or COLUMNS[-1:]
    columns = Hole.near(f"{name}_columns", wide, GPU_LINE_BYTES // size, "threads", f"{name}_{written}")
    rows = Hole.near(f"{name}_rows", ROWS, USUAL_THREADS // columns.default, "threads", f"{name}_{read}")
    each = Hole.near(f"{name}_each", EACH, GPU_LINE_BYTES // size // rows.default, "unroll", f"{name}_{read}")
    limit = _whole_lines(columns, rows, each, size, most)
    return GpuTurnedPlan(name, read, written, copied, size, columns, rows, each, limit)


def _loads(block: BlockOp) -> list[tuple[LoadOp, Access]]:
    found = [access for access in accesses(block) if not access.is_write]
    return list(zip(block.loads, found, strict=True))


def _is_turned(access: Access, read: str, written: str) -> bool:
    return access.step(read) == 1 and access.step(written) not in (0, 1)


def _may_be_copied(block: BlockOp, load: LoadOp) -> bool:
    """True for the one load of a buffer that is whole by then, at places that do not depend on data."""
    once = sum(other.buffer is load.buffer for other in block.loads) == 1
    return once and not load.positions and load.buffer not in block.outputs and is_argument(load.buffer)


def _others(load: LoadOp, tile: Sequence[str]) -> tuple[str, ...]:
    """The other iterators that a load depends on."""
    exprs = [*load.indices.data, *load.conditions]
    return tuple(dict.fromkeys(name for e in exprs for name in e.axes() if name not in tile))


def _whole_lines(columns: Hole, rows: Hole, each: Hole, size: int, most: int) -> Limit:
    """Tiles of whole lines along what is read, by `most` threads."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        long = c[rows.name] * c[each.name] * size >= GPU_LINE_BYTES
        return np.asarray(long & (c[columns.name] * c[rows.name] <= most))

    return limit


def write_gpu_turned(draft: Draft, plan: GpuTurnedPlan) -> None:
    """Threads copy tiles along what is read, and write them along what is written, both in whole lines."""
    name = plan.name
    draft.add(plan.columns, plan.rows, plan.each)
    draft.limits.append(plan.limit)
    threads = draft.derive(f"{name}_threads", lambda c: c[plan.columns.name] * c[plan.rows.name])
    labels = [_stage(draft, plan, buffer, layout) for buffer, layout in plan.copied]
    tiles, each, row = draft.split(name, plan.read, (0, plan.each, plan.rows))
    across, column = draft.split(name, plan.written, (0, plan.columns))
    outer = [loop for loop in draft.loops(name) if loop not in (tiles, each, row, across, column)]
    draft.order(name, [*outer, tiles, across, row, column, each])
    draft.do(Bind, block=name, loop=draft.fuse(name, [*outer, tiles, across]), thread="blockIdx.x")
    thread = draft.fuse(name, [row, column])
    draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
    draft.do(Unroll, block=name, loop=each)
    for label in labels:
        draft.do(Unroll, block=label, loop=bring(draft, label, thread, {"threadIdx.x": threads}))
    draft.settled.add(name)


def _stage(draft: Draft, plan: GpuTurnedPlan, buffer: str, layout: tuple[str, ...]) -> str:
    """A copy of a buffer for shared memory, whose rows start in other banks; its block."""
    apart = rows_for(Reads.COLUMNS, len(layout) - 2, plan.element_bytes)
    copy = SharedCopy(buffer, f"{plan.name}_{buffer}_tile", layout, apart)
    copy.read_by(draft, plan.name)
    copy.keep_apart(draft)
    return copy.label
