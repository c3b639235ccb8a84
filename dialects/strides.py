"""Strides of row-major arrays, in elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

SizeT = TypeVar("SizeT")
"""A number, or what stands for one in arithmetic."""


def row_major(extents: Sequence[SizeT], align: tuple[SizeT, SizeT, SizeT] | None = None) -> list[SizeT]:
    """Return the stride of each dimension of a dense array `(n, m, ...)`.

    With `align`, as (dimension, factor, offset), the stride of that dimension is the next number that is `offset`
    modulo `factor`.
    """
    strides: list[SizeT] = []
    below: Any = 1
    for dimension in range(len(extents) - 1, -1, -1):
        if align is not None and align[0] == dimension:
            _, factor, offset = align
            below = below + (offset - below) % factor
        strides.append(below)
        below = below * extents[dimension]
    return strides[::-1]
