"""Choices of a hole that suit an extent."""

from __future__ import annotations

from collections.abc import Sequence


def up_to(listed: Sequence[int], extent: int) -> tuple[int, ...]:
    """The listed numbers that an extent has room for, or 1 alone."""
    return tuple(n for n in listed if n <= extent) or (1,)


def dividing(listed: Sequence[int], count: int) -> tuple[int, ...]:
    """Those of the listed numbers that divide a count."""
    return tuple(n for n in listed if count % n == 0)
