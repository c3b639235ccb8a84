"""Measuring in next to no time, for tests that look at what comes of a search, and not at how fast it is."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import nursery

from loopwright.backends.time_evaluator import Repeats
from loopwright.search.measure import limits, process
from loopwright.search.measure.measurement import MeasureOptions
from loopwright.search.measure.measurer import Measurer

_REPEAT_MS = 1.0
"""Usual are 50 on a CPU, of which a run-off among five schedules takes two seconds, and 500 of a network."""


def quick(options: MeasureOptions) -> MeasureOptions:
    """The options with short repeats, and one builder where as many as there are cores would be usual."""
    timing = replace(options.timing, min_repeat_ms=min(options.timing.min_repeat_ms, _REPEAT_MS))
    return replace(options, builders=1 if options.builders is None else options.builders, timing=timing)


def brief(repeats: Repeats) -> Repeats:
    """As many repeats, which are short."""
    least_ms = None if repeats.min_repeat_ms is None else min(repeats.min_repeat_ms, _REPEAT_MS)
    return replace(repeats, min_repeat_ms=least_ms, usual_ms=min(repeats.usual_ms, _REPEAT_MS))


_peak, _copied = cache(limits.peak_gflops_per_s), cache(limits.copy_gbytes_per_s)
"""Limits of this CPU, which each command measures for itself, measured once in a process of tests."""


@contextlib.contextmanager
def workers_forked() -> Iterator[None]:
    """Fork the builders and runners of every measurer of this process with their imports done."""
    with patch.object(process, "spawn", nursery.spawn):
        yield


@contextlib.contextmanager
def quickly_measured() -> Iterator[None]:
    """Make every measurer of this process a quick one, whose builders and runners are forked with their imports done.

    What they do, check and time is the same. Kernels and networks are timed in short repeats, too; what this CPU allows
    at most is measured once.
    """
    made, timed = Measurer.__init__, Repeats.of
    with (
        patch.object(Repeats, "of", lambda self, *how, **options: timed(brief(self), *how, **options)),
        patch.object(Measurer, "__init__", lambda self, options: made(self, quick(options))),
        patch.object(limits, "peak_gflops_per_s", _peak),
        patch.object(limits, "copy_gbytes_per_s", _copied),
        workers_forked(),
    ):
        yield
