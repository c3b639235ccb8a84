"""Signatures of kernels: names, element types and shapes of the arrays that they take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..dialects.numpy_types import ELEMENT_TYPES, teach_numpy
from ..passes.analysis.layout import parse_layout
from ..passes.analysis.packing import Packing
from ..storage.typed_json import shown


class Shaped(Protocol):
    """An array, wherever it is."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""


@dataclass(frozen=True)
class Argument:
    """One array of a kernel as callers see it; `dtype` is NumPy's name.

    A constant has the same values in all calls. With `packing`, the kernel wants it in a layout of its own.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool
    constant: bool = False
    packing: Packing | None = None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def kind(self) -> str:
        """The part that it has in calls, for messages."""
        return "output" if self.is_output else "input"

    def require_fit(self, kernel: str, array: Shaped, kind: str = "") -> None:
        """Hold an array for a kernel, which messages call by another `kind`, to the type and shape.

        TypeError, or ValueError.
        """
        called = f"kernel {kernel}: {kind or self.kind} '{self.name}'"
        if array.dtype != np.dtype(self.dtype):
            raise TypeError(f"{called} must be {self.dtype}, got {array.dtype}")
        if array.shape != self.shape:
            raise ValueError(f"{called} must have shape {self.shape}, got {array.shape}")

    def check(self) -> None:
        """ValueError where an argument that was read from somewhere is none."""
        if self.dtype not in ELEMENT_TYPES:
            raise ValueError(f"argument {shown(self.name)} has elements of an unknown type {shown(self.dtype)}")
        if any(n < 0 for n in self.shape) or (self.packing is not None and self.packing.original_shape != self.shape):
            raise ValueError(f"argument {shown(self.name)} has the shape {shown(self.shape)}")
        teach_numpy(self.dtype)
        if self.packing is not None:
            parse_layout(self.packing.layout, self.packing.extents)
