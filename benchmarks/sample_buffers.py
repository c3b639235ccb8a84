"""Arguments of a workload in memory of a host or of a GPU: candidates run on them, and their outputs are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from loopwright.backends.arrays import aligned_copy

MOST_COPIES = 64
"""Of inputs that are read in turn."""
RANDOM_ELEMENTS = 1 << 22
COMPARED = 1 << 14
"""Elements of an output, about, that are compared."""


class Buffers:
    """Arguments of one workload, and what its first candidate wrote."""

    def __init__(self, executable: Any) -> None:
        self.arguments = executable.arguments
        self.first: list[npt.NDArray[Any]] | None = None
        self.best_s = float("inf")
        values = np.random.default_rng(0).standard_normal(RANDOM_ELEMENTS).astype(np.float32)
        self.arrays = [np.resize(values, argument.shape).astype(argument.dtype) for argument in self.arguments]

    def run(self, executable: Any) -> None:
        """Run once."""
        executable.run(self.arrays)

    def time(self, executable: Any, number: int) -> float:
        """Return the seconds that so many runs take."""
        return float(executable.time(self.arrays, number))

    def outputs(self, executable: Any) -> list[npt.NDArray[Any]]:
        """Return the outputs of the last run."""
        return [array for argument, array in zip(self.arguments, self.arrays, strict=True) if argument.is_output]

    def agree(self, executable: Any) -> bool:
        """True where the outputs are those of the first candidate."""
        outputs = self.outputs(executable)
        got = [array.reshape(-1)[:: max(1, array.size // COMPARED)].astype(np.float64) for array in outputs]
        if self.first is None:
            self.first = got
        pairs = zip(got, self.first, strict=True)
        return all(np.allclose(a, b, rtol=1e-2, atol=1e-2 * (1e-6 + float(np.abs(b).max()))) for a, b in pairs)


class HostBuffers(Buffers):
    """Arguments that kernels of a CPU read and write in place."""

    def __init__(self, executable: Any, clock: Callable[[], float]) -> None:
        super().__init__(executable)
        self.arrays = [aligned_copy(array) for array in self.arrays]
        self.clock = clock

    def time(self, executable: Any, number: int) -> float:
        """Return the seconds that so many runs take, by the clock."""
        start_s = self.clock()
        executable.time(self.arrays, number)
        return self.clock() - start_s


class DeviceBuffers(Buffers):
    """Arguments in the memory of a GPU, with copies of all inputs but the first that come to so many bytes."""

    def __init__(self, executable: Any, rotated_bytes: int) -> None:
        super().__init__(executable)
        self.buffers = [self._uploaded(executable.runtime, array) for array in self.arrays]
        others = [n for n, argument in enumerate(self.arguments) if n and not argument.is_output]
        nbytes = sum(self.arrays[n].nbytes for n in others)
        self.lists = [self.buffers]
        for _ in range(min(MOST_COPIES, rotated_bytes // max(1, nbytes)) - 1):
            copies = {n: self._uploaded(executable.runtime, self.arrays[n]) for n in others}
            self.lists.append([copies.get(n, buffer) for n, buffer in enumerate(self.buffers)])

    def _uploaded(self, runtime: Any, array: npt.NDArray[Any]) -> Any:
        buffer = runtime.allocate(array.nbytes)
        runtime.upload(buffer, array)
        return buffer

    def run(self, executable: Any) -> None:
        """Run once."""
        executable.run_on(self.buffers, [])

    def time(self, executable: Any, number: int) -> float:
        """Return the seconds that so many runs take."""
        if len(self.lists) == 1:
            return float(executable.time_on(self.buffers, number))
        rounds = -(-number // len(self.lists))
        in_turn = executable.runtime.time_in_turn([executable.buffers_for(each) for each in self.lists], rounds)
        return float(in_turn) * number / (rounds * len(self.lists))

    def outputs(self, executable: Any) -> list[npt.NDArray[Any]]:
        """Return the outputs of the last run, brought to the host."""
        found = []
        for argument, buffer in zip(self.arguments, self.buffers, strict=True):
            if argument.is_output:
                array = np.empty(argument.shape, argument.dtype)
                executable.runtime.download(array, buffer)
                found.append(array)
        return found
