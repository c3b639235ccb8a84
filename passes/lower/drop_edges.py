"""Drop edges: lanes write registers to a workspace without asking for its edge, where there is room behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.index import IndexExpr
from ...dialects.loop import AllocOp, BlockOp, blocks_in, buffer_shape, scope_of
from ...dialects.target import target_of
from ..analysis.nest import functions_on_loops, ranges_of
from ._lanes import same_for_lanes
from ._steps import note_step, require_after
from .place_buffers import PlaceBuffers


@dataclass(frozen=True)
class DropEdges(ModulePass):
    """`for v in 4 vectorized { block copy (i = t, j = g * 4 + v) where (9 - t >= 0, 6 - g * 4 - v >= 0) writes
    %workspace[i, j] }` -> `... where (9 - t >= 0) ...`

    A tile's sums go from registers to a buffer that the function keeps for itself, of the size of whole tiles: beyond
    the edge nobody reads them. Lanes that would answer each for itself are stored as a vector; other edges stay, as
    what is stored beyond them costs time (an H200: up to 5% of 104x2256x2560).

    Requires: buffers placed (`lw-place-buffers`). On a GPU.
    """

    name = "lw-drop-edges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, PlaceBuffers.name)
            drop_edges(func, target_of(op).is_gpu)


def drop_edges(func: FuncOp, gpu: bool) -> None:
    """Drop what lanes would ask in copies from registers to a function's own memory, in place; on a GPU alone."""
    for block in blocks_in(func) if gpu else ():
        asked = [c for c in block.conditions if _is_of_lanes(block, c)]
        if asked and _has_room(block, asked):
            block.rebind(block.bindings.data, [c for c in block.conditions if c not in asked])
    note_step(func, DropEdges.name)


def _is_of_lanes(block: BlockOp, condition: IndexExpr) -> bool:
    """True for a condition that some lanes of a vector fulfil and others do not."""
    loops = block.enclosing_loops
    test = condition.simplify(ranges_of(loops))
    lanes = [loop for loop in loops if loop.loop_kind == "vectorized" and loop.size > 1]
    return any(loop.loop_name in same_for_lanes(test, loop.loop_name, loop.size).axes() for loop in lanes)


def _has_room(block: BlockOp, conditions: Sequence[IndexExpr]) -> bool:
    """True where a copy of registers writes within its buffer's placement for all loops, but for the edges it asks.

    These are of the buffer's own dimensions: what lies beyond is no element of it, and no block's to write.
    """
    if block.is_reduction or len(block.outputs) != 1 or not block.loads:
        return False
    if any(scope_of(load.buffer) != "local" or load.conditions for load in block.loads):
        return False
    alloc = block.outputs[0].owner
    if not isinstance(alloc, AllocOp) or alloc.scope != "global" or alloc.layout is None or alloc.layout.steps:
        return False
    bound, ranges = block.bound, ranges_of(block.enclosing_loops)
    (write,) = block.write_indices
    places = zip(map(IndexExpr.as_axis, write), buffer_shape(alloc.buffer), strict=True)
    edges = {size - 1 - bound[name] for name, size in places if name is not None}
    if not edges.issuperset(conditions):
        return False  # behind an edge inside of the buffer, such as a row's in one dimension, lie other elements
    for index, low, extent in zip(write, alloc.layout.lows, alloc.layout.extents, strict=True):
        least, most = (index.substitute(bound) - low).simplify(ranges).bounds(ranges)
        if least < 0 or most >= extent:
            return False
    return True
