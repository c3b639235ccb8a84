"""Tuners of templates, what they measure with, and what they call back: `lw.tuners`."""

from typing import TYPE_CHECKING

from ...dialects.classic_words import names_of_module as _names_of_module
from ..measure.local import LocalBuilder as LocalBuilder
from ..measure.local import LocalRunner as LocalRunner
from ..measure.local import measure_option as measure_option
from . import callbacks as callbacks
from .by_strategy import GATuner as GATuner
from .by_strategy import GridSearchTuner as GridSearchTuner
from .by_strategy import RandomTuner as RandomTuner
from .gradient_boosting import GradientBoostingTuner as GradientBoostingTuner
from .tuner import Tuner as Tuner

GeneticTuner = GATuner
XGBTuner = GradientBoostingTuner
"""The name that scripts for the classic autotuner know; the trees are scikit-learn's."""

if not TYPE_CHECKING:  # type checkers know the names above
    __getattr__ = _names_of_module("loopwright.tuners")
