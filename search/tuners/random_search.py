"""Random configs."""

from __future__ import annotations

from .tuner import Tuner


class RandomTuner(Tuner):
    """Draws configs at random, each at most once."""

    def propose(self, count: int) -> list[int]:
        return self.draw(count)
