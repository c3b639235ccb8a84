"""The base of knobs: a name and a list of choices, each of which is also a row of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ....dialects.errors import Error
from ..symbolic import Tracer

EntityT = TypeVar("EntityT")


class ConfigError(Error, ValueError):
    """A knob, or a config of a template, does not make sense; the sentence says why."""


class Knob(ABC, Generic[EntityT]):
    """A named list of choices; the choice at a position is what `cfg[name]` gives a template."""

    name: str

    @abstractmethod
    def __len__(self) -> int:
        """Number of choices."""

    @abstractmethod
    def entity(self, position: int) -> EntityT:
        """The choice at a position."""

    def traced(self, position: int, tracer: Tracer) -> EntityT:
        """The choice at a position for a template that is traced: what it does then holds for this choice only."""
        tracer.fix(self.name, position)
        return self.entity(position)

    def parts(self) -> list[npt.NDArray[np.int64]]:
        """The numbers of a choice that a traced template may compute with, each `(len,)`."""
        return []

    @abstractmethod
    def value(self, position: int) -> Any:
        """The choice at a position as JSON holds it."""

    @abstractmethod
    def describe(self) -> str:
        """The kind of knob and its options, in a line."""

    @property
    @abstractmethod
    def features(self) -> npt.NDArray[np.float32]:
        """Features of each choice, `(len, width)`."""

    def position_of(self, value: Any) -> int:
        """The position of a choice given as JSON holds it; ConfigError where it is none."""
        wanted = plain(value)
        for position in range(len(self)):
            if plain(self.value(position)) == wanted:
                return position
        raise ConfigError(f"knob '{self.name}' has no choice {value!r}: {self.describe()}")

    def is_like(self, other: Knob[Any]) -> bool:
        """True where it is of the same kind, with the same choices in the same order."""
        if type(self) is not type(other) or len(self) != len(other):
            return False
        return all(plain(self.value(p)) == plain(other.value(p)) for p in range(len(self)))

    def __str__(self) -> str:
        return f"{self.describe()} len={len(self)}"


def plain(value: Any) -> Any:
    """A value with tuples as lists, as JSON gives them back."""
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def extent_of(axis: Any) -> int:
    """The extent of an axis: a number, or a loop or te axis that knows its own; ConfigError for anything else."""
    extent = axis if isinstance(axis, int) else getattr(axis, "extent", None)
    if not isinstance(extent, int) or extent < 1:
        raise ConfigError(f"an axis is an extent of at least 1, a loop from get_loops or a te axis, got {axis!r}")
    return extent
