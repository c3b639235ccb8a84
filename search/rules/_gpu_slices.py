"""Slices of a tiled reduction, which groups of a block's threads take, and add up in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Limit
from ._gpu_division import joining_block, sum_up
from ._gpu_joins import loops_by_axis
from ._gpu_tile_plan import GpuTilePlan


@dataclass(frozen=True)
class SlicedResult:
    """Place of slices: inside of the loop over thread blocks, in the block of partial sums."""

    block_loop: str
    partial: str


def write_slices(draft: Draft, plan: GpuTilePlan) -> SlicedResult:
    """Blocks of threads for the sum; the partial sums of all slices ahead of it, in shared memory."""
    assert plan.slices is not None and plan.division is not None
    partial = f"{plan.anchor.output}_tile"
    draft.do(CacheWrite, block=plan.block, buffer=plan.anchor.output, scope="local", label=partial)
    out = joining_block(draft, plan.division)
    block_loop, results = _tile_result(draft, plan, out)
    draft.do(Bind, block=out, loop=block_loop, thread="blockIdx.x")
    _, thread, vector = draft.split(out, results, (0, plan.slices.threads, plan.slices.width))
    draft.do(Bind, block=out, loop=thread, thread="threadIdx.x")
    draft.do(Vectorize, block=out, loop=vector)
    sum_up(draft, plan.division, out, thread)
    draft.do(ComputeAt, block=partial, loop=block_loop, unit_loops=True)
    draft.do(SetScope, block=partial, scope="shared")
    draft.do(ComputeAt, block=plan.block, loop=block_loop, unit_loops=True)
    return SlicedResult(block_loop, partial)


def _tile_result(draft: Draft, plan: GpuTilePlan, out: str) -> tuple[str, str]:
    """Tile what the sums are written to; the loop over blocks of threads, and that over the results of one."""
    assert plan.slices is not None and plan.division is not None
    axis_of = {loop: axis for axis, loop in loops_by_axis(draft, plan.division.final, out).items()}
    parts, blocks, inside = list[str](), list[str](), list[str]()
    for loop in draft.sizes(out):
        axis = axis_of.get(loop, "")
        if axis in plan.slices.tiles:
            draft.do(Split, block=out, loop=loop, factors=(0, plan.slices.tiles[axis]))
            blocks.append(f"{loop}0")
            inside.append(f"{loop}1")
        else:
            is_part = plan.parts is not None and axis == plan.parts.part
            (parts if is_part else blocks).append(loop)
    blocks = [*parts, *blocks]
    draft.do(Reorder, block=out, loops=(*blocks, *inside))
    return draft.fuse(out, blocks), draft.fuse(out, inside)


def even_slices(plan: GpuTilePlan) -> Limit:
    """Tiles within the result, vectors within a row of a tile, and enough of them for most threads; whole slices."""
    assert plan.slices is not None
    tiles = {plan.slices.tiles[t.name].name: t.extent for t in plan.axes}
    row, width, threads, adding = list(tiles)[-1], plan.slices.width.name, plan.threads.name, plan.slices.threads.name
    divisions = [each for each in (plan.division, plan.parts) if each is not None]
    whole, counts = divisions[0].divided.extent, [each.parts.name for each in divisions]

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        mask = (c[row] % c[width] == 0) & (2 * c[adding] >= c[threads])
        mask &= whole % np.prod([c[name] for name in counts], axis=0) == 0
        return np.asarray(mask & np.all([c[t] <= extent for t, extent in tiles.items()], axis=0))

    return limit
