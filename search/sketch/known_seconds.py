"""Estimates of rows of a population, each made once however often it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .distinct import Rows

Seconds = npt.NDArray[np.float64]


class KnownSeconds:
    """A function from rows `(n, d)` to seconds `(n,)` that keeps what it has said.

    Of the rows that defaults of tiles are chosen among (eight convolutions, one core of a CPU), 140,019 in all, nearly
    half were asked for before: what rounds begin from, and neighbours that several of the best rows share.
    """

    def __init__(self, estimate: Callable[[Rows], Seconds]) -> None:
        self._estimate = estimate
        self._known: dict[bytes, float] = {}

    def __call__(self, rows: Rows) -> Seconds:
        keys = _keys(rows)
        places = {key: place for place, key in enumerate(keys) if key not in self._known}
        if places:
            self._known.update(zip(places, self._estimate(rows[[*places.values()]]).tolist(), strict=True))
        return np.array([self._known[key] for key in keys])


def _keys(rows: Rows) -> list[bytes]:
    """The bytes of each row."""
    if not rows.shape[1]:
        return [b""] * len(rows)
    whole = np.ascontiguousarray(rows)
    row = np.dtype((np.void, whole.itemsize * whole.shape[1]))  # strides of a single row may be anything
    found: list[Any] = whole.view(row).ravel().tolist()
    return found
