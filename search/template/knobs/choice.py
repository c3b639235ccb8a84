"""A knob that is one of a list of values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....dialects.cached_property import cached_property
from ..symbolic import KnobExpr, Tracer
from .knob import ConfigError, Knob


@dataclass(frozen=True)
class ChoiceEntity:
    """The value chosen."""

    val: Any

    def __str__(self) -> str:
        return repr(self.val)


class ChoiceKnob(Knob[ChoiceEntity]):
    """A list of values that a record can hold: finite numbers, texts, truth values, None, and lists of them.

    Numbers of NumPy become Python's.
    """

    def __init__(self, name: str, candidate: Iterable[Any]) -> None:
        self.name = name
        self.candidate = [_recordable(name, value) for value in candidate]
        if not self.candidate:
            raise ConfigError(f"knob '{name}' needs at least one candidate")

    def __len__(self) -> int:
        return len(self.candidate)

    def entity(self, position: int) -> ChoiceEntity:
        return ChoiceEntity(self.candidate[position])

    @property
    def _whole(self) -> bool:
        return all(type(v) is int for v in self.candidate)

    def traced(self, position: int, tracer: Tracer) -> ChoiceEntity:
        if not self._whole:
            return super().traced(position, tracer)
        value = self.candidate[position]
        return ChoiceEntity(tracer.number(value, KnobExpr("knob", (self.name, 0), value)))

    def parts(self) -> list[npt.NDArray[np.int64]]:
        return [np.array(self.candidate, dtype=np.int64)] if self._whole else []

    def value(self, position: int) -> Any:
        return self.candidate[position]

    def describe(self) -> str:
        return f"OtherOption({self.candidate})"

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """The number itself where all values are numbers, else a column per value."""
        if all(isinstance(v, int | float) for v in self.candidate):
            return np.array(self.candidate, dtype=np.float32)[:, None]
        return np.eye(len(self.candidate), dtype=np.float32)


def _recordable(name: str, value: Any) -> Any:
    """A value as Python has it; ConfigError where it does not come back from JSON, or is no 64-bit integer."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(_recordable(name, v) for v in value)
    small = not isinstance(value, int) or -(1 << 63) <= value < 1 << 63
    finite = not isinstance(value, float) or math.isfinite(value)
    if value is not None and not (isinstance(value, int | float | str) and small and finite):
        kinds = "a finite number, at most of 64 bits, a text, a truth value, None, or a list of those"
        raise ConfigError(f"knob '{name}': a candidate is {kinds}, got {value!r}")
    return value
