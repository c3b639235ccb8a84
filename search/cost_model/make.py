"""Cost models by name."""

from __future__ import annotations

from collections.abc import Callable

from .linear import Linear
from .protocol import CostModel
from .rank import RankTrees
from .roofline import Roofline
from .trees import BoostedTrees
from .unknowing import Unknowing

MODELS: dict[str, Callable[[int], CostModel]] = {
    "trees": BoostedTrees,
    "rank": RankTrees,
    "linear": lambda seed: Linear(),
    "roofline": lambda seed: Roofline(),
    "random": lambda seed: Unknowing(),
}
"""What makes each cost model from a seed."""


def make_model(name: str, seed: int = 0) -> CostModel:
    """Return the cost model `name`, one of `MODELS`; ValueError for another name."""
    if name not in MODELS:
        raise ValueError(f"unknown cost model {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name](seed)
