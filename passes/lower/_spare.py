"""Elements to spare behind buffers in shared memory, from which registers beyond an edge are filled for nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects.element import element_bytes
from ...dialects.layout import Layout
from ...dialects.loop import BlockOp, blocks_in, element_of_buffer, scope_of
from ..analysis.nest import ranges_of
from ..analysis.placement import Placement, bounds_together, runs_ahead

_SHARE = 3
"""A third of a buffer may lie unused behind it, at most. A choice: threads beyond an edge read a few rows more."""

_KEPT_FREE = 2048
"""Bytes of a block's shared memory that are left to what lies between buffers and to barriers of copies: a buffer for
descriptors starts at a multiple of 1,024."""

_ALIGNED_BYTES = 128
"""Alignment of a box that the copy engine brings, more than a vector's (CUDA C++ Programming Guide)."""


def with_spare(func: FuncOp, places: Mapping[SSAValue, Placement], most_bytes: int) -> dict[SSAValue, Placement]:
    """Return placements of which those in shared memory hold all that registers beyond an edge are filled from.

    Where that lies outside of a buffer, threads ask for their edge, in the last step of a reduction or in all, and part
    at each multiply-add. Each stage of a pipeline has elements to spare of its own: behind it lies the next one, which
    copies that nobody has waited for may be filling. As it was where that leaves too little of the `most_bytes` that a
    block has.
    """
    stages = {buffer for block in blocks_in(func) for buffer in block.outputs if runs_ahead(block, buffer)}
    spare: dict[SSAValue, int] = {}
    for block in blocks_in(func):
        if block.conditions and all(scope_of(output) == "local" for output in block.outputs):
            for buffer, beyond in _beyond(block, places).items():
                spare[buffer] = max(beyond, spare.get(buffer, 0))
    found = dict(places)
    for buffer, beyond in spare.items():
        layout = places[buffer].layout
        if buffer in stages:
            layout = _stages_apart(layout, beyond, element_bytes(element_of_buffer(buffer)))
        found[buffer] = replace(places[buffer], layout=replace(layout, spare=beyond))
    taken = sum(
        place.size * element_bytes(element_of_buffer(buffer))
        for buffer, place in found.items()
        if place.scope == "shared"
    )
    return found if taken + _KEPT_FREE <= most_bytes else dict(places)


def _beyond(block: BlockOp, places: Mapping[SSAValue, Placement]) -> dict[SSAValue, int]:
    """Numbers of elements that a block reads behind buffers in shared memory, where these are few."""
    found: dict[SSAValue, int] = {}
    bound, ranges = block.bound, ranges_of(block.enclosing_loops)
    for load in block.loads:
        place = places[load.buffer]
        if place.scope != "shared" or place.layout.swizzle is not None:
            continue
        offset = place.offset([e.substitute(bound) for e in load.indices.data]).simplify(ranges)
        first, last = bounds_together(offset, ranges)
        if first >= 0 and place.size <= last < place.size + place.size // _SHARE:
            found[load.buffer] = max(last + 1 - place.size, found.get(load.buffer, 0))
    return found


def _stages_apart(layout: Layout, beyond: int, each_bytes: int) -> Layout:
    """Put elements to spare between the stages, the first dimension, which begin at places as aligned as before."""
    (stage, *inner), (_, *extents) = layout.strides, layout.extents
    used = 1 + sum((n - 1) * stride for n, stride in zip(extents, inner, strict=True))
    aligned = gcd(stage, _ALIGNED_BYTES // each_bytes)
    apart = max(stage, -(-(used + beyond) // aligned) * aligned)
    return replace(layout, strides=(apart, *inner))
