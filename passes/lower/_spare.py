"""Elements to spare behind buffers in shared memory, from which registers beyond an edge are filled for nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects.element import element_bytes
from ...dialects.loop import BlockOp, blocks_in, element_of_buffer, scope_of
from ..analysis.nest import ranges_of
from ..analysis.placement import Placement, bounds_together

_SHARE = 3
"""A third of a buffer may lie unused behind it, at most. A choice: threads beyond an edge read a few rows more."""

_KEPT_FREE = 2048
"""Bytes of a block's shared memory that are left to what lies between buffers and to barriers of copies: a buffer for
descriptors starts at a multiple of 1,024."""


def with_spare(func: FuncOp, places: Mapping[SSAValue, Placement], most_bytes: int) -> dict[SSAValue, Placement]:
    """Return placements of which those in shared memory hold all that registers beyond an edge are filled from.

    Where that lies outside of a buffer, threads ask for their edge, in the last step of a reduction or in all, and part
    at each multiply-add. As it was where that leaves too little of the `most_bytes` that a block has.
    """
    found = dict(places)
    for block in blocks_in(func):
        if block.conditions and all(scope_of(output) == "local" for output in block.outputs):
            for buffer, last in _last_read(block, found).items():
                place = found[buffer]
                spare = last + 1 - place.layout.size + place.layout.spare
                found[buffer] = replace(place, layout=replace(place.layout, spare=spare))
    taken = sum(
        place.size * element_bytes(element_of_buffer(buffer))
        for buffer, place in found.items()
        if place.scope == "shared"
    )
    return found if taken + _KEPT_FREE <= most_bytes else dict(places)


def _last_read(block: BlockOp, places: Mapping[SSAValue, Placement]) -> dict[SSAValue, int]:
    """The last elements that a block reads of buffers in shared memory, where these lie a little behind their ends."""
    found: dict[SSAValue, int] = {}
    bound, ranges = block.bound, ranges_of(block.enclosing_loops)
    for load in block.loads:
        place = places[load.buffer]
        if place.scope != "shared" or place.layout.swizzle is not None:
            continue
        offset = place.offset([e.substitute(bound) for e in load.indices.data]).simplify(ranges)
        first, last = bounds_together(offset, ranges)
        own = prod((place.layout.one_size, *(n for _, n in place.layout.copies)))
        if first >= 0 and place.size <= last < own + own // _SHARE:
            found[load.buffer] = max(last, found.get(load.buffer, 0))
    return found
