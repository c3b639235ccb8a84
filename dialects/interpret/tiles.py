"""Matrix instructions of a CPU's thread in the interpreter: where tiles lie in a buffer, and what a product adds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..intrinsics import Intrinsic
from .kernel_functions import Array


def places(rows: int, step: int, elements: int) -> Array:
    """The places of a tile's elements from its first one on, in the order in which they are held."""
    found: Array = (np.arange(rows)[:, None] * step + np.arange(elements // rows)).reshape(-1)
    return found


def product(intrinsic: Intrinsic, a: Array, b: Array, sums: Array) -> Array:
    """Add the product of factors to sums; each is given, and returned, in the order in which it is held."""
    exact = np.int64 if sums.dtype.kind in "iu" else np.float64
    held = {"a": a, "b": b, "c": sums}
    matrix = {operand: _gathered(intrinsic, operand, value.astype(exact)) for operand, value in held.items()}
    added = matrix["c"] + matrix["a"] @ matrix["b"].T
    _, positions, rows, columns = element_places(intrinsic, "c")
    found = np.empty_like(sums)
    found[positions] = added[rows, columns].astype(sums.dtype)
    return found


def _gathered(intrinsic: Intrinsic, operand: str, held: Array) -> Array:
    _, positions, rows, columns = element_places(intrinsic, operand)
    found = np.empty([intrinsic.extents[x] for x in intrinsic.axes(operand)], held.dtype)
    found[rows, columns] = held[positions]
    return found


@cache
def element_places(intrinsic: Intrinsic, operand: str) -> tuple[Any, ...]:
    """Arrays of lanes, positions, rows and columns, one of each element of a matrix."""
    found = intrinsic.places(operand)
    return (*np.array(list(found)).T, *np.array(list(found.values())).T)
