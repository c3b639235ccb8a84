"""Slices of a tiled reduction, which groups of a block's threads take, and add up in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Limit
from ._gpu_division import joining_block, sum_up
from ._gpu_tile_plan import GpuTilePlan


@dataclass(frozen=True)
class SlicedResult:
    """Place of slices: inside of the loop over thread blocks, in the block of partial sums."""

    block_loop: str
    partial: str


def write_slices(draft: Draft, plan: GpuTilePlan) -> SlicedResult:
    """Blocks of threads for the sum; the partial sums of all slices ahead of it, in shared memory."""
    assert plan.slices is not None and plan.division is not None
    draft.limits.append(_even(plan))
    partial = f"{plan.anchor.output}_tile"
    draft.do(CacheWrite, block=plan.block, buffer=plan.anchor.output, scope="local", label=partial)
    out = joining_block(draft, plan.division)
    block_loop, results = _tile_result(draft, plan, out)
    draft.do(Bind, block=out, loop=block_loop, thread="blockIdx.x")
    _, thread, vector = draft.split(out, results, (0, plan.threads, plan.slices.width))
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
    around = draft.sizes(out)
    axes = [a for a in plan.anchor.spatial if a.name != plan.division.part and a.extent > 1]
    extents = [size for size in around.values() if size > 1]
    if extents != [a.extent for a in axes]:
        rule = f"'{out}' must go over the extents {[a.extent for a in axes]}, got {extents}"
        raise ScheduleError("slices of a reduction", rule)
    blocks, inside = [], []
    for loop, size in around.items():
        axis = axes.pop(0).name if size > 1 else ""
        if axis in plan.slices.tiles:
            draft.do(Split, block=out, loop=loop, factors=(0, plan.slices.tiles[axis]))
            blocks.append(f"{loop}0")
            inside.append(f"{loop}1")
        else:
            blocks.append(loop)
    draft.do(Reorder, block=out, loops=(*blocks, *inside))
    return draft.fuse(out, blocks), draft.fuse(out, inside)


def _even(plan: GpuTilePlan) -> Limit:
    """Tiles within the result, vectors within a row of a tile, and as many of them for all threads."""
    assert plan.slices is not None
    tiles = {plan.slices.tiles[t.name].name: t.extent for t in plan.axes}
    row, width, threads = list(tiles)[-1], plan.slices.width.name, plan.threads.name

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        results = np.prod([c[t] for t in tiles], axis=0)
        mask = (c[row] % c[width] == 0) & (results % (c[threads] * c[width]) == 0)
        return np.asarray(mask & np.all([c[t] <= extent for t, extent in tiles.items()], axis=0))

    return limit
