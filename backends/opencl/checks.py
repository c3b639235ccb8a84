"""Comparing arrays on an OpenCL device."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np

from ..c_family.checks import BLOCK, DTYPES, blocks, unlike_source, wrong_source
from .arrays import OpenClDevice
from .executable import lacking
from .platform import context_of, device_at, queue_of


class OpenClChecks(OpenClDevice):
    """Compares arrays in the memory of an OpenCL device; counts accumulate until they are read."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._kernels: dict[str, Any] = {}
        self._count = self.allocate(4)

    def part(self, buffer: Any, start: int, size: int) -> Any:
        """Return the sub-buffer for a part of a buffer; a start must be aligned as the device asks."""
        return buffer.get_sub_region(start, max(size, 1))

    def copy(self, to: Any, to_start: int, source: Any, size: int) -> None:
        """Copy bytes on the device."""
        import pyopencl as cl

        if size:
            cl.enqueue_copy(queue_of(self.index), to, source, byte_count=size, dst_offset=to_start)

    def clear(self) -> None:
        """Begin counting from 0."""
        self.upload(self._count, np.zeros(1, np.uint32))

    def count(self) -> int:
        """Return what was counted since `clear`."""
        found = np.zeros(1, np.uint32)
        self.download(found, self._count)
        return int(found[0])

    def unlike(self, a: Any, a_start: int, b: Any, b_start: int, size: int) -> None:
        """Count 32-bit words that differ; starts and sizes in bytes are multiples of 4."""
        kernel = self._kernel("unlike", unlike_source("opencl"))
        words = size // 4
        self._call(kernel, words, a, np.uint64(a_start // 4), b, np.uint64(b_start // 4), np.uint64(words))

    def wrong(self, got: Any, start: int, expected: Any, dtype: str, count: int, atol: float, rtol: float) -> bool:
        """Count elements that are too far from what is expected; False where the type cannot be compared here."""
        if dtype not in DTYPES or lacking(dtype, device_at(self.index)) is not None:
            return False
        real = np.float64 if dtype == "float64" else np.float32
        kernel = self._kernel(dtype, wrong_source("opencl", dtype), "wrong")
        at = np.uint64(start // np.dtype(dtype).itemsize)
        self._call(kernel, count, got, at, expected, np.uint64(count), real(atol), real(rtol))
        return True

    def _call(self, kernel: Any, items: int, *arguments: Any) -> None:
        import pyopencl as cl

        kernel.set_args(*arguments, self._count)
        width = min(BLOCK, device_at(self.index).max_work_group_size)
        cl.enqueue_nd_range_kernel(queue_of(self.index), kernel, (blocks(items) * width,), (width,))

    def _kernel(self, key: str, source: str, name: str = "unlike") -> Any:
        import pyopencl as cl

        if key not in self._kernels:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program = cl.Program(context_of(self.index), source).build(
                    options=["-cl-std=CL1.2"], cache_dir=cast(str, False)
                )
            self._kernels[key] = cl.Kernel(program, name)
        return self._kernels[key]
