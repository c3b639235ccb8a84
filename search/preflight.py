"""Before the first trial: does a tiny kernel compile and run on the target, through all that trials go through?"""

from __future__ import annotations

from functools import cache

from ..dialects.target import Target
from .measure import MeasureTask

_NUMBERS = 1 << 15


@cache
def preflight(target: Target) -> tuple[MeasureTask, str]:
    """A task that adds 1 to some numbers, and its untuned schedule, on the threads or cores of a target."""
    from .. import te
    from .task import SearchTask

    data = te.placeholder((_NUMBERS,), name="data")
    task = SearchTask(
        te.create_module([data, te.compute((_NUMBERS,), lambda i: data[i] + 1.0, name="next")]), (), target
    )
    reference = task.reference
    found = MeasureTask(str(task.module), reference.inputs, reference.expected, reference.atol, reference.rtol)
    return found, task.default_schedule
