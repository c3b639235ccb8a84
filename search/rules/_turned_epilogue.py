"""Cost of results that are written along another axis than their lanes, or by their epilogue, in the tile or apart."""

from __future__ import annotations

from math import prod

from ...dialects.element import element_bytes
from ...passes.analysis.nest import buffer_name
from ..sketch.draft import Draft
from ..structure.anchor import Anchor
from ..structure.strides import accesses
from ._lanes import is_costly
from ._turned import turned_axes

SCATTER_CYCLES = 3.0
"""To store one lane of a vector (measured on a Zen 5)."""
ALIASED_CYCLES = 20.0
"""To store one where neighbouring lanes are multiples of `ALIAS_BYTES` apart, which are one set of a cache (measured on
a Zen 5)."""
ALIAS_BYTES = 2048
"""Bytes apart at which lines fall into few sets of a first-level cache, of which 64 have 4096 bytes between them."""
TURN_CYCLES = 2.0
"""To write an element, and to read it again in tiles of both axes; all of these measured on a Zen 5."""
COSTLY_TURN_CYCLES = 4.0
"""The same where what follows is computed in lanes, whose elements are gathered (measured on a Zen 5)."""


def turning_cycles(draft: Draft, anchor: Anchor, apart: bool = False) -> float:
    """Cycles of all elements, in the tile of the results or apart from it; 0 for any other epilogue, or none."""
    if anchor.epilogue is None:
        return 0.0
    block = draft.block(anchor.epilogue)
    axes = turned_axes(block)
    if axes is None:
        return 0.0
    scatter = _scatter_cycles(anchor, accesses(block)[0].step(axes[0]))
    turn = COSTLY_TURN_CYCLES if is_costly(block) else TURN_CYCLES
    return prod(a.extent for a in anchor.spatial) * (turn if apart else scatter)


def stored_apart_cycles(draft: Draft, anchor: Anchor, lanes: str, together: int = 1) -> float:
    """Cycles to store all results in their tile, in lanes along one of their axes; 0 where these are neighbours.

    Of such that are turned before, so many are stored `together`: 0 but for lines that share a set of a cache, each of
    which is written once. Charged for each result, lanes along channels were estimated at three times what they take
    (112x64x64 with a batch of 2 to 256 at 20.2 ms, which take 5.2; 3x96x96 9x9 at 7.2 and 2.7; a core of a Zen 4).
    """
    step = _stored_step(draft, anchor, lanes)
    each = _scatter_cycles(anchor, step)
    if step == 1 or (together > 1 and each < ALIASED_CYCLES):
        return 0.0
    return prod(a.extent for a in anchor.spatial) / together * each


def stored_in_line(draft: Draft, anchor: Anchor, axis: str) -> bool:
    """True where results that are neighbours along an axis are stored next to each other, and take few cycles each."""
    return _stored_step(draft, anchor, axis) == 1 and not is_costly(draft.block(anchor.epilogue or anchor.block))


def _stored_step(draft: Draft, anchor: Anchor, axis: str) -> int | None:
    """The elements from a result to the next along an axis where it is stored, by its epilogue if it has one."""
    block = draft.block(anchor.epilogue or anchor.block)
    if anchor.epilogue is not None:
        written = [e.as_axis() for e in draft.block(anchor.block).write_indices[0]]
        (read,) = {load.indices.data for load in block.loads if buffer_name(load.buffer) == anchor.output}
        axis = read[written.index(axis)].as_axis() or axis
    return accesses(block)[0].step(block.bound[axis].as_axis() or axis)


def _scatter_cycles(anchor: Anchor, step: int | None) -> float:
    """Cycles to store one lane of a vector where the next is so many elements further."""
    return SCATTER_CYCLES if abs(step or 0) * element_bytes(anchor.element) % ALIAS_BYTES else ALIASED_CYCLES
