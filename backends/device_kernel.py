"""A compiled kernel on a device with memory of its own, as a Python callable on NumPy and device arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..dialects.numpy_types import FLOATS
from .arrays import as_array
from .c_family.artifact import Resources
from .c_family.executable import DeviceExecutable
from .device_array import DeviceArray
from .kernel_function import Kernel
from .saved.device_files import save_device_kernel
from .signature import Argument
from .time_evaluator import BenchmarkResult, Repeats, flush_bytes

_USUAL_MS = 100.0
"""Length of a repeat unless told otherwise."""


class DeviceKernel(Kernel):
    """Called with NumPy arrays, a kernel copies them to the device and its outputs back, and returns NumPy arrays.

    Called with an array on the device among them, it works there without a copy (NumPy arrays among the inputs are
    copied), returns the outputs given or new arrays on the device, and may still be running: `.numpy()` waits. Arrays
    of other packages count as on the device where they have a CUDA array interface or DLPack. The device is opened when
    it is first needed.
    """

    _executable: DeviceExecutable

    def __init__(self, executable: DeviceExecutable, assembly: Callable[[bool], str]) -> None:
        kernel = executable.artifact.kernel
        super().__init__(kernel.name, executable.arguments, executable, kernel.source, assembly)

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        executable = self._executable
        return save_device_kernel(executable.artifact, executable.constants, path, lambda: self.assembly)

    @property
    def resources(self) -> tuple[Resources, ...]:
        """Resource usage of each launch (registers, shared bytes, spills), where the compiler reports it."""
        return self._executable.artifact.resources

    def __call__(self, *arrays: Any) -> Any:
        """Run on arrays, inputs first; outputs may follow."""
        if all(isinstance(array, np.ndarray) for array in arrays) or not any(map(self._view, arrays)):
            return super().__call__(*arrays)
        if len(arrays) not in (len(self._inputs), len(self.arguments)):
            raise TypeError(self._count_message(len(arrays)))
        if self._executable.needs_packing():
            raise TypeError(f"kernel {self.name}: constants in a layout of its own come with `build(..., params=...)`")
        given = [self._on_device(*pair) for pair in zip(self.arguments, arrays, strict=False)]
        runtime = self._executable.runtime
        self._check_overlaps(given)
        given += [runtime.empty(argument.shape, argument.dtype) for argument in self.arguments[len(given) :]]
        runtime.launch(self._executable.buffers_for([array.buffer for array in given]))
        outputs = arrays[len(self._inputs) :] or given[len(self._inputs) :]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _check_overlaps(self, given: list[DeviceArray]) -> None:
        pairs = list(zip(self.arguments, given, strict=False))
        for number, (argument, array) in enumerate(pairs):
            for other, candidate in pairs[:number]:
                if argument.is_output and array.overlaps(candidate):
                    raise ValueError(
                        f"kernel {self.name}: output '{argument.name}' must not overlap '{other.name}' in memory"
                    )

    def _view(self, array: Any) -> DeviceArray | None:
        return None if isinstance(array, np.ndarray) else self._executable.runtime.view(array)

    def _on_device(self, argument: Argument, value: Any) -> DeviceArray:
        array = self._view(value)
        if array is None:
            if argument.is_output:
                raise TypeError(
                    f"kernel {self.name}: output '{argument.name}' must be on the device, as an input is, "
                    f"got {type(value).__name__}"
                )
            array = self._executable.runtime.array(as_array(value, f"kernel {self.name}: input '{argument.name}'"))
        argument.require_fit(self.name, array)
        return array

    def benchmark(
        self,
        *arrays: Any,
        number: int | None = None,
        repeat: int = 5,
        min_repeat_ms: float | None = None,
        flush: bool | int = False,
        graph: bool = False,
    ) -> BenchmarkResult:
        """Time runs on the device by its own clock, without copies; random data unless given.

        Each of `repeat` rounds is `number` runs back to back, or as many more as take `min_repeat_ms` (100, or with a
        `number` 0, unless given). With `flush`, twice the device's L2 cache, or so many bytes, are written before each
        run, outside of the timing. `graph` replays recorded launches, so that short kernels do not wait for the host.
        """
        repeats = Repeats(number, repeat, min_repeat_ms, _USUAL_MS)
        data = list(arrays) + [self._random_input(n) for n in range(len(arrays), len(self.arguments))]
        buffers = self._executable.buffers_for(
            [self._timed_array(*pair).buffer for pair in zip(self.arguments, data, strict=True)]
        )
        runtime = self._executable.runtime
        nbytes = flush_bytes(flush, runtime.target.l2_bytes)
        runtime.launch(buffers)
        runtime.finish()
        return repeats.of(lambda runs: runtime.time(buffers, runs, nbytes, graph), flushes=nbytes > 0)

    def _random_input(self, position: int) -> Any:
        argument, generator = self.arguments[position], np.random.default_rng(position)
        if argument.dtype in FLOATS:
            return generator.standard_normal(argument.shape).astype(argument.dtype)
        return generator.integers(0, 2, argument.shape).astype(argument.dtype)

    def _timed_array(self, argument: Argument, value: Any) -> DeviceArray:
        if argument.packing is not None:
            value = np.ascontiguousarray(argument.packing.pack(np.asarray(value)))
            return self._executable.runtime.array(value)
        if argument.is_output and self._view(value) is None:
            return self._executable.runtime.empty(argument.shape, argument.dtype)
        return self._on_device(argument, value)
