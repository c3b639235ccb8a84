"""Comparing arrays on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..c_family.checks import BLOCK, DTYPES, blocks, unlike_source, wrong_source
from .arrays import CudaDevice
from .driver import current
from .nvrtc import compile_cubin


class CudaChecks(CudaDevice):
    """Compares arrays in the memory of a CUDA device; counts accumulate until they are read."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._functions: dict[str, Any] = {}
        self._count = self.allocate(4)

    def part(self, buffer: Any, start: int, size: int) -> Any:
        """Return the device pointer to a part of a buffer, as kernels take it."""
        return int(buffer) + start

    def copy(self, to: Any, to_start: int, source: Any, size: int) -> None:
        """Copy bytes on the device."""
        with current(self.index) as driver:
            driver.memcpy_dtod(int(to) + to_start, int(source), size)

    def clear(self) -> None:
        """Begin counting from 0."""
        with current(self.index) as driver:
            driver.memset_d32(int(self._count), 0, 1)

    def count(self) -> int:
        """Return what was counted since `clear`."""
        found = np.zeros(1, np.uint32)
        self.download(found, self._count)
        return int(found[0])

    def unlike(self, a: Any, a_start: int, b: Any, b_start: int, size: int) -> None:
        """Count 32-bit words that differ; starts and sizes in bytes are multiples of 4."""
        function = self._function("unlike", unlike_source("cuda"), "PQPQQP")
        words = size // 4
        self._call(function, words, int(a), a_start // 4, int(b), b_start // 4, words, int(self._count))

    def wrong(self, got: Any, start: int, expected: Any, dtype: str, count: int, atol: float, rtol: float) -> bool:
        """Count elements that are too far from what is expected; False where the type cannot be compared here."""
        if dtype not in DTYPES:
            return False
        real = "d" if dtype == "float64" else "f"
        function = self._function(dtype, wrong_source("cuda", dtype), f"PQPQ{real}{real}P", "wrong")
        at = start // np.dtype(dtype).itemsize
        self._call(function, count, int(got), at, int(expected), count, atol, rtol, int(self._count))
        return True

    def _call(self, function: Any, items: int, *arguments: Any) -> None:
        with current(self.index):
            function.prepared_call((blocks(items), 1), (BLOCK, 1, 1), *arguments)

    def _function(self, key: str, source: str, formats: str, name: str = "unlike") -> Any:
        if key not in self._functions:
            cubin = compile_cubin(source, self.target.compute_capability)
            with current(self.index) as driver:
                function = driver.module_from_buffer(cubin.code).get_function(name)
                function.prepare(formats)
            self._functions[key] = function
        return self._functions[key]
