"""Products that look like something else, as convolutions of one tap: their pixels become rows or columns."""

from __future__ import annotations

from itertools import groupby

from ...dialects.attributes import Axis
from ...passes.primitive import ScheduleError
from ...passes.schedule.collapse import Collapse
from ..sketch.draft import Draft
from ..structure.anchor import Anchor, anchor_of
from ..structure.kinds import contraction_of


def joined_axes(anchor: Anchor) -> tuple[Axis, ...]:
    """The longest run of neighbouring axes that one of two operands alone moves along: pixels, and images of a batch.

    Where no two neighbours are such, the last one: what is left to do is to leave out axes of one iteration, as those
    of a window of one tap. Empty for what is no product of two operands.
    """
    found = contraction_of(anchor)
    if found is None or len(found.terms) != 1 or anchor.pads:
        return ()
    runs = [tuple(run) for side, run in groupby(anchor.spatial, key=found.side_of) if side]
    longest = max(runs, key=len, default=())
    return longest if len(longest) > 1 else anchor.spatial[-1:]


def as_product(draft: Draft, anchor: Anchor) -> Anchor:
    """The anchor with those axes as one, where that is legal: by a step of the draft, or as it is."""
    axes = joined_axes(anchor)
    if not _changes(draft, anchor, axes):
        return anchor
    try:
        draft.do(Collapse, block=anchor.block, axes=tuple(axis.name for axis in axes))
    except ScheduleError:
        return anchor
    return anchor_of(draft.module, anchor.block)


def seen_as_product(draft: Draft, anchor: Anchor) -> Anchor:
    """The same, of a copy of the draft where a step would change it."""
    return as_product(draft.copy() if _changes(draft, anchor, joined_axes(anchor)) else draft, anchor)


def _changes(draft: Draft, anchor: Anchor, axes: tuple[Axis, ...]) -> bool:
    """True where there are several axes to join, or some of one iteration to leave out, and no step has holes yet."""
    ones = any(axis.extent == 1 for axis in draft.block(anchor.block).axes)
    return bool(axes) and (len(axes) > 1 or ones) and not draft.holes
