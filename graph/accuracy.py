"""The accuracy of a compiled network beside another one of the same network, such as one in single precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .runtime.executor import Executor


@dataclass(frozen=True)
class OutputError:
    """The difference of an output from the right one.

    `max_error` is the largest of an element, infinite where one of them is no number and the right one is; `largest` is
    the magnitude of the largest right element.
    """

    name: str
    max_error: float
    largest: float

    @property
    def is_finite(self) -> bool:
        """False where an element is no number, or infinite, and the right one is not so."""
        return bool(np.isfinite(self.max_error))

    @property
    def relative(self) -> float:
        """The largest error as a part of the largest element."""
        if not self.max_error:
            return 0.0
        return self.max_error / self.largest if self.largest else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.name}: max error {self.max_error:.3g}, {self.relative:.3g} of the largest output {self.largest:.3g}"
        )


def output_errors(made: Executor, right: Executor, feeds: Mapping[str, Any]) -> list[OutputError]:
    """Run two executors on the same inputs, by name, and compare each output."""
    for executor in (made, right):
        executor.run(**feeds)
    return [compare_output(n, made.get_output(n), right.get_output(n)) for n in right.output_names]


def compare_output(name: str, made: npt.NDArray[Any], right: npt.NDArray[Any]) -> OutputError:
    """Compare an output with the right one; equal infinities, and two that are no number, do not differ."""
    got, exact = (np.asarray(array).astype(np.float64) for array in (made, right))
    same = (got == exact) | (np.isnan(got) & np.isnan(exact))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(got - exact))
    error[np.isnan(error)] = np.inf
    largest = np.max(np.abs(exact), initial=0, where=np.isfinite(exact))
    return OutputError(name, float(np.max(error, initial=0)), float(largest))
