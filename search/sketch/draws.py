"""Random rows that were drawn before: sketches of one workload often have the same holes and limits, and one seed.

Of eight sketches of a convolution on a CPU six have those of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

MOST_KEPT = 8
"""Draws that are kept, the last ones: half a megabyte each. A choice: sketches of a workload have two or three kinds of
limits, and groups of holes as many."""


@dataclass
class KnownDraws:
    """Rows by what they were drawn of, and from which state of a generator, with the state that it was left in."""

    _known: dict[Hashable, tuple[Rows, Any]] = field(default_factory=dict)

    def get(self, rng: np.random.Generator, of: Hashable, draw: Callable[[], Rows]) -> Rows:
        """The rows that `draw` gives with a generator, which is left as that leaves it; nobody may change them.

        `of` is all else that it depends on.
        """
        source = rng.bit_generator
        if not isinstance(source, np.random.PCG64):
            return draw()
        key = of, _numbers(source)
        known = self._known.get(key)
        if known is not None:
            source.state = known[1]
            return known[0]
        rows = draw()
        while len(self._known) >= MOST_KEPT:
            first, *_ = self._known
            self._known.pop(first, None)  # which another thread may have let go of
        self._known[key] = rows, source.state
        return rows


def _numbers(source: np.random.PCG64) -> tuple[int, ...]:
    """The state of a generator."""
    state: Any = source.state
    return state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]
