"""Parts of a reduction added up in the launch that computes them, by the blocks of a cluster that did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd, prod

import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.kernel import CLUSTERS_SINCE
from ...dialects.loop import buffer_shape
from ...dialects.target import Target
from ...passes.analysis.nest import buffer_name
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.join import Join
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole, Number
from ._gpu_division import Division, sum_up
from ._gpu_tile_plan import join_width

PART_AXIS = "blockIdx.y"
"""The axis of blocks that parts lie along; tiles lie along x."""
WIDTH = 4
"""Results that a thread adds up parts for at once, without a search: 16 bytes of each part. A choice."""
MOST_AS_ONE = 2
"""Axes that tiles take as one, at most: an image's. Of those of several images, some of which are padded, no box of
parts is one of tiles."""
LOADED_AHEAD = 64
"""Loads of a thread that adds up parts which are written out one behind the other, so that they are under way together.
A choice: 8 results of 8 parts."""


@dataclass(frozen=True)
class TileLoops:
    """Loops of the block that takes the sums, over tiles and inside of a tile, and the numbers of its extents."""

    around: tuple[str, ...]
    inside: tuple[str, ...]
    extents: tuple[str, ...]


def ways_to_join(target: Target) -> tuple[bool, ...]:
    """The ways worth searching on a target: by a second kernel, and where it has them by clusters."""
    return (False, True) if target.kind == "cuda" and target.compute_capability >= CLUSTERS_SINCE else (False,)


def loops_by_axis(draft: Draft, final: str, out: str) -> dict[str, str]:
    """Loops of the block that takes the sums by the axes of these; ScheduleError where one is not of one axis."""
    block, taker = draft.block(final), draft.block(out)
    load = next(load for load in taker.loads if load.buffer is block.outputs[0])
    found: dict[str, str] = {}
    for own, theirs in zip(block.write_indices[0], load.indices.data, strict=True):
        axis, read = own.as_axis(), theirs.as_axis()
        if axis is None or (read is None and not theirs.is_constant):
            raise ScheduleError(None, f"'{out}' takes the sums of '{final}' by other indices than axes")
        if read is not None:
            loop = taker.bound[read].as_axis()
            if loop is None:
                raise ScheduleError(None, f"'{out}', which takes the sums of '{final}', is tiled for others already")
            found[axis] = loop
    return found


def lay_out_parts(draft: Draft, final: str, groups: Sequence[Sequence[Axis]]) -> list[list[int]]:
    """Lay out partial results by axes that tiles take as one, so that a tile is a box of them, in that order.

    An axis that is longer in tiles than in the results, as it is padded, stays apart from those before it: tiles are
    boxes of both, and not of both as one. Returns for each group the places of each such axis and those behind it: a
    tile holds some times as many, or a part of them. ScheduleError where that leaves tiles that are no boxes.
    """
    (load,) = draft.block(final).loads
    shape = {str(e.as_axis()): n for e, n in zip(load.indices.data, buffer_shape(load.buffer), strict=True)}
    joined = [names for group in groups for names in _alike(group, shape)]
    if any(sum(a.extent > 1 for a in group) > MOST_AS_ONE for group in groups):
        raise ScheduleError(None, f"tiles of '{final}' are no boxes of its parts")
    apart = [
        [prod(a.extent for a in group[n:]) for n, a in enumerate(group) if n and shape[a.name] != a.extent]
        for group in groups
    ]
    if all(len(names) == 1 for names in joined):
        return apart
    others = [name for name in shape if not any(name in names for names in joined)]
    layout = (*others, *("*".join(names) for names in joined))
    draft.do(TransformLayout, block=final, buffer=buffer_name(load.buffer), layout=layout)
    return apart


def are_boxes(c: Columns, tile: str, places: Sequence[int]) -> npt.NDArray[np.bool_]:
    """True where tiles hold some times so many places, or a part of them: others begin within a padded row."""
    return np.asarray(np.all([(c[tile] % n == 0) | (n % c[tile] == 0) for n in places], axis=0))


def as_extended(draft: Draft, out: str, loops: Mapping[str, str], groups: Sequence[Sequence[Axis]]) -> dict[str, str]:
    """The loops where those over axes that tiles take as one are as long as these are with their padding.

    The same tiles are then taken of them. Others may be of a shorter last tile.
    """
    found, sizes = dict(loops), draft.sizes(out)
    for group in groups:
        for axis in group if len(group) > 1 else ():
            if axis.name in loops and sizes[loops[axis.name]] != axis.extent:
                found[axis.name] = draft.split(out, loops[axis.name], (0, axis.extent))[1]
    return found


def width_in(block: str, group: Sequence[Axis], most: int) -> Hole:
    """Return the hole of results that a thread adds up parts for at once, within the last of axes taken as one."""
    return join_width(block, gcd(group[-1].extent, most) if len(group) > 1 else most, WIDTH)


def _alike(group: Sequence[Axis], shape: Mapping[str, int]) -> list[list[str]]:
    """The axes of a group, those together of which all but the first are as long in tiles as in the results."""
    found: list[list[str]] = []
    for axis in group:
        if found and shape[axis.name] == axis.extent:
            found[-1].append(axis.name)
        else:
            found.append([axis.name])
    return found


def bind_part(draft: Draft, block: str, part: str) -> None:
    """Give parts an axis of blocks of their own, outside of all other loops."""
    draft.order(block, [part, *[n for n in draft.loops(block) if n != part]])
    draft.do(Bind, block=block, loop=part, thread=PART_AXIS)


def join_in_tiles(
    draft: Draft,
    division: Division,
    out: str,
    loops: TileLoops,
    threads: Mapping[str, Number],
    width: Hole,
) -> None:
    """Add up the parts of each tile, with the epilogue, each block of a cluster its share of the tile.

    They take `width` results at a time each, by as many of the `threads` of a block as divide the share.
    """
    draft.add(width)
    draft.order(out, [*loops.around, *loops.inside])
    tile = draft.fuse(out, loops.around)
    *others, last = loops.inside
    vectors, vector = draft.split(out, last, (0, width))
    share = partial(_share, extents=loops.extents, parts=division.parts.name, width=width.name)
    draft.limits.append(partial(_is_shared, extents=loops.extents, parts=division.parts.name, width=width.name))
    shared = share_threads(draft, division.final, share, threads)
    part, within = draft.split(out, draft.fuse(out, (*others, vectors)), (division.parts, 0))
    rounds, *bound = draft.split(out, within, (0, *shared.values()))
    draft.do(Bind, block=out, loop=tile, thread="blockIdx.x")
    draft.do(Bind, block=out, loop=part, thread=PART_AXIS)
    for kind, loop in zip(shared, bound, strict=True):
        draft.do(Bind, block=out, loop=loop, thread=kind)
    draft.do(Vectorize, block=out, loop=vector)
    sum_up(draft, division, out, bound[-1])
    draft.do(Pragma, block=out, loop=rounds, auto_unroll_max_step=LOADED_AHEAD)
    draft.do(Join, block=out, cluster=PART_AXIS)


def _share(c: Columns, extents: Sequence[str], parts: str, width: str) -> npt.NDArray[np.int64]:
    """Vectors of a tile that each block of a cluster takes."""
    return np.asarray(np.maximum(1, prod(c[name] for name in extents) // (c[parts] * c[width])))


def _is_shared(c: Columns, extents: Sequence[str], parts: str, width: str) -> npt.NDArray[np.bool_]:
    """Candidates whose blocks take as many vectors each."""
    return np.asarray(prod(c[name] for name in extents) % (c[parts] * c[width]) == 0)


def share_threads(
    draft: Draft, name: str, own: Callable[[Columns], npt.NDArray[np.int64]], threads: Mapping[str, Number]
) -> dict[str, Number]:
    """Derive threads along each axis, at most as many as given, of which `own` pieces of a block are a multiple.

    `threads` are listed from the outside in; neighbours come first.
    """
    found: dict[str, Number] = {}
    rest = own
    for kind, most in reversed(list(threads.items())):
        taken = draft.derive(f"{name}_share_{kind[-1]}", partial(_common, rest=rest, most=most))
        rest = partial(_over, rest=rest, taken=taken.name)
        found = {kind: taken, **found}
    return found


def _common(c: Columns, rest: Callable[[Columns], npt.NDArray[np.int64]], most: Number) -> npt.NDArray[np.int64]:
    return np.gcd(rest(c), most if isinstance(most, int) else c[most.name])


def _over(c: Columns, rest: Callable[[Columns], npt.NDArray[np.int64]], taken: str) -> npt.NDArray[np.int64]:
    return np.asarray(rest(c) // c[taken])


def split_off(draft: Draft, out: str, loop: str, name: str, factors: Sequence[Number]) -> list[str]:
    """Split a loop into tiles of the product of factors, by its name; the loop over tiles, and that inside of one."""
    known = prod(factor for factor in factors if isinstance(factor, int))
    open_ = [factor.name for factor in factors if not isinstance(factor, int)]
    tile = draft.derive(name, lambda c: np.asarray(known * np.prod([c[each] for each in open_], axis=0)))
    return draft.split(out, loop, (0, tile))
