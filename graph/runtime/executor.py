"""Running a compiled network: inputs in, run, outputs out; timing it whole and step by step."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.arrays import aligned_empty, as_array
from ...backends.forkable import ForkableLock
from ...backends.of_this_process import OfThisProcess
from ...backends.time_evaluator import BenchmarkResult, Repeats, flush_bytes, flushed
from .device import Session
from .plan import Plan, Port
from .profile import Profile, ProfileRow

Array = npt.NDArray[Any]
_USUAL_MS = 500.0
"""Length of a repeat unless told otherwise."""


class Executor(OfThisProcess):
    """`set_input`, `run`, `get_output`; or all at once: `executor(data)` returns the outputs.

    Inputs keep their values from run to run. One executor is for one thread at a time, and waits for its turn.
    """

    def __init__(self, plan: Plan, session: Session) -> None:
        self.plan = plan
        self._session = session
        self._inputs = {port.name: port for port in plan.inputs}
        self._given: set[str] = set()
        self._ran = False
        self._lock = ForkableLock()

    @property
    def input_names(self) -> list[str]:
        return list(self._inputs)

    @property
    def output_names(self) -> list[str]:
        return [port.name for port in self.plan.outputs]

    def set_input(self, name: str | int | None = None, value: Any = None, **inputs: Any) -> None:
        """Copy an array to an input by name or number, or arrays to inputs by keyword.

        TypeError or ValueError says what an input must be.
        """
        given = dict(inputs) if name is None else {self._name(name): value, **inputs}
        arrays = {self._name(key): checked(self._inputs[self._name(key)], array) for key, array in given.items()}
        with self._lock:
            for key, array in arrays.items():
                if array.size:
                    self._session.write(self._inputs[key], array)
                self._given.add(key)

    def run(self, **inputs: Any) -> None:
        """Run once; inputs may be given by keyword. ValueError where one was never set."""
        with self._lock:
            self.set_input(**inputs)
            self._require_inputs()
            self._session.run()
            self._ran = True

    def get_output(self, output: str | int = 0) -> Array:
        """Return a copy of an output, by number or name."""
        port = self._output(output)
        with self._lock:
            if not self._ran:
                raise ValueError(f"network {self.plan.name}: there is no output before the first run")
            array = aligned_empty(port.shape, port.dtype)
            if array.size:
                self._session.read(port, array)
        return array

    def __call__(self, *arrays: Any, **inputs: Any) -> Array | tuple[Array, ...]:
        """Run on arrays for all inputs, in order or by name; returns the output, or a tuple of several."""
        if len(arrays) + len(inputs) != len(self._inputs):
            names, count = ", ".join(self._inputs), len(arrays) + len(inputs)
            raise TypeError(f"network {self.plan.name} takes {len(self._inputs)} arrays ({names}), got {count}")
        with self._lock:
            self.run(**dict(zip(self._inputs, arrays, strict=False)), **inputs)
            outputs = tuple(self.get_output(n) for n in range(len(self.plan.outputs)))
        return outputs[0] if len(outputs) == 1 else outputs

    def benchmark(
        self,
        *,
        number: int | None = None,
        repeat: int = 3,
        min_repeat_ms: float | None = None,
        flush: bool | int = False,
    ) -> BenchmarkResult:
        """Time runs, as `lw.Kernel.benchmark` does.

        Each of `repeat` rounds is `number` runs back to back, or as many more as take `min_repeat_ms` (500, or with a
        `number` 0, unless given). With `flush`, twice the device's cache, or so many bytes, are written before each
        run, outside of the timing. Inputs that were not set are random. Copies are not counted; on a GPU the device's
        clock is read.
        """
        repeats = Repeats(number, repeat, min_repeat_ms, _USUAL_MS)
        with self._lock:
            self._fill()
            self._session.time(1)
            nbytes = flush_bytes(flush, self._session.cache_bytes)
            caches = partial(self._session.flush, nbytes) if nbytes else None
            result = repeats.of(flushed(self._session.time, caches), flushes=nbytes > 0)
            self._ran = True
        return result

    def profile(self, repeat: int = 10) -> Profile:
        """Time each step: the median of `repeat` runs, after one to warm up."""
        with self._lock:
            self._fill()
            self._session.time_steps()
            rounds = [self._session.time_steps() for _ in range(max(1, repeat))]
            self._ran = True
        rows = []
        for number, step in enumerate(self.plan.steps):
            kernel = self.plan.kernels[step.kernel]
            rows.append(ProfileRow(step.label, kernel, statistics.median(times_s[number] for times_s in rounds)))
        return Profile(self.plan.name, tuple(rows))

    def _fill(self) -> None:
        for seed, (name, port) in enumerate(self._inputs.items()):
            if name not in self._given:
                self.set_input(name, _random(port, seed))

    def _require_inputs(self) -> None:
        missing = [name for name in self._inputs if name not in self._given]
        if missing:
            raise ValueError(f"network {self.plan.name}: input '{missing[0]}' was not set")

    def _name(self, key: str | int) -> str:
        names = list(self._inputs)
        if isinstance(key, int) and 0 <= key < len(names):
            return names[key]
        if key in self._inputs:
            return str(key)
        raise ValueError(f"network {self.plan.name} has no input {key!r}; it has {', '.join(names) or 'none'}")

    def _output(self, key: str | int) -> Port:
        names = self.output_names
        if isinstance(key, int) and 0 <= key < len(names):
            return self.plan.outputs[key]
        if key in names:
            return self.plan.outputs[names.index(str(key))]
        raise ValueError(f"network {self.plan.name} has no output {key!r}; it has {', '.join(names)}")


def checked(port: Port, value: Any) -> Array:
    """Return an array for an input, contiguous; TypeError or ValueError says what it must be."""
    array = as_array(value, f"input '{port.name}'")
    if array.dtype != np.dtype(port.dtype):
        raise TypeError(f"input '{port.name}' must be {port.dtype}, got {array.dtype}")
    if array.shape != port.shape:
        raise ValueError(f"input '{port.name}' must have shape {port.shape}, got {array.shape}")
    return np.ascontiguousarray(array)


def _random(port: Port, seed: int) -> Array:
    generator: Any = np.random.default_rng(seed)
    values: Sequence[Any] | Array = (
        generator.standard_normal(port.shape) if "float" in port.dtype else generator.integers(0, 2, port.shape)
    )
    return np.asarray(values).astype(port.dtype)
