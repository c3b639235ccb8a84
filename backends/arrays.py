"""NumPy arrays that start on a cache line, so that no vector straddles two, and at places of a page that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

CACHE_LINE_BYTES = 64
PAGE_BYTES = 4096
"""Bytes that the lower 12 bits of addresses tell apart. By these alone a CPU may take a load to read what a store
before it writes that is not done yet, and has it wait (4K aliasing, in the words of Intel's optimization manual)."""
_APART_BYTES = 7 * 256
"""Bytes of a page from an array to the next one. Those that a system gives for large arrays begin at the same place of
a page each, and a kernel that reads around the element it writes, as depthwise convolutions do, waits for its own
stores: on a core of a Zen 4 14x14x512 by 3x3 takes 55 us so and 35 with its result so far behind, 7x7x1024 52 and 23,
28x28x256 53 and 43, 56x56x128 78 to 165 and 66; on one of an Emerald Rapids 7x7x1024 18 and 14, others no less. It is
no multiple of 512, since pixels have such sizes: those of 2048 bytes wait for half a page, too, and those of 1024 for
each quarter."""


def place_in_page(number: int) -> int:
    """Return the byte of a page at which the array of a number begins, so that it is apart from its neighbours'."""
    return number * _APART_BYTES % PAGE_BYTES


def from_place(start: int, nbytes: int, place: int) -> int:
    """Return the first byte from `start` on, a multiple of a cache line, at which so many bytes begin at a place.

    Those that fit into a page begin where they are.
    """
    return start + (place - start) % PAGE_BYTES if nbytes > PAGE_BYTES else start


def aligned_empty(shape: Sequence[int], dtype: npt.DTypeLike, place: int | None = None) -> npt.NDArray[Any]:
    """Return an array whose values are not set; one of more than a page begins at that `place` of it, if given."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    room = PAGE_BYTES if place is not None and size > PAGE_BYTES else 0
    raw = np.empty(size + CACHE_LINE_BYTES + room, np.uint8)
    address = raw.ctypes.data
    first = address + -address % CACHE_LINE_BYTES
    start = (first if place is None else from_place(first, size, place)) - address
    return raw[start : start + size].view(kind).reshape(shape)


def aligned_results(
    results: Sequence[tuple[Sequence[int], npt.DTypeLike]], *inputs: npt.NDArray[Any]
) -> list[npt.NDArray[Any]]:
    """Return arrays for the results, of a shape and a type each, apart from the largest of the inputs."""
    largest = max(inputs, key=lambda array: array.nbytes, default=None)
    start = 0 if largest is None else largest.ctypes.data // CACHE_LINE_BYTES * CACHE_LINE_BYTES
    return [
        aligned_empty(shape, dtype, (start + place_in_page(1 + number)) % PAGE_BYTES)
        for number, (shape, dtype) in enumerate(results)
    ]


def as_array(value: Any, whose: str) -> npt.NDArray[Any]:
    """Return what NumPy makes of a value; TypeError says whose it is, where that is none."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{whose} must be an array of NumPy's, or what it can read: {error}") from error


def workspace_of(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Return memory for what kernels keep between stages, all zeros at first.

    Lanes beyond an edge compute on places that nothing is written to. Their results are left out, but where memory used
    before holds denormal numbers, as the upper halves of pointers are, Intel's CPUs take a hundred cycles for each.
    """
    found = aligned_empty((size_bytes,), np.uint8)
    found[...] = 0
    return found


def aligned_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a contiguous copy."""
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy
