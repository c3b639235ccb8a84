"""Pools with channels first, on a CPU: padded rows of a channel in a cache, windows reduced along one axis at a time.

Padding is a copy of a few rows, so that no window asks where it ends, and windows that share rows share what these come
to (`separate`): a maximum over 5x5 takes 10 comparisons for 25.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import consumers, is_argument, shared_loops, writers
from ...passes.analysis.nest import loops_reduced
from ...passes.analysis.slides import Slide, slides_of
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.separate import Separate
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.strides import WIDEST_STRIDE, lanes_of_block, output_bytes
from ._choices import up_to
from ._lanes import TASKS_A_CORE, deal, is_costly, parallel_elements
from .stencil_tiles import STACK_BYTES, UNROLLED

ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Rows of a tile, or planes of a volume's."""
COMPARED = 2
"""Operations on a vector that is compared, besides loading it: a test for NaN, and what is chosen by it."""
COPIED = 3
"""Operations on a vector that is padded: it is loaded, masked, and stored."""


class WindowTiles(SketchRule):
    """Instead of windows read where they lie: a tile of rows of each channel, padded, then reduced axis by axis."""

    order: ClassVar[int] = 80

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        reductions = [block for block in blocks_in(draft.module) if block.is_reduction]
        if len(reductions) != 1 or reductions[0].block_name in draft.settled:
            return [draft]
        plan = _plan(reductions[0], target)
        grown = draft.with_legal_steps(partial(_write, plan=plan)) if plan is not None else None
        return [draft if grown is None else grown]


@dataclass(frozen=True)
class WindowPlan:
    """The block that reduces windows, what pads what it reads, and the block of results, itself or what divides sums.

    Windows are reduced along `first` in blocks of their own, one after the other. Tiles are of so many `rows`, which
    are inside of the `outer` outermost loops.
    """

    name: str
    pad: str
    final: str
    first: tuple[str, ...]
    outer: int
    rows: Hole
    lanes: int
    is_parallel: bool


def _plan(block: BlockOp, target: Target) -> WindowPlan | None:
    """Tiles of a pool with channels first; None for what is none, is cheaper as it lies, or does not fit a stack."""
    if [op.name for op in block.body.block.ops] != ["lw_loop.load", "lw_te.yield"] or block.combiner.data == "custom":
        return None
    (load,) = block.loads
    slides = slides_of(load.indices.data, block.axes)
    places = [s.place.name for s in slides]
    spatial = [a for a in block.axes if not a.reduce]
    if len(slides) < 2 or load.conditions or places != [a.name for a in spatial[len(spatial) - len(slides) :]]:
        return None
    if slides[-1].stride > WIDEST_STRIDE or any(min(s.stride, s.dilation) < 1 for s in slides):
        return None
    if {s.tap.name for s in slides} != {a.name for a in block.axes if a.reduce and a.extent > 1}:
        return None
    pads = [w for w in writers(load.buffer) if not is_argument(load.buffer)]
    lanes, padded = lanes_of_block(block, target), len(pads) == 1 and _pads(pads[0])
    overlap = any(s.stride < s.tap.extent * s.dilation for s in slides[:-1])
    combined = COMPARED if block.combiner.data in ("max", "min") else 0
    if not overlap or _cycles_apart(slides, lanes, combined, padded) >= _cycles_together(slides, lanes, combined):
        return None
    tiles = up_to(ROWS, slides[0].place.extent)
    sizes = {n: _tile_elements(slides, n, padded) * output_bytes(block) for n in tiles}
    choices = tuple(n for n in tiles if sizes[n] <= STACK_BYTES)
    if not choices:
        return None
    is_parallel = target.cores > 1 and prod(a.extent for a in block.axes) >= parallel_elements(target)
    wanted, planes = TASKS_A_CORE * target.cores if is_parallel else 1, prod(a.extent for a in spatial[: -len(slides)])
    held = [n for n in choices if sizes[n] <= target.l1_bytes and planes * -(-slides[0].place.extent // n) >= wanted]
    name = block.block_name
    return WindowPlan(
        name,
        pads[0].block_name if padded else "",
        _final(block),
        tuple(s.tap.name for s in slides[:-1]),
        len(spatial) - len(slides),
        Hole.near(f"{name}_rows", choices, max(held, default=choices[0]), "tile"),
        lanes,
        is_parallel,
    )


def _pads(block: BlockOp) -> bool:
    """True for a block that copies what is there, and for others nothing else."""
    return not block.is_reduction and len(block.outputs) == 1 and len(block.loads) == 1 and not is_costly(block)


def _final(block: BlockOp) -> str:
    """The block that follows a pool element by element, where it alone reads it; else the pool."""
    readers = consumers(block)
    if len(readers) != 1 or is_argument(block.outputs[0]) or len(readers[0].outputs) != 1:
        return block.block_name
    (reader,) = readers
    own, write = [e.as_axis() for e in block.write_indices[0]], [e.as_axis() for e in reader.write_indices[0]]
    reads = [[e.as_axis() for e in load.indices.data] for load in reader.loads if load.buffer is block.outputs[0]]
    sizes, others = {a.name: a.extent for a in block.axes}, {a.name: a.extent for a in reader.axes}
    alike = None not in own and [sizes.get(str(n)) for n in own] == [others.get(str(n)) for n in write]
    return reader.block_name if alike and reads == [write] else block.block_name


def _cycles_together(slides: Sequence[Slide], lanes: int, combined: int) -> int:
    """Vector operations where all terms of a window are reduced at once."""
    return _results(slides, lanes) * prod(s.tap.extent for s in slides) * (slides[-1].stride + combined)


def _cycles_apart(slides: Sequence[Slide], lanes: int, combined: int, padded: bool) -> int:
    """The same along one axis after the other, with what is stored between them, and rows that are padded before."""
    *outer, last = slides
    width = -(-last.reached(last.place.extent) // lanes)
    total = COPIED * padded * prod(s.reached(s.place.extent) for s in outer) * width
    for n, slide in enumerate(outer):
        results = prod(s.place.extent for s in outer[: n + 1])
        total += results * _beside(outer[n + 1 :]) * width * (slide.tap.extent * (1 + combined) + 1)
    return total + _results(slides, lanes) * (last.tap.extent * (last.stride + combined) + 1)


def _results(slides: Sequence[Slide], lanes: int) -> int:
    """Vectors of results."""
    *outer, last = slides
    return prod(s.place.extent for s in outer) * -(-last.place.extent // lanes)


def _beside(slides: Sequence[Slide]) -> int:
    """Positions that all windows reach along some axes."""
    return prod(s.reached(s.place.extent) for s in slides)


def _tile_elements(slides: Sequence[Slide], rows: int, padded: bool) -> int:
    """Elements that a tile of so many rows keeps: padded ones, and what windows come to along the first axes."""
    first, *inner = slides
    kept = first.reached(rows) * _beside(inner) * padded
    for n in range(len(inner)):
        kept += rows * prod(s.place.extent for s in inner[:n]) * _beside(inner[n:])
    return kept


def _write(draft: Draft, plan: WindowPlan) -> None:
    """`pad; n, c, h, w, ry, rx { pool }` -> `n, c, rows of h { pad; h, w, ry { pool_ry }; h, w, rx { pool } }`."""
    members = [plan.pad] if plan.pad else []
    for axis in plan.first:
        before = {block.block_name for block in blocks_in(draft.module)}
        draft.do(Separate, block=plan.name, axis=axis)
        members += {block.block_name for block in blocks_in(draft.module)} - before
    if plan.final != plan.name:
        members.append(plan.name)
    draft.add(plan.rows)
    *outer, rows = draft.loops(plan.final)[: plan.outer + 1]
    around, _ = draft.split(plan.final, rows, (0, plan.rows))
    tile = draft.fuse(plan.final, [*outer, around])
    for name in reversed(members):
        draft.do(ComputeAt, block=name, loop=tile, unit_loops=True)
        draft.do(SetScope, block=name, scope="local")
    for name in (*members, plan.final):
        _lanes(draft, plan, name)
    if plan.is_parallel:
        deal(draft, plan.final, [tile])
    draft.settled |= {plan.final, *members}
    draft.names.append("windows")


def _lanes(draft: Draft, plan: WindowPlan, name: str) -> None:
    """Lanes along the last axis of results, windows written out inside of them."""
    block = draft.block(name)
    outside = 1 if name == plan.final else len(shared_loops(block, draft.block(plan.final)))
    loops, reduced = block.enclosing_loops[outside:], loops_reduced(block)
    *rows, last = [x for x in loops if x.loop_name not in reduced]
    windows = [x for x in loops if x.loop_name in reduced]
    strip, lane = draft.split(name, last.loop_name, (0, min(plan.lanes, 1 << (last.size - 1).bit_length())))
    draft.order(name, [*(x.loop_name for x in rows), strip, *(x.loop_name for x in windows), lane])
    draft.do(Vectorize, block=name, loop=lane)
    copies = 1
    for window in reversed(windows):
        copies *= window.size
        if window.size > 1 and copies <= UNROLLED:
            draft.do(Unroll, block=name, loop=window.loop_name)
