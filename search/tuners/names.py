"""The tuners by the names that a command line has for them."""

from __future__ import annotations

from collections.abc import Mapping

from .by_strategy import GATuner, GridSearchTuner, RandomTuner
from .gradient_boosting import GradientBoostingTuner
from .tuner import Tuner

TUNERS: Mapping[str, type[Tuner]] = {
    "xgb": GradientBoostingTuner,
    "ga": GATuner,
    "random": RandomTuner,
    "grid": GridSearchTuner,
}


def tuner_class(name: str) -> type[Tuner]:
    """The tuner of a name, one of `TUNERS`; ValueError for another one."""
    if name not in TUNERS:
        raise ValueError(f"unknown tuner {name!r}; there are: {', '.join(TUNERS)}")
    return TUNERS[name]
