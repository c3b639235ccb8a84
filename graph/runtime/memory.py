"""A static memory plan: tensors that are never needed at the same time share bytes of one arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .plan import ALIGNMENT


@dataclass(frozen=True)
class Live:
    """The lifetime of a tensor: its bytes, and the steps from `first` to `last`, both included."""

    nbytes: int
    first: int
    last: int

    def meets(self, other: Live) -> bool:
        """True where the two lifetimes overlap."""
        return self.first <= other.last and other.first <= self.last


def arrange(tensors: Sequence[Live]) -> tuple[list[int], int]:
    """Plan the memory of tensors: the offset of each, and the bytes of the arena.

    The largest first, each at the lowest place where nothing lies that is needed at the same time (greedy by size:
    Pisarchyk and Lee 2020, arXiv:2001.03288).
    """
    offsets = [0] * len(tensors)
    placed: list[int] = []
    total = 0
    for n in sorted(range(len(tensors)), key=lambda n: (-tensors[n].nbytes, n)):
        size = footprint(tensors[n].nbytes)
        start = 0
        for other in sorted((k for k in placed if tensors[k].meets(tensors[n])), key=offsets.__getitem__):
            if start + size <= offsets[other]:
                break
            start = max(start, offsets[other] + footprint(tensors[other].nbytes))
        offsets[n] = start
        placed.append(n)
        total = max(total, start + size)
    return offsets, total


def footprint(size: int) -> int:
    """Return the bytes of the arena that a tensor of a size takes."""
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT
