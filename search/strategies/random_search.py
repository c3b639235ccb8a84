"""Random search."""

from __future__ import annotations

from ..cost_model import CostModel
from .strategy import Proposal, Strategy


class RandomSearch(Strategy):
    """Draws candidates at random, from one space after the other, each at most once."""

    learns = False

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        return self._fill([], count)
