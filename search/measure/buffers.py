"""The runner's buffers: inputs as given, outputs poisoned and fenced, results compared with the expected ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...backends.arrays import CACHE_LINE_BYTES, PAGE_BYTES, from_place, place_in_page
from ...dialects.numpy_types import teach_numpy
from .backend_api import Executable
from .tolerance import Tolerance

Array = npt.NDArray[Any]

FENCE_BYTES = 4096
"""Bytes around an array that nobody may write: a page, as strides of tiles go beyond an end by a vector or a row."""
FENCE_VALUE = 0xA5
"""A byte that is neither 0 nor 255, which a program writes most."""


def _fenced(shape: Sequence[int], dtype: np.dtype[Any], number: int) -> tuple[Array, Array]:
    """Return the aligned array of a number, and the raw bytes around it, all set to the fence value.

    As the tensors of a network do, arrays begin at places of a page that differ.
    """
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(size + 2 * FENCE_BYTES + CACHE_LINE_BYTES + PAGE_BYTES, dtype=np.uint8)
    first = raw.ctypes.data + FENCE_BYTES
    start = from_place(first + -first % CACHE_LINE_BYTES, size, place_in_page(number)) - raw.ctypes.data
    raw[:start] = FENCE_VALUE
    raw[start + size :] = FENCE_VALUE
    return raw[start : start + size].view(dtype).reshape(shape), raw


class Buffers:
    """Arguments of one task's kernels, loaded from .npy files, and the check of what a kernel did to them.

    `expected` are the right outputs; an element is right within the tolerance of its output.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        expected: Sequence[str],
        tolerances: Sequence[Tolerance],
        dtypes: Sequence[str] = (),
    ) -> None:
        """Load arrays from files; `dtypes` name the element types of all, where NumPy's format does not know them."""
        names = [*dtypes] or [""] * (len(inputs) + len(expected))
        self._originals = [_load(path, name, "r") for path, name in zip(inputs, names, strict=False)]
        self.expected = [_load(path, name) for path, name in zip(expected, names[len(inputs) :], strict=True)]
        self._tolerances = tolerances
        self._bounds = [each.bounds(e) for each, e in zip(tolerances, self.expected, strict=True)]
        pairs = [_fenced(a.shape, a.dtype, n) for n, a in enumerate((*self._originals, *self.expected))]
        self.args = [array for array, _ in pairs]
        self._raw = [raw for _, raw in pairs]
        self.outputs = self.args[len(inputs) :]
        self.restore_inputs()

    def run(self, kernel: Executable) -> None:
        """Run a kernel once; outputs are complete on return."""
        kernel.run(self.args)

    def time(self, kernel: Executable, number: int) -> float:
        """Return the seconds that so many runs take."""
        return kernel.time(self.args, number)

    def restore_inputs(self) -> None:
        """Copy the inputs from their files again."""
        for array, original in zip(self.args, self._originals, strict=False):
            array[...] = original

    def poison(self) -> None:
        """Fill the outputs with a value that no right result has there."""
        for output, expected in zip(self.outputs, self.expected, strict=True):
            output.fill(poison_value(expected))

    def wrong(self) -> str | None:
        """Return what is wrong with the outputs, or None."""
        for index, (output, expected, bound) in enumerate(zip(self.outputs, self.expected, self._bounds, strict=True)):
            bad = None if self._tolerances[index].is_none else wrong_elements(output, expected, bound)
            if bad is not None:
                return self._describe(index, output, expected, bad)
        return None

    def _describe(self, index: int, output: Array, expected: Array, bad: Array) -> str:
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        unwritten = int(np.count_nonzero(output != output)) if not np.isnan(expected.astype(float)).any() else 0
        note = f", {unwritten} of them NaN (never written?)" if unwritten else ""
        return (
            f"output {index}: {int(np.count_nonzero(bad))} of {output.size} elements differ by more than "
            f"{self._tolerances[index]}{note}; the first at {where}: got {output[where]}, expected {expected[where]}"
        )

    def memory_violation(self) -> str | None:
        """Return which memory beside the outputs was written, or None; the process may be corrupt if any was."""
        for index, (array, raw) in enumerate(zip(self.args, self._raw, strict=True)):
            start = array.ctypes.data - raw.ctypes.data
            if (raw[:start] != FENCE_VALUE).any() or (raw[start + array.nbytes :] != FENCE_VALUE).any():
                return f"wrote outside of argument {index}"
        for index, (array, original) in enumerate(zip(self.args, self._originals, strict=False)):
            if not np.array_equal(array.view(np.uint8), np.asarray(original).view(np.uint8)):
                return f"changed its input {index}"
        return None


def wrong_elements(output: Array, expected: Array, bounds: Array) -> Array | None:
    """Return where an output is further from what is expected than `bounds`, None where it nowhere is."""
    wide = np.result_type(output.dtype, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        right = np.abs(output.astype(wide, copy=False) - expected.astype(wide, copy=False)) <= bounds
    if not right.all():  # rare: only now look closely at infinities and NaN
        right |= (output == expected) | ((output != output) & (expected != expected))
    return None if right.all() else ~right


def _load(path: str, dtype: str, mode: Literal["r"] | None = None) -> Array:
    array: Array = np.load(path, mmap_mode=mode)
    if dtype and array.dtype != dtype:
        teach_numpy(dtype)
        array = array.view(dtype)
    return array


def poison_value(expected: Array) -> Any:
    """A value that no right output has where `expected` are the right ones; True where all would do."""
    if expected.dtype == np.bool_:
        return True
    if np.issubdtype(expected.dtype, np.integer):
        return np.iinfo(expected.dtype).min + 77
    return 6e4 if np.isnan(expected).any() else np.nan
