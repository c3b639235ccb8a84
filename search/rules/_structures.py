"""Structures of tiled anchors: each anchor of a draft gets its own, and their combinations drafts of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from math import prod
from typing import Protocol, TypeVar

from ...dialects.attributes import Axis
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_inline import ComputeInline
from ..sketch.draft import ROUNDS, CostEstimate, Draft
from ..structure.anchor import Anchor, anchor_of, anchors_in, find_anchor

MOST_COMBINED = 8
"""Structures of several anchors are combined freely up to so many drafts; beyond, all but one keep their best. With 2
and 32 none of 58 default schedules changes (Zen 3). A choice: each draft more is a sketch that a search divides its
trials among."""


class Structure(Protocol):
    """One way to tile an anchor."""

    @property
    def name(self) -> str:
        """Part of the sketch's name."""


StructureT = TypeVar("StructureT", bound=Structure)
OptionT = TypeVar("OptionT")
Write = Callable[[Draft, Anchor, StructureT], Iterator[CostEstimate]]
"""Plans a structure, yields its estimate, and does its steps when it is asked for more, as `Draft.with_plan` says."""


def tile_anchors(
    draft: Draft,
    structures: Callable[[Anchor], Sequence[StructureT]],
    write: Write[StructureT],
    leaves_others: bool = False,
    by_estimate: bool = False,
) -> list[Draft]:
    """Tile the anchors of a draft that no rule has settled, in each combination of structures worth a sketch.

    A structure without a candidate within its limits is left out; an anchor without any is left to later rules, as it
    is where `leaves_others`. Defaults are those of the holes, or with `by_estimate` what the estimates like best. Where
    a structure gives a later anchor other axes, that has structures of these. Of a single anchor
    they are plans.
    """
    anchors = [a for a in anchors_in(draft.module) if a.block not in draft.settled]
    planned = {anchor.block: structures(anchor) for anchor in anchors}
    if leaves_others:
        anchors = [anchor for anchor in anchors if planned[anchor.block]]
    choices: list[list[StructureT | None]] = []
    best = draft
    for number, anchor in enumerate(anchors):
        listed = planned[anchor.block]
        fresh = find_anchor(best.module, anchor.block)
        if fresh is not None and _axes(fresh) != _axes(anchor):
            anchor = anchors[number] = fresh
            listed = structures(anchor)
        tried = [
            (grown, one) for one in listed if (grown := _written(best, anchor, one, write, by_estimate)) is not None
        ]
        tried.sort(key=lambda pair: pair[0].default_seconds)
        if len(anchors) == 1 and tried:
            return [grown for grown, _ in tried]
        tried = [pair for pair in tried if pair[0].finish()]
        choices.append([one for _, one in tried] or [None])
        best = tried[0][0] if tried else _left(best, anchor)
    found = [best]
    for combination in list(_combinations(choices))[1:]:
        other: Draft | None = draft
        for anchor, chosen in zip(anchors, combination, strict=True):
            if other is not None:
                other = _left(other, anchor) if chosen is None else _written(other, anchor, chosen, write, by_estimate)
            if other is not None and not other.finish():
                other = None
        if other is not None:
            found.append(other)
    return found


def _combinations(choices: Sequence[Sequence[OptionT]]) -> Iterator[tuple[OptionT, ...]]:
    """One of each, the first of all first; where there are too many, all but one stay the first."""
    if prod(map(len, choices)) <= MOST_COMBINED or len(choices) == 1:
        yield from product(*choices)
        return
    first = [c[0] for c in choices]
    yield tuple(first)
    for position, options in enumerate(choices):
        for option in options[1:]:
            yield (*first[:position], option, *first[position + 1 :])


def _written(
    draft: Draft, anchor: Anchor, structure: StructureT, write: Write[StructureT], by_estimate: bool
) -> Draft | None:
    """A copy of the draft with the plan of one structure of an anchor.

    None where a primitive refuses a step before it, or no candidate of it is within the limits, or where the structure
    of another anchor has given this one other axes.
    """
    found = find_anchor(draft.module, anchor.block)
    if found is None or _axes(found) != _axes(anchor):
        return None

    def plan(grown: Draft) -> Iterator[CostEstimate]:
        fresh = anchor_of(grown.module, anchor.block)  # its operands are of the copy's module
        for model in write(grown, fresh, structure):
            grown.models.append(model)
            grown.names.append(structure.name)
            yield model

    return draft.with_plan(plan, by_estimate, ROUNDS if anchor.has_windows else 0)


def _axes(anchor: Anchor) -> list[Axis]:
    """The axes of an anchor, which those of another one become where both walk a buffer (`lw-collapse`)."""
    return [axis for axis in (*anchor.spatial, *anchor.reduce) if axis.extent > 1]


def _left(draft: Draft, anchor: Anchor) -> Draft:
    """A copy of the draft with an anchor's padding inlined where that is legal, as nobody will schedule it."""
    grown = draft.copy()
    for pad in anchor.pads:
        with suppress(ScheduleError):
            grown.do(ComputeInline, block=pad)
    return grown
