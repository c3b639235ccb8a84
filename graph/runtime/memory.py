"""A static memory plan: tensors that are never needed at the same time share bytes of one arena."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...backends.arrays import PAGE_BYTES, from_place, place_in_page
from .plan import ALIGNMENT


@dataclass(frozen=True)
class Live:
    """The lifetime of a tensor: its bytes, and the steps from `first` to `last`, both included.

    Of a tensor that steps of one branch alone use, `branch` is the branch's number: beside steps of others it is there
    for as long as any of these run, from the step `since` to `until`. The number is 0 for all others.
    """

    nbytes: int
    first: int
    last: int
    branch: int = 0
    since: int = 0
    until: int = 0

    def meets(self, other: Live) -> bool:
        """True where the two lifetimes overlap."""
        if self.branch == other.branch:
            return self.first <= other.last and other.first <= self.last
        (first, last), (since, until) = self._beside(), other._beside()
        return first <= until and since <= last

    def _beside(self) -> tuple[int, int]:
        return (self.since, self.until) if self.branch else (self.first, self.last)


def beside(live: Live, branches: Sequence[Sequence[int]]) -> Live:
    """Return a lifetime among steps some of which run beside others, as `Plan.branches` says.

    What several branches use, or who is outside of them, is there while any of them runs.
    """
    first, last = live.first, live.last
    for number, bounds in enumerate(branches):
        if bounds[0] <= live.first and live.last < bounds[-1]:
            own = bisect_right(bounds, live.first)
            if live.last < bounds[own]:
                name = 1 + sum(map(len, branches[:number])) + own
                return replace(live, branch=name, since=bounds[0], until=bounds[-1] - 1)
        if bounds[0] <= live.first < bounds[-1]:
            first = bounds[0]
        if bounds[0] <= live.last < bounds[-1]:
            last = bounds[-1] - 1
    return replace(live, first=first, last=last)


def arrange(tensors: Sequence[Live]) -> tuple[list[int], int]:
    """Plan the memory of tensors: the offset of each, and the bytes of the arena.

    The largest first, each at the lowest place where nothing lies that is needed at the same time (greedy by size:
    Pisarchyk and Lee 2020, arXiv:2001.03288). Those of more than a page begin at other places of it than the ones
    written before and after them, and than what a caller brings: within room for any of these, so that one fits where
    another of its size was.
    """
    starts = [0] * len(tensors)
    rooms = [footprint(t.nbytes) + (PAGE_BYTES - ALIGNMENT if t.nbytes > PAGE_BYTES else 0) for t in tensors]
    placed: list[int] = []
    for n in sorted(range(len(tensors)), key=lambda n: (-tensors[n].nbytes, n)):
        start = 0
        for other in sorted((k for k in placed if tensors[k].meets(tensors[n])), key=starts.__getitem__):
            if start + rooms[n] <= starts[other]:
                break
            start = max(start, starts[other] + rooms[other])
        starts[n] = start
        placed.append(n)
    places = zip(starts, tensors, _places(tensors), strict=True)
    offsets = [from_place(start, tensor.nbytes, place) for start, tensor, place in places]
    ends = (offset + footprint(tensor.nbytes) for offset, tensor in zip(offsets, tensors, strict=True))
    return offsets, max(ends, default=0)


def _places(tensors: Sequence[Live]) -> list[int]:
    """Return the byte of a page that each tensor begins at, if it is larger: those written in turn are apart."""
    places = [0] * len(tensors)
    larger = [n for n, tensor in enumerate(tensors) if tensor.nbytes > PAGE_BYTES]
    for number, n in enumerate(sorted(larger, key=lambda n: (tensors[n].first, n)), 1):
        places[n] = place_in_page(number)
    return places


def footprint(size: int) -> int:
    """Return the bytes of the arena that a tensor of a size takes."""
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT
