"""Draws of a generator that lists of cases are made of, by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from operator_cases import Case


class Dice:
    """Draws of a generator, in their order."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, choices: Sequence[int]) -> int:
        """One of several numbers."""
        return int(self.rng.choice(choices))


def kind_of(rng: np.random.Generator, shares: Mapping[str, float]) -> str:
    """A kind, each as often as its share says."""
    return str(rng.choice(list(shares), p=list(shares.values())))


def distinct_cases(
    rng: np.random.Generator, shares: Mapping[str, float], count: int, drawn: Callable[[str], Case | None]
) -> tuple[Case, ...]:
    """So many cases of different names, of kinds in their shares; `drawn` gives none for one that costs too much."""
    found: dict[str, Case] = {}
    while len(found) < count:
        case = drawn(kind_of(rng, shares))
        if case is not None:
            found[case.name] = case
    return tuple(found.values())
