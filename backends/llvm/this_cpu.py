"""This machine's CPU as a device beside those that have memory of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.target import Target
from ..arrays import aligned_copy, aligned_empty
from .device import device_name
from .host import host_target

Array = npt.NDArray[Any]


class Cpu:
    """This machine's CPU: its arrays are NumPy's, aligned for vectors."""

    kind = "llvm"
    index = 0

    @property
    def target(self) -> Target:
        """The CPU as the compiler sees it."""
        return host_target()

    @property
    def name(self) -> str:
        return device_name()

    def array(self, values: Any) -> Array:
        """Return an aligned, contiguous copy."""
        return aligned_copy(np.asarray(values))

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike = "float32") -> Array:
        """Return an aligned array whose values are not set."""
        return aligned_empty(shape, dtype)

    def __str__(self) -> str:
        return "cpu"

    def __repr__(self) -> str:
        return f"<cpu: {self.name}>"


def cpu() -> Cpu:
    """Return this machine's CPU as a device."""
    return Cpu()
