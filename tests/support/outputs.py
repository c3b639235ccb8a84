"""Results of a kernel, which returns an array, or a tuple where it has several outputs."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def one(result: Array | tuple[Array, ...]) -> Array:
    """Return the result of a kernel with one output."""
    assert isinstance(result, np.ndarray)
    return result


def several(result: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the results of a kernel with several outputs."""
    assert isinstance(result, tuple)
    return result
