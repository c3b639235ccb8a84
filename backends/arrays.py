"""NumPy arrays that start on a cache line, so that no vector straddles two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

CACHE_LINE_BYTES = 64


def aligned_empty(shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array whose values are not set."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    raw = np.empty(size + CACHE_LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[start : start + size].view(kind).reshape(shape)


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
