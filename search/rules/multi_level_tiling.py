"""Multi-level tiling on a CPU: S R S R S around a register tile, packed panels, an accumulator tile, its epilogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import ClassVar, TypeAlias

from ...dialects.buffers import buffer_shape
from ...dialects.element import element_bytes
from ...dialects.target import Target
from ...passes.analysis.access import writers
from ...passes.analysis.nest import buffer_name
from ...passes.analysis.views import is_view, keeps_rows
from ...passes.primitive import ScheduleError
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.pad import Pad
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.prefetch import Prefetch
from ...passes.schedule.prefetch_panel import PrefetchPanel
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.cache_traffic import KEPT
from ..estimates.tile_model import PACK_CYCLES, TileModel
from ..sketch.draft import Draft
from ..sketch.hole import Derived
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand
from ..structure.padding import padded_windows
from ._ahead import pack_ahead
from ._as_read import lay_as_read
from ._copied_ahead import cycles_ahead
from ._copied_lines import in_lanes
from ._lanes import is_costly, sharing_pays
from ._pixels_apart import copy_pixels, turn_pixels
from ._structures import tile_anchors
from ._tile_limits import block_limits
from ._tile_model import tile_model
from ._tile_plan import TilePlan, plan_tiles
from ._tile_variants import Variant, direct_variant, is_product, variants
from ._turned import TURNED_BYTES
from ._turned_epilogue import turning_cycles
from .injective import has_lanes, spread
from .strided_phases import reads_phases

Part: TypeAlias = "str | list[str | Derived]"
"""Of a layout: an axis, or a part of one."""


class MultiLevelTiling(SketchRule):
    """Reductions with data reuse, on a CPU.

    The one block that reads the results element by element, such as bias and activation, is computed in each tile,
    where they are still in a cache: each element is computed once either way, so apart it would only move memory once
    more, however costly it is (a product of 512x512 with gelu: 1324 us in the tile, 1395 us apart, on a Zen 5). Only
    where it writes along another axis is there a choice: in the tile its lanes are stored one by one, apart it is
    tiled along both axes (with a transpose: 2842 us in the tile, 1383 us apart). What several blocks read is always
    apart.
    """

    order: ClassVar[int] = 300

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        def write(grown: Draft, anchor: Anchor, variant: Variant) -> Iterator[TileModel]:
            return _write(grown, plan_tiles(grown, anchor, variant, target))

        def structures(anchor: Anchor) -> list[Variant]:
            if reads_phases(draft, anchor):
                found = [direct_variant(anchor)]
            else:
                found = list(variants(anchor, target, padded_windows(draft.module, anchor)))
            if turning_cycles(draft, anchor):
                return [replace(one, epilogue=where) for one in found for where in ("apart", "tile")]
            return found

        return tile_anchors(draft, structures, write, by_estimate=True)


@dataclass(frozen=True)
class _TileLoops:
    """Loops of a tiled reduction: those over `tasks` as one, the outermost one over blocks of steps, the lanes.

    `blocks` is the loop over tasks where no reduce axis is blocked, `steps` the innermost one over terms that are not
    written out. In `results` sums are complete. `registers` are the loops of a register tile around the lanes.
    """

    tasks: str
    blocks: str
    steps: str
    results: str
    registers: tuple[str, ...]
    lanes: str


def _write(draft: Draft, plan: TilePlan) -> Iterator[TileModel]:
    """The numbers, limits and model of a plan, then all its steps."""
    model = tile_model(plan, cycles_ahead(draft, plan))  # before arguments that are packed ahead are replaced
    views = [w.block_name for o in plan.anchor.operands for w in writers(o.buffer) if is_view(w) and keeps_rows(w)]
    draft.add(*plan.numbers)
    draft.sure += any(
        (
            plan.is_sure,
            plan.is_line,
            plan.is_streamed,
            plan.leaves_out,
            plan.variant.turns_pixels,
            is_product(plan.anchor, plan.target),
        )
    )
    draft.in_rounds |= plan.is_streamed
    draft.limits += [*block_limits(plan), model.limit_registers, model.limit_code, model.limit_waste]
    left = {pad for pad in plan.pads_ahead if not has_lanes(draft, pad, plan.target)}  # which later rules schedule
    draft.settled |= {plan.block, plan.anchor.epilogue or plan.block, *plan.anchor.pads} - left
    yield model
    if plan.still is not None:
        _keep_sums(draft, plan)
        _extend(draft, plan)
    panels = _pack(draft, plan)
    pixels = copy_pixels(draft, plan.block, plan.pixels) if plan.pixels is not None else ""
    _pad(draft, plan)
    loops = _tile(draft, plan)
    if plan.still is None:
        _keep_sums(draft, plan)
    out = _accumulate(draft, plan, loops)
    _ask_for_addends(draft, plan, loops)
    if plan.ahead is not None:
        (operand,) = plan.moving
        draft.do(Prefetch, block=plan.block, buffer=operand.name, loop=loops.steps, distance=plan.ahead)
    if plan.variant.panels_asked:
        (filters,) = plan.packed
        draft.do(PrefetchPanel, block=plan.block, buffer=filters, loop=loops.tasks)
    if plan.asks_blocks:
        _ask_for_blocks(draft, plan, loops)
    for panel in panels:
        _place(draft, plan, loops, panel)
    if plan.pixels is not None:
        draft.do(ComputeAt, block=pixels, loop=loops.tasks, unit_loops=True)
        turn_pixels(draft, pixels, plan.anchor, plan.variant.vector[-1].name)
        in_lanes(draft, pixels, plan.lanes)
    if plan.is_parallel:
        draft.do(Parallel, block=plan.block, loop=loops.tasks)
    if plan.stored_lanes is not None:  # lanes that are off would be of the next task
        _turn(draft, plan, loops, out)
    for view in views:
        with suppress(ScheduleError):  # a copy more, where others read it
            draft.do(ComputeInline, block=view)


def _pack(draft: Draft, plan: TilePlan) -> list[str]:
    """Lay the operands along the lanes out anew; the blocks that do so in each run."""
    if plan.panel_width is None:
        return []
    rows = [_row_panel(draft, plan, plan.still)] if plan.still is not None else []
    if plan.variant.panel != "ahead":
        return [*(_panel(draft, plan, operand) for operand in plan.in_panels), *rows]
    for operand in plan.in_panels:
        pack_ahead(draft, plan.block, operand, plan.variant.axes, plan.panel_width)
    return rows


def _extend(draft: Draft, plan: TilePlan) -> None:
    """Extend axes that both panels or one hold to whole register tiles and steps: what is beyond is zero in panels."""
    factors = {t.axis.name: t.inner for t in plan.rows} | {plan.variant.axes[-1]: plan.panel_width}
    factors |= {t.axis.name: t.unroll for t in plan.reduce if t.is_padded}
    for name in (*plan.padded, *(t.axis.name for t in plan.reduce if t.is_padded)):
        draft.do(Pad, block=plan.block, loop=name, factor=factors[name])


def _row_panel(draft: Draft, plan: TilePlan, operand: Operand) -> str:
    """`a[n, i, k]` -> `a_panel[n, i / rows, k, i % rows]`; the block that copies.

    Panels of all steps begin with the block of steps that they are of: `[n, k / steps, i / rows, k % steps, i % rows]`.
    """
    label = f"{operand.name}_panel"
    rows = {t.axis.name: t.inner for t in plan.rows if t.axis.name in operand.axes}
    spatial = [a.name for a in plan.anchor.spatial if a.name in operand.axes]
    reduce = [t.axis.name for t in plan.reduce if t.axis.name in operand.axes]
    outer = [[f"{n}/", rows[n]] if n in rows else n for n in spatial]
    blocks, steps = _in_blocks(plan, reduce)
    layout = (*blocks, *outer, *steps, *([f"{n}%", rows[n]] for n in spatial if n in rows))
    draft.do(CacheRead, block=plan.block, buffer=operand.name, scope="global", layout=layout, label=label)
    return label


def _panel(draft: Draft, plan: TilePlan, operand: Operand) -> str:
    """`b[n, k, j]` -> `b_panel[n, j / width, k, j % width]`, or as `_row_panel` does; the block that copies."""
    label = f"{operand.name}_panel"
    fused = "*".join(n for n in plan.variant.axes if n in operand.axes)
    spatial = {a.name for a in plan.anchor.spatial}
    batch = [n for n in operand.axes if n in spatial and n not in plan.variant.axes]
    reduce = [t.axis.name for t in plan.reduce if t.axis.name in operand.axes]
    blocks, steps = _in_blocks(plan, reduce)
    layout = (*blocks, *batch, [f"{fused}/", plan.panel_width], *steps, [f"{fused}%", plan.panel_width])
    draft.do(CacheRead, block=plan.block, buffer=operand.name, scope="global", layout=layout, label=label)
    return label


def _in_blocks(plan: TilePlan, reduce: Sequence[str]) -> tuple[list[Part], list[Part]]:
    """Parts of a layout: the blocks of steps, where panels are of all of them, and the steps.

    A tile reads its panels one block after the other. With all steps of a panel side by side those of neighbouring
    panels would be powers of two apart, in a few sets of the caches.
    """
    if plan.block_steps is None:
        return [], [*reduce]
    return [[f"{n}/", plan.block_steps] for n in reduce], [[f"{n}%", plan.block_steps] for n in reduce]


def _pad(draft: Draft, plan: TilePlan) -> None:
    """Padding where it is read, or as it is packed, or ahead of all."""
    for pad in plan.anchor.pads:
        if pad in plan.pads_ahead:
            lay_as_read(draft, pad, plan.target)
            spread(draft, pad, plan.target)
        else:
            draft.do(ComputeInline, block=pad)


def _tile(draft: Draft, plan: TilePlan) -> _TileLoops:
    """Split all axes, put their parts in order: tasks, blocks of steps, cache tile, steps, register tile."""
    block = plan.block
    vector = draft.fuse(block, plan.variant.axes)
    draft.do(Split, block=block, loop=vector, factors=(0, plan.vector_middle, plan.vectors, plan.lanes))
    rows = [tile.axis.name for tile in plan.rows]
    for tile in plan.rows:
        draft.do(Split, block=block, loop=tile.axis.name, factors=(0, tile.middle, tile.inner))
    blocks, steps, unrolled = [], [], []
    for axis in plan.reduce:
        factors = (0, axis.unroll) if axis.block is None else (0, axis.block, axis.unroll)
        parts = [f"{axis.axis.name}{n}" for n in range(len(factors))]
        draft.do(Split, block=block, loop=axis.axis.name, factors=factors)
        blocks += parts[:-2]
        steps.append(parts[-2])
        unrolled.append(parts[-1])
    tiles = [*(f"{n}0" for n in rows), f"{vector}0"]
    tasks = [*(a.name for a in plan.outer), *(tiles[-1:] + tiles[:-1] if plan.filters_first else tiles)]
    cache_tile = [f"{vector}1", *(f"{n}1" for n in rows)]
    registers = [*(f"{n}2" for n in _broadcast_first(plan, rows)), f"{vector}2"]
    lanes = f"{vector}3"
    order = [*tasks, *blocks, *cache_tile, *steps, *unrolled, *registers, lanes]
    # Loops of extent 1 stand where they are: the named ones are permuted among the rest.
    draft.order(block, [*[n for n in draft.loops(block) if n not in order], *order])
    task = draft.fuse(block, tasks)
    draft.do(Vectorize, block=block, loop=lanes)
    for name in [*unrolled, *registers]:
        draft.do(Unroll, block=block, loop=name)
    is_whole = plan.variant.at_once or (not blocks and plan.stored_lanes is None)
    results = cache_tile[-1] if is_whole else task
    return _TileLoops(task, blocks[0] if blocks else task, steps[-1], results, tuple(registers), lanes)


def _broadcast_first(plan: TilePlan, rows: Sequence[str]) -> list[str]:
    """The rows of a register tile from the outermost: those along which an element is read for all lanes, the others.

    So each such element is used for all images, then the next one is read. Images around filters keep all of theirs in
    registers until the next image: tiles of 14 filters by two images take 751 us so, and 477 in this order (8x64x28x28
    to 112 by one tap, one core of a Zen 5).
    """
    broadcast = {name for o in plan.anchor.operands if o not in plan.moving for name in o.axes}
    return sorted(rows, key=lambda name: name not in broadcast)


def _keep_sums(draft: Draft, plan: TilePlan) -> None:
    """Sums in a buffer of their own, which is a tile's."""
    output = plan.anchor.output
    if plan.anchor.epilogue is None:
        draft.do(CacheWrite, block=plan.block, buffer=output, scope="local", label=f"{output}_tile")
    else:
        draft.do(SetScope, block=plan.block, scope="local")


def _accumulate(draft: Draft, plan: TilePlan, loops: _TileLoops) -> str:
    """Take the sums of a tile from where they are kept, by the epilogue or a copy; the block that does so.

    What takes a register tile is written out: where the cache tile is no larger its sums stay in registers until they
    are stored, for sums at places that loops count are in memory. 2048 x 1024 x 32 runs at 188 GFLOP/s with loops and
    at 236 so, 832 x 3456 x 64 at 229 and 243 (one core of a Zen 5). Where no terms are in blocks a register tile stores
    its results itself, costly ones as well: 34 of 70 drawn convolutions take 1 / 1.10 of the time so (0.95 to 1.66), 12
    depthwise layers before silu 1 / 1.12 (1.02 to 1.53), and those of many terms, such as 24 channels by one tap, 1.01
    to 1.04 times as long, written out (one core of a Zen 4).
    """
    block, out, buffer = plan.block, plan.anchor.epilogue, plan.anchor.output
    if out is None:
        out = buffer = f"{plan.anchor.output}_tile"
    is_by_tile = loops.results != loops.tasks and not plan.variant.at_once
    if is_by_tile:
        draft.do_unseen(ReverseComputeAt(out, loops.tasks), ReverseComputeAt, block=out, loop=loops.results)
    else:
        draft.do(ReverseComputeAt, block=out, loop=loops.results)
    fused = plan.variant.axes
    if len(fused) > 1 or plan.variant.vector[-1] != plan.anchor.spatial[-1]:
        names = [e.as_axis() for e in draft.block(block).write_indices[0]]
        kept = [n for n in names if n is not None and n not in fused]
        draft.do(TransformLayout, block=block, buffer=buffer, layout=(*kept, "*".join(fused)))
    if plan.stored_lanes is None:
        draft.do(Vectorize, block=out, loop=loops.lanes)
        is_cheap = not is_costly(draft.block(out))
        if is_by_tile or is_cheap:
            is_seen = is_cheap and is_product(plan.anchor, plan.target)
            unroll = draft.do if is_seen else partial(draft.do_unseen, None)
            for name in loops.registers:
                unroll(Unroll, block=out, loop=name)
    return out


def _ask_for_blocks(draft: Draft, plan: TilePlan, loops: _TileLoops) -> None:
    """Have tiles ask for the next block of a panel, or where one block is of all terms for the next panel."""
    places = [loops.blocks] if plan.still is not None else [loops.tasks, loops.blocks]
    for operand, loop in product(plan.moving, dict.fromkeys(places)):
        draft.do(PrefetchPanel, block=plan.block, buffer=f"{operand.name}_panel", loop=loop)


def _ask_for_addends(draft: Draft, plan: TilePlan, loops: _TileLoops) -> None:
    """Have the epilogue of a tile ask for what that of the next one reads of buffers as large as the results.

    Such as a residual, which comes from far away in the middle of arithmetic: layers were run since it was written.
    """
    out = plan.anchor.epilogue
    if out is None or plan.variant.turned:
        return
    results = prod(axis.extent for axis in plan.anchor.spatial)
    if results * element_bytes(plan.anchor.element) < KEPT * plan.target.l2_bytes:
        return
    reads = {buffer_name(load.buffer): load.buffer for load in draft.block(out).loads}
    for name, buffer in reads.items():
        if name != plan.anchor.output and prod(buffer_shape(buffer)) == results:
            draft.do(Prefetch, block=out, buffer=name, loop=loops.tasks)


def _turn(draft: Draft, plan: TilePlan, loops: _TileLoops, out: str) -> None:
    """Store results in vectors along the rows of a register tile, of so many neighbouring lanes that loads are turned.

    `i1, j1, j2, i2, i3` -> `i1, i, j, i unrolled, j in lanes`: with a row's neighbours one after the other 774 x 648 to
    1746 takes 15.8 ms, with those of a column 18.6 (one core of an Emerald Rapids that others use). Other rows of a
    tile are around, each as a whole.
    """
    assert plan.stored_lanes is not None, "planned"
    middle, *rows, vectors, lanes = draft.loops(out, below=loops.results)
    number = len(rows) // 2
    pairs = [pair for each in zip(rows[:number], rows[number:], strict=True) for pair in each]
    draft.order(out, [middle, *pairs, vectors, lanes])
    row = draft.fuse(out, pairs[-2:])
    column = draft.fuse(out, [vectors, lanes])
    row_parts = draft.split(out, row, (0, plan.stored_lanes))
    column_parts = draft.split(out, column, (0, TURNED_BYTES // element_bytes(plan.anchor.element)))
    draft.order(out, [middle, *pairs[:-2], column_parts[0], row_parts[0], column_parts[1], row_parts[1]])
    draft.do(Unroll, block=out, loop=column_parts[1])
    draft.do(Vectorize, block=out, loop=row_parts[1])


def _place(draft: Draft, plan: TilePlan, loops: _TileLoops, panel: str) -> None:
    """Pack a panel in lines or in lanes: in each tile, or before all of them, by all threads."""
    if plan.variant.panel != "root":
        draft.do(ComputeAt, block=panel, loop=loops.blocks, unit_loops=True)  # a panel may be one lane wide
    width = plan.turned if plan.still is not None and panel == f"{plan.still.name}_panel" else plan.lanes
    in_lanes(draft, panel, width)
    if (
        plan.variant.panel == "root"
        and plan.is_parallel
        and sharing_pays(plan.target, prod(draft.sizes(panel).values()) * PACK_CYCLES)
    ):
        around = draft.loops(panel)
        outer = around[: max(1, min(2, len(around) - 1))]
        draft.do(Parallel, block=panel, loop=draft.fuse(panel, outer))
