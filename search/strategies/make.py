"""Strategies by name."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.classic_words import instead_of
from .annealing import Annealing
from .evolution import Evolution
from .genetic import Genetic
from .grid import Grid
from .random_search import RandomSearch
from .strategy import StrategyMaker

STRATEGIES: Mapping[str, StrategyMaker] = {
    "evolution": Evolution,
    "annealing": Annealing,
    "genetic": Genetic,
    "random": RandomSearch,
    "grid": Grid,
}


def strategy_maker(strategy: str | StrategyMaker) -> StrategyMaker:
    """The maker of a name, one of `STRATEGIES`, or the one given; ValueError for another name."""
    if not isinstance(strategy, str):
        if not callable(strategy):
            raise TypeError(f"a strategy is one of {', '.join(STRATEGIES)}, or makes one, got {strategy!r:.40}")
        return strategy
    if strategy not in STRATEGIES:
        raise ValueError(f"unknown strategy {strategy!r}; there are: {', '.join(STRATEGIES)}{instead_of(strategy)}")
    return STRATEGIES[strategy]
