"""The steps of a product on matrix units: tiles, swizzled copies that run ahead, sums in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ...dialects.element import element_bytes
from ...dialects.loop import buffer_shape, element_of_buffer
from ...dialects.te import IndexOp, PredicateOp
from ...passes.analysis.copies import copies_of
from ...passes.analysis.nest import buffer_name, loops_reduced
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.pad import Pad
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.tensorize import Tensorize
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole, Number
from ..structure.anchor import Anchor
from ..structure.products import Product
from ._gpu_copies import Reads, bring, place_rows, rows_for
from ._gpu_division import Division, joining_block
from ._gpu_joins import (
    TileLoops,
    are_boxes,
    as_extended,
    bind_part,
    join_in_tiles,
    lay_out_parts,
    loops_by_axis,
    split_off,
    width_in,
)
from ._gpu_tensor_plan import CLUSTER_AXES, SidePlan, TensorPlan

HALF_BYTES, WHOLE = 2, 8
"""Bytes of an element, of which two neighbours are the word that threads exchange, and elements of a store."""


@dataclass(frozen=True)
class _Loops:
    """Loops of a product from the outside in: blocks of threads, a warp's lanes, fills, a thread's sums and tiles."""

    block: str
    lane: str
    fill: str
    sums: tuple[str, ...]


def write_result(draft: Draft, anchor: Anchor, division: Division | None) -> str:
    """Keep the sums in registers; the block that takes them from there, which is the epilogue or a copy."""
    out = anchor.epilogue if division is None else None
    if out is None:
        out = f"{anchor.output}_tile"
        draft.do(CacheWrite, block=anchor.block, buffer=anchor.output, scope="local", label=out)
    else:
        draft.do(SetScope, block=anchor.block, scope="local")
    return out


def write_tensor(draft: Draft, plan: TensorPlan, pads: Sequence[str], out: str) -> None:
    """Apply all steps of a plan; `pads` are blocks that pad factors, `out` is the one that takes the sums."""
    draft.add(*plan.numbers())
    rows = ""
    if plan.tail is not None:
        rows = draft.fuse(plan.block, [a.name for a in plan.product.a.rows])
        draft.do(Pad, block=plan.block, loop=rows, factor=plan.tail)
    for side in plan.sides:
        buffer, layout = side.factor.operand.name, side.layout(plan.product)
        draft.do(CacheRead, block=plan.block, buffer=buffer, scope="shared", layout=layout, label=side.copy)
    for pad in pads:
        draft.do(ComputeInline, block=pad)
    loops = _tile(draft, plan, rows)
    _write_out(draft, plan, loops, out)
    for side in plan.sides:
        _fill(draft, plan, loops, side)
    if plan.resident is not None:
        draft.do(Pragma, block=plan.block, loop=loops.block, blocks_per_sm=plan.resident)
    around = {loop.loop_name: loop for loop in draft.block(plan.block).enclosing_loops}
    if copies_of(around[loops.fill]):
        cluster = " ".join(CLUSTER_AXES) if plan.cluster else ""
        draft.do(Pipeline, block=plan.block, loop=loops.fill, stages=plan.stages, bulk=int(plan.bulk), cluster=cluster)


def _tile(draft: Draft, plan: TensorPlan, rows: str) -> _Loops:
    """Split rows, columns and steps of k to the digits of the intrinsic, put them in order, and bind them.

    Rows may be one loop already.
    """
    block, x = plan.block, plan.product.intrinsic
    batch, *axes = _axes_in_order(draft, plan)
    if rows:
        axes[0] = [rows]
    draft.order(block, [*batch, *axes[0], *axes[1], *axes[2]])
    i, j, k = (draft.fuse(block, names) for names in axes)
    held: dict[int, str] = {}
    lanes: dict[int, str] = {}
    parts = []
    for side, loop, axis in zip(plan.sides, (i, j), ("i", "j"), strict=True):
        digits = x.digits(axis)
        found = draft.split(block, loop, (0, side.warps, side.tiles, *plan.digits(axis)))
        parts.append(found[:3])
        for digit, part in zip(digits, found[3:], strict=True):
            (lanes if digit.lanes else held)[digit.lanes or digit.held] = part
    (i0, i1, i2), (j0, j1, j2) = parts
    k0, k1, k2 = draft.split(block, k, (0, plan.steps, x.k))
    in_warp = [lanes[step] for step in sorted(lanes, reverse=True)]
    own = [held[number] for number in sorted(held)]
    clustered = plan.division if plan.division is not None and plan.division.clustered else None
    if clustered is not None:
        batch = [name for name in batch if name != clustered.part]
    around, within, *down = draft.split(
        block, i0, (0, plan.group, *plan.cluster[:1]) if plan.cluster else (0, plan.group)
    )
    j0, *across = draft.split(block, j0, (0, *plan.cluster[1:])) if plan.cluster else (j0,)
    draft.order(block, [*down, *across, *batch, around, j0, within, i1, j1, *in_warp, k0, k1, i2, j2, *own, k2])
    for loop, axis in zip((*down, *across), CLUSTER_AXES, strict=False):
        draft.do(Bind, block=block, loop=loop, thread=axis)
    lane = draft.fuse(block, in_warp)
    if clustered is not None:
        bind_part(draft, block, clustered.part)
    tiles = draft.fuse(block, [*batch, around, j0, within])
    draft.do(Bind, block=block, loop=tiles, thread="blockIdx.x")
    draft.do(Bind, block=block, loop=draft.fuse(block, [i1, j1]), thread="threadIdx.y")
    draft.do(Bind, block=block, loop=lane, thread="threadIdx.x")
    for loop in (k1, i2, j2):
        draft.do(Unroll, block=block, loop=loop)
    return _Loops(tiles, lane, k0, (i2, j2, *own))


def _axes_in_order(draft: Draft, plan: TensorPlan) -> tuple[list[str], list[str], list[str], list[str]]:
    """The loops of a batch, of rows, of columns, and of steps of k, those of one iteration at the ends."""
    product, block = plan.product, draft.block(plan.block)
    rows, columns, k = ([a.name for a in axes] for axes in (product.a.rows, product.b.rows, product.k))
    reduced = loops_reduced(block)
    units = [x.loop_name for x in block.enclosing_loops if x.size == 1]
    batch = [a.name for a in product.batch]
    return [*(n for n in units if n not in reduced), *batch], rows, columns, [*(n for n in units if n in reduced), *k]


def _write_out(draft: Draft, plan: TensorPlan, loops: _Loops, out: str) -> None:
    """Write the sums out of the registers, in each thread."""
    draft.do(ReverseComputeAt, block=out, loop=loops.lane)
    _join_dimensions(draft, plan)
    draft.do(Tensorize, block=plan.block, loop=loops.sums[2], intrinsic=plan.intrinsic)
    *outer, last = loops.sums if plan.parts == 1 else _join_parts(draft, out, loops.sums, plan.parts)
    for loop in outer:
        draft.do(Unroll, block=out, loop=loop)
    draft.do(Vectorize, block=out, loop=last)
    draft.settled |= {plan.block, out}


def _join_parts(draft: Draft, out: str, sums: Sequence[str], count: int) -> list[str]:
    """Make one loop of the columns of several parts of a result, to be written as one vector."""
    *tiles, parts, rows, pair = sums
    part, within = draft.split(out, parts, (0, count))
    draft.order(out, [*tiles, part, rows, within, pair])
    return [*tiles, part, rows, draft.fuse(out, [within, pair])]


def writes_halves(draft: Draft, block: str, product: Product, out: str) -> bool:
    """True where columns of results are neighbours of two bytes, in whole stores of 16, which threads may exchange.

    What `out` reads besides is read element by element then, so that it is a bias, the same for each row. On an H100 a
    convolution of 128x28x28x128 takes 55.6 us with whole stores of 16 bytes, and 72.2 with those of 4. It must ask for
    no index.
    """
    writer, own, columns = draft.block(out), draft.block(block), product.b.rows
    result, last = writer.outputs[0], writer.write_indices[0][-1].as_axis()
    if len(columns) > 1 or last is None or buffer_shape(result)[-1] % WHOLE:
        return False
    place = [e.as_axis() for e in own.write_indices[0]].index(columns[0].name)
    sums = [load for load in writer.loads if load.buffer in own.outputs]
    others = [e for load in writer.loads if load not in sums for e in load.indices.data]
    is_half = element_bytes(element_of_buffer(result)) == HALF_BYTES
    asks = any(isinstance(op, IndexOp | PredicateOp) for op in writer.body.block.ops)
    return (
        is_half
        and not (asks or any(load.conditions for load in writer.loads))
        and all(x.indices.data[place].as_axis() == last for x in sums)
        and all(e.axes() <= {last} for e in others)
    )


def join_tensor(draft: Draft, plan: TensorPlan, division: Division) -> Hole:
    """Add up the parts of each tile of results by the blocks of threads that computed them, which are a cluster.

    Returns how many a thread adds up at once.
    """
    out = joining_block(draft, division)
    groups = [side.factor.rows for side in plan.sides]
    loops = as_extended(draft, out, loops_by_axis(draft, division.final, out), groups)
    sides = [[loops[a.name] for a in group if a.name in loops] for group in groups]
    batch = [loop for loop in draft.loops(out) if not any(loop in names for names in sides)]
    apart = lay_out_parts(draft, division.final, groups)
    draft.order(out, [*batch, *sides[0], *sides[1]])
    tiles = []
    for side, names, axis in zip(plan.sides, sides, ("i", "j"), strict=True):
        factors = (side.warps, side.tiles, *plan.digits(axis))
        tiles.append(split_off(draft, out, draft.fuse(out, names), f"{plan.block}_{axis}_tile", factors))
    (i0, i1), (j0, j1) = tiles
    around, within = draft.split(out, i0, (0, plan.group))
    threads: dict[str, Number] = {"threadIdx.y": plan.warps, "threadIdx.x": plan.product.intrinsic.threads}
    width = width_in(plan.block, plan.product.b.rows, plan.product.intrinsic.n)
    extents = tuple(f"{plan.block}_{axis}_tile" for axis in "ij")
    draft.limits += [partial(are_boxes, tile=t, places=n) for t, n in zip(extents, apart, strict=True) if n]
    join_in_tiles(draft, division, out, TileLoops((*batch, around, j0, within), (i1, j1), extents), threads, width)
    return width


def _join_dimensions(draft: Draft, plan: TensorPlan) -> None:
    """Lay out the sums by rows and columns, where these are several axes: a digit of both is none of each."""
    rows, columns = ([a.name for a in side.factor.rows] for side in plan.sides)
    if len(rows) == len(columns) == 1:
        return
    block = draft.block(plan.block)
    written = [str(e.as_axis()) for e in block.write_indices[0]]
    others = [name for name in written if name not in (*rows, *columns)]
    layout = (*others, "*".join(rows), "*".join(columns))
    draft.do(TransformLayout, block=plan.block, buffer=buffer_name(block.outputs[0]), layout=layout)


def _fill(draft: Draft, plan: TensorPlan, loops: _Loops, side: SidePlan) -> None:
    """Fill shared memory in chunks that lie apart in the banks.

    Boxes are left to the copy engine, loops and all; else all threads copy together, 16 bytes each at once.
    """
    if plan.bulk:
        draft.do(ComputeAt, block=side.copy, loop=loops.fill, unit_loops=True)
        draft.settled.add(side.copy)
    else:
        threads: dict[str, Number] = {"threadIdx.y": plan.warps, "threadIdx.x": plan.product.intrinsic.threads}
        bring(draft, side.copy, loops.fill, threads, side.factor.vector)
    place_rows(draft, side.copy, rows_for(Reads.MATRICES))
