"""An OpenCL device as one that holds arrays."""

from __future__ import annotations

from typing import Any

from ...dialects.target import Target
from ..device_array import Array, ArrayDevice, DeviceArray
from ..host_memory import require_bytes
from .platform import context_of, describe, device_at, queue_of, target_of_device


class OpenClDevice(ArrayDevice):
    """A device by its number; its runs and copies are in one queue, in order."""

    kind = "opencl"

    def __init__(self, index: int) -> None:
        device_at(index)
        super().__init__(index)

    @property
    def name(self) -> str:
        return describe(device_at(self.index))

    @property
    def target(self) -> Target:
        """The device as the compiler sees it."""
        return target_of_device(self.index)

    def allocate(self, size_bytes: int) -> Any:
        import pyopencl as cl

        require_bytes(f"a buffer of {self}", size_bytes, int(device_at(self.index).max_mem_alloc_size))
        return cl.Buffer(context_of(self.index), cl.mem_flags.READ_WRITE, max(size_bytes, 1))

    def upload(self, buffer: Any, array: Array) -> None:
        import pyopencl as cl

        if array.nbytes:
            cl.enqueue_copy(queue_of(self.index), buffer, array, is_blocking=True)

    def download(self, array: Array, buffer: Any) -> None:
        import pyopencl as cl

        if array.nbytes:
            cl.enqueue_copy(queue_of(self.index), array, buffer, is_blocking=True)

    def view(self, value: Any) -> DeviceArray | None:
        """Return an array of this device; pyopencl's own arrays pass without a copy."""
        if isinstance(value, DeviceArray):
            return value if isinstance(value.device, OpenClDevice) and value.device.index == self.index else None
        if type(value).__module__ == "pyopencl.array" and value.flags.c_contiguous and not value.offset:
            same = value.context == context_of(self.index)
            return DeviceArray(self, value.base_data, value.shape, value.dtype, value) if same else None
        return None


def opencl(index: int = 0) -> OpenClDevice:
    """Return an OpenCL device by its number, GPUs first; raises MissingOpenCl if there is none."""
    return OpenClDevice(index)
