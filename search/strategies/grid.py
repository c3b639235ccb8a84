"""Grid search: candidates one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from ..cost_model import CostModel
from ..sketch.space import GuardedSpace
from .order import in_order
from .strategy import Proposal, Strategy


class Grid(Strategy):
    """Goes through each space in the order of its index, in turns; rows that are not legal are passed over."""

    learns = False

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        return self._fill([], count)

    def _order(self, space: GuardedSpace) -> Iterator[tuple[int, ...]]:
        return in_order(space)
