"""Share of the tests to run: a part that takes two busy cores minutes, N times that (`--effort N`), or all."""

import math
import os
from collections.abc import Sequence
from typing import TypeVar

VARIABLE = "LOOPWRIGHT_TEST_EFFORT"
"""Set by `--effort` and `--all`: what modules draw when they are imported depends on it, too."""

_SHARE = 6
"""Of what is drawn at random, the default run takes one in so many."""

T = TypeVar("T")


def level() -> float:
    """Return the multiple of the usual part that is run; infinity for all tests."""
    return float(os.environ.get(VARIABLE, "1"))


def everything() -> bool:
    """True where all tests are run."""
    return math.isinf(level())


def exploring() -> bool:
    """True where Hypothesis draws new examples (`--hypothesis-profile=explore`)."""
    from hypothesis import settings

    return settings.default is not None and not settings.default.derandomize


def usual(most: int) -> int:
    """Return by how many times to multiply what the default run takes: the effort, at most `most`."""
    return int(min(most, level()))


def examples(most: int) -> int:
    """Return the number of random examples to draw, of `most`."""
    return most if everything() else int(min(most, most // _SHARE * level()))


def spread(cases: Sequence[T], count: float) -> list[T]:
    """`count` of some cases, the same ones in every run, evenly spread over them; all where there are no more."""
    if count >= len(cases):
        return list(cases)
    count = max(1, int(count))
    return [cases[(2 * n + 1) * len(cases) // (2 * count)] for n in range(count)]
