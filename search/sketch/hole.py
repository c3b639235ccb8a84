"""Holes of a sketch: numbers to be chosen, numbers that follow from them, and what limits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, npt.NDArray[np.int64]]
"""The value of each hole for each candidate of a population, `(n,)`."""

Limit: TypeAlias = Callable[[Columns], npt.NDArray[np.bool_]]
"""Which candidates `(n,)` the target can run; it asks for the columns it needs by name."""

Kind: TypeAlias = Literal["tile", "threads", "vector", "unroll", "stages", "parts"]


@dataclass(frozen=True)
class Hole:
    """A number to be chosen: its name, what it may be, and what it is without a search.

    `kind` says what is chosen: the factor of a tile, threads, a vector's width, unrolled copies, the stages of a
    pipeline, parts of a reduction. Holes that share an `axis` divide it together: a search may move a factor from one
    to the other.
    """

    name: str
    choices: tuple[int, ...]
    default: int
    kind: Kind = "tile"
    axis: str = ""


@dataclass(frozen=True)
class Derived:
    """A number that follows from the holes, such as the width of a panel from tile and vector width."""

    name: str
    function: Callable[[Columns], npt.NDArray[np.int64]]
    default: int
