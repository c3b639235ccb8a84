"""Tuners that learn nothing but the speeds of what was measured."""

from __future__ import annotations

from functools import partial

from ..strategies.genetic import Genetic
from ..strategies.grid import Grid
from ..strategies.random_search import RandomSearch
from ..strategies.strategy import StrategyMaker
from ..template.task import TemplateTask
from .tuner import Tuner


class RandomTuner(Tuner):
    """Draws configs at random, each at most once."""

    def _strategy(self) -> StrategyMaker:
        return RandomSearch


class GridSearchTuner(Tuner):
    """Goes through the space in the order of the index; configs that are not legal are passed over."""

    def _strategy(self) -> StrategyMaker:
        return Grid


class GATuner(Tuner):
    """Breeds each generation of `pop_size` from the last one and its `elite_num` best; see `strategies.genetic`."""

    def __init__(
        self,
        task: TemplateTask,
        pop_size: int = 100,
        elite_num: int = 3,
        mutation_prob: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(task, seed)
        if not 0 < elite_num < pop_size:
            raise ValueError(f"elite_num must be in [1, pop_size), got {elite_num} of {pop_size}")
        self.pop_size = pop_size
        self.elite_num = elite_num
        self.mutation_prob = mutation_prob

    def _strategy(self) -> StrategyMaker:
        return partial(Genetic, population=self.pop_size, elite=self.elite_num, mutation=self.mutation_prob)
