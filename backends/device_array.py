"""Arrays in a device's memory, and the devices that hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..dialects.numpy_types import ELEMENT_TYPES
from ..dialects.target import Target
from .arrays import aligned_empty

Array = npt.NDArray[Any]
ALIGNMENT = 16
"""Kernels move so many bytes at once: an array must start on a multiple."""


class Device(Protocol):
    """A device with memory of its own."""

    index: int

    @property
    def kind(self) -> str:
        """The kind of its targets: cuda or opencl."""

    @property
    def name(self) -> str:
        """The device's name, and its driver's version."""

    @property
    def target(self) -> Target:
        """The device as the compiler sees it."""

    def allocate(self, size_bytes: int) -> Any:
        """Return a buffer."""

    def upload(self, buffer: Any, array: Array) -> None:
        """Copy a contiguous array to a buffer."""

    def download(self, array: Array, buffer: Any) -> None:
        """Copy a buffer to a contiguous array, after all that was launched."""

    def array(self, values: Any) -> DeviceArray:
        """Return a copy of a NumPy array on the device."""

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike = "float32") -> DeviceArray:
        """Return an array whose values are not set."""

    def view(self, value: Any) -> DeviceArray | None:
        """Return an array of this device, or of a package that shares its memory, without a copy; None for others."""


class DeviceArray:
    """A contiguous array on a device; `buffer` is what its driver takes, `owner` keeps memory of others alive."""

    def __init__(
        self, device: Device, buffer: Any, shape: Sequence[int], dtype: npt.DTypeLike, owner: Any = None
    ) -> None:
        self.device = device
        self.buffer = buffer
        self.shape = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.owner = owner

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def overlaps(self, other: DeviceArray) -> bool:
        """True where the two share memory."""
        if not hasattr(self.buffer, "__int__"):
            return bool(self.buffer == other.buffer)
        first, second = int(self.buffer), int(other.buffer)
        return first < second + other.nbytes and second < first + self.nbytes

    def numpy(self) -> Array:
        """Return a copy as a NumPy array, after all that was launched on the device."""
        array = aligned_empty(self.shape, self.dtype)
        self.device.download(array, self.buffer)
        return array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array on a device becomes a NumPy array by a copy only")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        return f"<{self.dtype} array {list(self.shape)} on {self.device}>"


class ArrayDevice(Device):
    """A device by its number, as one that holds arrays; subclasses say how its driver does that."""

    arrays: type[DeviceArray] = DeviceArray

    def __init__(self, index: int) -> None:
        self.index = index

    def array(self, values: Any) -> DeviceArray:
        """Return a copy of a NumPy array on the device."""
        array = np.ascontiguousarray(values)
        made = self.empty(array.shape, array.dtype)
        self.upload(made.buffer, array)
        return made

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike = "float32") -> DeviceArray:
        """Return an array whose values are not set; TypeError for an element type without kernels."""
        kind = np.dtype(dtype)
        if kind.name not in ELEMENT_TYPES:
            raise TypeError(f"arrays on devices are of {', '.join(ELEMENT_TYPES)}, got {kind.name}")
        return self.arrays(self, self.allocate(math.prod(shape) * kind.itemsize), shape, kind)

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    def __repr__(self) -> str:
        return f"<{self}: {self.name}>"
