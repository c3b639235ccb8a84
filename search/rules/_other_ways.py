"""Anchors that may be computed another way, as Winograd's transforms or one product: drafts with it, and without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from ...passes.schedule.compute_inline import ComputeInline
from ..sketch.draft import Draft
from ..structure.anchor import Anchor, anchors_in


class Verdict(Enum):
    """The place that another way takes among the sketches, by estimates or measurements of both."""

    ALONE = auto()
    """The direct way is not searched."""
    BEFORE = auto()
    """The direct way comes behind."""
    BEHIND = auto()
    """The direct way comes first."""


@dataclass(frozen=True)
class OtherWay:
    """The steps by which a draft computes an anchor another way, and their place beside the direct way."""

    write: Callable[[Draft], object]
    verdict: Verdict


def inline_pads(draft: Draft, anchor: Anchor) -> None:
    """Put what pads an anchor's operands into its block, which then loads under conditions."""
    for pad in anchor.pads:
        draft.do(ComputeInline, block=pad)


def with_other_ways(draft: Draft, find: Callable[[Draft, Anchor], OtherWay | None]) -> list[Draft]:
    """The drafts with each choice of ways for the anchors of a draft; `find` says None where there is the direct alone.

    Where primitives refuse another way in all drafts, these stay as they are.
    """
    drafts = [draft]
    for anchor in anchors_in(draft.module):
        way = find(draft, anchor)
        grown = [made for before in drafts if way is not None and (made := before.with_steps(way.write)) is not None]
        if way is None or not grown:
            continue
        if way.verdict is Verdict.ALONE:
            drafts = grown
        else:
            drafts = [*grown, *drafts] if way.verdict is Verdict.BEFORE else [*drafts, *grown]
    return drafts
