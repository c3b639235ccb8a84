"""A CUDA device as one that holds arrays, which PyTorch, CuPy and others read and give without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialects.strides import row_major
from ...dialects.target import Target
from ..device_array import ALIGNMENT, Array, ArrayDevice, DeviceArray
from ..host_memory import require_bytes
from .dlpack import CUDA, borrowed, exported
from .driver import current, describe, device_at, target_of_device

_LEGACY_STREAM = 1
"""Number of the default stream, which our runs are on, in the CUDA array interface."""


class CudaArray(DeviceArray):
    """An array on a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (int(self.buffer), False),
            "strides": None,
            "version": 3,
            "stream": _LEGACY_STREAM,
        }

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        if stream not in (None, 0, _LEGACY_STREAM, -1):
            with current(self.device.index) as driver:
                driver.Context.synchronize()
        return exported(self, int(self.buffer), self.shape, self.dtype, self.device.index)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.device.index)


class CudaDevice(ArrayDevice):
    """A device by its number; runs are on the default stream of its primary context."""

    kind = "cuda"
    arrays = CudaArray

    def __init__(self, index: int) -> None:
        device_at(index)
        super().__init__(index)

    @property
    def name(self) -> str:
        return describe(self.index)

    @property
    def target(self) -> Target:
        """The device as the compiler sees it."""
        return target_of_device(self.index)

    def allocate(self, size_bytes: int) -> Any:
        with current(self.index) as driver:
            try:
                return driver.mem_alloc(max(size_bytes, 1))
            except driver.MemoryError:
                require_bytes(f"a buffer of {self}", size_bytes, int(driver.mem_get_info()[0]))
                raise  # there is room, but not in one piece

    def upload(self, buffer: Any, array: Array) -> None:
        with current(self.index) as driver:
            if array.nbytes:
                driver.memcpy_htod(int(buffer), _plain(array))

    def download(self, array: Array, buffer: Any) -> None:
        with current(self.index) as driver:
            if array.nbytes:
                driver.memcpy_dtoh(_plain(array), int(buffer))

    def view(self, value: Any) -> DeviceArray | None:
        """Return an array of this device, or one with a CUDA array interface or DLPack, without a copy.

        ValueError for one that is not contiguous, or does not start on a multiple of 16 bytes.
        """
        if isinstance(value, DeviceArray):
            return value if isinstance(value, CudaArray) and value.device.index == self.index else None
        described = getattr(value, "__cuda_array_interface__", None)
        if described is not None and described["typestr"][1] != "V":  # which has no word for bfloat16
            return self._from_interface(value, described)
        placed = getattr(value, "__dlpack_device__", None)
        if placed is None or tuple(map(int, placed())) != (CUDA, self.index):
            return None
        tensor = borrowed(value.__dlpack__(stream=_LEGACY_STREAM))
        _check_layout(tensor.address, tensor.shape, tensor.strides)
        return CudaArray(self, tensor.address, tensor.shape, tensor.dtype, (value, tensor))

    def _from_interface(self, value: Any, described: dict[str, Any]) -> DeviceArray:
        dtype = np.dtype(described["typestr"])
        address, strides = described["data"][0], described.get("strides")
        elements = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
        _check_layout(address, described["shape"], elements)
        if described.get("stream") not in (None, _LEGACY_STREAM):
            with current(self.index) as driver:
                driver.Context.synchronize()
        return CudaArray(self, address, described["shape"], dtype, value)


def _plain(array: Array) -> Array:
    """Return an array of a type that NumPy lends to others: bfloat16 as its bits, in the same memory."""
    return array.reshape(-1).view(np.uint16) if array.dtype.kind == "V" else array


def _check_layout(address: int, shape: Sequence[int], strides: Sequence[int] | None) -> None:
    """Raise ValueError unless an array (strides in elements) is contiguous and aligned for the widest access."""
    given = row_major(shape) if strides is None or 0 in shape else strides
    if any(n > 1 and have != want for n, have, want in zip(shape, given, row_major(shape), strict=True)):
        raise ValueError(f"device arrays must be contiguous, got shape {tuple(shape)}, strides {tuple(given)}")
    if address % ALIGNMENT:
        raise ValueError(f"device arrays must start on a multiple of {ALIGNMENT} bytes, got address {address:#x}")


def cuda(index: int = 0) -> CudaDevice:
    """Return a CUDA device by its number; raises MissingCuda without pycuda, a driver or the device."""
    return CudaDevice(index)
