"""A compiled kernel as a Python callable on NumPy arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects.cached_property import cached_property
from ..dialects.classic_words import attributes_know_classic_words
from ..dialects.numpy_types import FLOATS
from .arrays import PAGE_BYTES, aligned_copy, aligned_empty, aligned_results, as_array
from .host_cache import host_cache_bytes
from .host_memory import require_bytes
from .of_this_process import SharedInProcess
from .signature import Argument
from .time_evaluator import BenchmarkResult as BenchmarkResult
from .time_evaluator import HostCaches, Repeats, flush_bytes, flushed

Array = npt.NDArray[Any]

_USUAL_MS = 100.0
"""Length of a repeat unless told otherwise."""
_SMALL_BYTES = 1 << 28
"""Outputs that are allocated without a look at what there is, which takes some 50 microseconds."""


class Shaped(Protocol):
    """An array of another package, or on a device."""

    @property
    def shape(self) -> tuple[int, ...]: ...


Given: TypeAlias = npt.ArrayLike | Shaped
"""An argument of a kernel's call."""


class Executable(Protocol):
    """A loaded kernel, on contiguous arrays: inputs, then outputs."""

    def run(self, args: Sequence[Array]) -> None:
        """Run once; outputs are complete on return."""

    def time(self, args: Sequence[Array], number: int) -> float:
        """Return the seconds that `number` runs take."""


@attributes_know_classic_words
class Kernel(SharedInProcess):
    """`kernel(*inputs)` returns its output, or a tuple of several; `kernel(*inputs, *outputs)` writes to those given.

    Contiguous arrays are used where they lie, others are copied. TypeError or ValueError names the argument, what it
    must be and what came.
    """

    def __init__(
        self,
        name: str,
        arguments: tuple[Argument, ...],
        executable: Executable,
        source: str,
        assembly: Callable[[bool], str],
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.source = source
        self._executable = executable
        self._assembly = assembly
        self._inputs = [argument for argument in arguments if not argument.is_output]
        self._outputs = [argument for argument in arguments if argument.is_output]
        self._output_bytes = sum(math.prod(a.shape) * np.dtype(a.dtype).itemsize for a in self._outputs)

    @cached_property
    def assembly(self) -> str:
        """The kernel's assembly."""
        return self._assembly(False)

    @cached_property
    def assembly_by_line(self) -> str:
        """The assembly with `.loc` directives, which say which line of `source` an instruction is from, where known."""
        return self._assembly(True)

    def export_library(self, path: str | Path, name: str | None = None) -> Path:
        """Write the kernel as an object file or a shared library with a C header; ValueError for those of GPUs."""
        raise ValueError(f"kernel {self.name}: only kernels for llvm are exported to {path}, whose caller is C")

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the kernel as a file, and beside it what runs it without this package; returns the paths.

        By the path's suffix: `.so` or `.ll` for llvm, `.cu` or `.ptx` for cuda, `.cl` for opencl. `k_host.c` and
        `k_run.py` are programs beside `k.so`, which know shapes, order of arguments and launches; constants given as
        `params` are in the file of a CPU's kernel, in `k_constants.bin` beside others. ValueError for another suffix,
        and for a kernel that these programs cannot launch; FileExistsError where a file is there and not ours.
        """
        raise ValueError(
            f"kernel {self.name}: only kernels for llvm, cuda and opencl are saved, not those of other backends"
        )

    def __repr__(self) -> str:
        shown = [", ".join(f"{a.name}: {a}" for a in group) for group in (self._inputs, self._outputs)]
        return f"<kernel {self.name}({shown[0]}) -> {shown[1]}>"

    def __call__(self, *arrays: Given) -> Array | Any:
        """Run on NumPy arrays, inputs first; outputs may follow. Returns the output, or a tuple of several."""
        if len(arrays) not in (len(self._inputs), len(self.arguments)):
            raise TypeError(self._count_message(len(arrays)))
        given = [_checked(self.name, *pair) for pair in zip(self.arguments, arrays, strict=False)]
        inputs, outputs = given[: len(self._inputs)], given[len(self._inputs) :]
        if not outputs:
            self._require_room()
            outputs = self._results(inputs)
        else:
            self._check_outputs(inputs, outputs)
        places = [_contiguous(array, copy=False) for array in outputs]
        self._executable.run([*map(_usable, self._inputs, inputs), *places])
        for array, place in zip(outputs, places, strict=True):
            if place is not array:
                array[...] = place
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _results(self, inputs: Sequence[Array]) -> list[Array]:
        """Return arrays for the outputs of a run on these inputs; small ones lie anywhere, in less time."""
        if self._output_bytes <= PAGE_BYTES:
            return [aligned_empty(argument.shape, argument.dtype) for argument in self._outputs]
        return aligned_results([(argument.shape, argument.dtype) for argument in self._outputs], *inputs)

    def _apart(self, given: Sequence[Array], drawn: list[Array]) -> list[Array]:
        """Return what was drawn for all that is not given, outputs at places as in a call."""
        count = len(self._inputs) - len(given)
        results = self._results([*given, *drawn[:count]])
        for place, values in zip(results, drawn[count:], strict=True):
            place[...] = values
        return [*drawn[:count], *results]

    def _require_room(self) -> None:
        """NotEnoughMemory where outputs do not fit; small ones, which a call must not wait for, are not looked at."""
        if self._output_bytes > _SMALL_BYTES:
            require_bytes(f"the output of kernel {self.name}", self._output_bytes)

    def _count_message(self, count: int) -> str:
        inputs = ", ".join(argument.name for argument in self._inputs)
        outputs = ", ".join(argument.name for argument in self._outputs)
        return (
            f"kernel {self.name} takes {len(self._inputs)} arrays ({inputs}), "
            f"or {len(self.arguments)} with its outputs ({outputs}), got {count}"
        )

    def _check_outputs(self, inputs: list[Array], outputs: list[Array]) -> None:
        for number, (argument, array) in enumerate(zip(self._outputs, outputs, strict=True)):
            if not array.flags.writeable:
                raise ValueError(
                    f"kernel {self.name}: output '{argument.name}' must be writable, got a read-only array"
                )
            others = zip(self.arguments, [*inputs, *outputs[:number]], strict=False)
            for other, candidate in others:
                if np.may_share_memory(array, candidate):
                    raise ValueError(
                        f"kernel {self.name}: output '{argument.name}' must not overlap '{other.name}' in memory"
                    )

    def benchmark(
        self,
        *arrays: Any,
        number: int | None = None,
        repeat: int = 5,
        min_repeat_ms: float | None = None,
        flush: bool | int = False,
    ) -> BenchmarkResult:
        """Time runs; random data unless given.

        Each of `repeat` rounds is `number` runs back to back, or as many more as take `min_repeat_ms` (100, or with a
        `number` 0, unless given). With `flush`, twice the last-level cache, or so many bytes, are written before each
        run, outside of the timing.
        """
        repeats = Repeats(number, repeat, min_repeat_ms, _USUAL_MS)
        data = [_checked(self.name, *pair) for pair in zip(self.arguments, arrays, strict=False)]
        missing = islice(enumerate(self.arguments), len(data), None)
        drawn = [_random(argument, seed) for seed, argument in missing]
        if len(data) <= len(self._inputs):
            drawn = self._apart(data, drawn)
        data += drawn
        args = [_usable(argument, array) for argument, array in zip(self.arguments, data, strict=True)]
        self._executable.run(args)
        nbytes = flush_bytes(flush, host_cache_bytes())
        caches = HostCaches(nbytes).flush if nbytes else None
        return repeats.of(flushed(lambda runs: self._executable.time(args, runs), caches), flushes=nbytes > 0)


def _checked(kernel: str, argument: Argument, value: Any) -> Array:
    array = as_array(value, f"kernel {kernel}: argument '{argument.name}'")
    if argument.is_output and array is not value:
        raise TypeError(f"kernel {kernel}: output '{argument.name}' must be a NumPy array, got {type(value).__name__}")
    argument.require_fit(kernel, array)
    return array


def _usable(argument: Argument, array: Array) -> Array:
    """Return an input as a kernel can use it; a constant that is packed anyway may lie as it likes."""
    return array if argument.packing is not None else _contiguous(array, copy=True)


def _contiguous(array: Array, copy: bool) -> Array:
    """Return the array itself where a kernel can use it in place, else one like it, with its values if `copy`."""
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return aligned_copy(array) if copy else aligned_empty(array.shape, array.dtype)


def _random(argument: Argument, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    if argument.dtype in FLOATS:
        return aligned_copy(generator.standard_normal(argument.shape).astype(argument.dtype))
    return aligned_copy(generator.integers(0, 2, argument.shape).astype(argument.dtype))
