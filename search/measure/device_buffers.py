"""The runner's buffers on a device with memory of its own: filled once, fenced, and compared where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .backend_api import DeviceExecutable
from .buffers import FENCE_BYTES, FENCE_VALUE, Buffers, poison_value
from .tolerance import Tolerance

Array = npt.NDArray[Any]

_WORD = 4
"""Bytes that a thread compares at a time."""


class Checks(Protocol):
    """A device that copies and compares; what it counts adds up until it is asked for. Starts and sizes in bytes."""

    def allocate(self, size_bytes: int) -> Any:
        """Return a buffer."""

    def upload(self, buffer: Any, array: Array) -> None:
        """Copy a contiguous array to a buffer."""

    def download(self, array: Array, buffer: Any) -> None:
        """Copy a buffer to a contiguous array, after all that was launched."""

    def part(self, buffer: Any, start: int, size: int) -> Any:
        """Return what kernels take for a part of a buffer."""

    def copy(self, to: Any, to_start: int, source: Any, size: int) -> None:
        """Copy on the device."""

    def clear(self) -> None:
        """Begin counting from 0."""

    def count(self) -> int:
        """Return what was counted since `clear`."""

    def unlike(self, a: Any, a_start: int, b: Any, b_start: int, size: int) -> None:
        """Count 32-bit words that differ."""

    def wrong(self, got: Any, start: int, expected: Any, dtype: str, count: int, atol: float, rtol: float) -> bool:
        """Count elements that are too far from what is expected; False where the type cannot be compared here."""


class _Place:
    """An argument on the device between fences, and what it, or a right result, is compared with."""

    def __init__(self, checks: Checks, array: Array, model: Array, keep_whole: bool) -> None:
        self.nbytes = array.nbytes
        self.rest = -(-array.nbytes // _WORD) * _WORD
        self.whole = np.full(FENCE_BYTES + self.rest + FENCE_BYTES, FENCE_VALUE, np.uint8)
        self.whole[FENCE_BYTES : FENCE_BYTES + self.nbytes] = array.reshape(-1).view(np.uint8)
        self.buffer = checks.allocate(len(self.whole))
        checks.upload(self.buffer, self.whole)
        self.kernel_argument = checks.part(self.buffer, FENCE_BYTES, self.rest)
        compared = self.whole if keep_whole else np.ascontiguousarray(model)
        self.model = checks.allocate(compared.nbytes)
        checks.upload(self.model, compared)


class DeviceBuffers:
    """Arguments of one task's kernels on a device; a `Buffers` that stays where the kernels are.

    Only where something is wrong are outputs copied to the host, to say what.
    """

    def __init__(
        self,
        checks: Checks,
        inputs: Sequence[str],
        expected: Sequence[str],
        tolerances: Sequence[Tolerance],
        dtypes: Sequence[str] = (),
    ) -> None:
        self._checks = checks
        self._host = Buffers(inputs, expected, tolerances, dtypes)
        self._tolerances = tolerances
        self._expected = self._host.expected
        arrays = self._host.args
        self._inputs = [_Place(checks, a, a, keep_whole=True) for a in arrays[: len(inputs)]]
        outputs = arrays[len(inputs) :]
        self._outputs = [_Place(checks, a, e, keep_whole=False) for a, e in zip(outputs, self._expected, strict=True)]
        self._poison = [self._poisoned(e) for e in self._expected]
        fence = np.full(FENCE_BYTES, FENCE_VALUE, np.uint8)
        self._fence = checks.allocate(fence.nbytes)
        checks.upload(self._fence, fence)
        self._all_right()  # now, as it compiles what it launches
        self.memory_violation()

    def _poisoned(self, expected: Array) -> Any:
        poison = np.full(expected.shape, poison_value(expected), expected.dtype)
        buffer = self._checks.allocate(poison.nbytes)
        self._checks.upload(buffer, poison)
        return buffer

    def run(self, kernel: DeviceExecutable) -> None:
        """Run a kernel once; outputs are complete on return."""
        kernel.run_on(self._arguments(), self._host.args)

    def time(self, kernel: DeviceExecutable, number: int) -> float:
        """Return the seconds that so many runs take."""
        return kernel.time_on(self._arguments(), number)

    def _arguments(self) -> list[Any]:
        return [place.kernel_argument for place in (*self._inputs, *self._outputs)]

    def restore_inputs(self) -> None:
        """Upload the inputs with their fences again."""
        for place in (*self._inputs, *self._outputs):
            self._checks.upload(place.buffer, place.whole)

    def poison(self) -> None:
        """Fill the outputs with a value that no right result has there."""
        for place, poison in zip(self._outputs, self._poison, strict=True):
            self._checks.copy(place.buffer, FENCE_BYTES, poison, place.nbytes)

    def wrong(self) -> str | None:
        """Return what is wrong with the outputs, or None."""
        if self._all_right():
            return None
        for place, array in zip(self._outputs, self._host.outputs, strict=True):
            self._checks.download(array, place.kernel_argument)
        return self._host.wrong()

    def _all_right(self) -> bool:
        self._checks.clear()
        for place, expected, tolerance in zip(self._outputs, self._expected, self._tolerances, strict=True):
            start, dtype = FENCE_BYTES, expected.dtype.name
            if self._checks.wrong(place.buffer, start, place.model, dtype, expected.size, *tolerance):
                continue
            return False
        return self._checks.count() == 0

    def memory_violation(self) -> str | None:
        """Return which memory beside the outputs was written, or None; the device may be corrupt if any was."""
        checks = self._checks
        checks.clear()
        for place in self._inputs:
            checks.unlike(place.buffer, 0, place.model, 0, len(place.whole))
        for place in self._outputs:
            checks.unlike(place.buffer, 0, self._fence, 0, FENCE_BYTES)
            checks.unlike(place.buffer, FENCE_BYTES + place.rest, self._fence, 0, FENCE_BYTES)
        return None if checks.count() == 0 else self._trespassed()

    def _trespassed(self) -> str:
        for index, place in enumerate((*self._inputs, *self._outputs)):
            now = np.empty_like(place.whole)
            self._checks.download(now, place.buffer)
            inside = slice(FENCE_BYTES, FENCE_BYTES + place.nbytes)
            if index < len(self._inputs) and not np.array_equal(now[inside], place.whole[inside]):
                return f"changed its input {index}"
            now[inside] = place.whole[inside]
            if not np.array_equal(now, place.whole):
                return f"wrote outside of argument {index}"
        return "wrote outside of its arguments"
