"""Tuning of the kernels of a region for a time."""

from __future__ import annotations

import os

from ...dialects.target import Target
from ...graph.network import Network
from ...graph.tasks import tasks_to_tune
from ...search.tune.options import TuningOptions
from ...search.tune.scheduler import TaskScheduler

_MOST_TRIALS = 1000
"""Trials a kernel: the time ends tuning before."""


def tune_network(net: Network, target: str | Target, records: str | os.PathLike[str], time_s: float) -> None:
    """Tune the kernels of a network for a time, into a file of records."""
    tasks, weights = tasks_to_tune(net, target)
    if tasks:
        more = TuningOptions(more_trials=_MOST_TRIALS * len(tasks), time_limit_s=time_s, progress=False)
        TaskScheduler(tasks, weights, records).tune(more)
