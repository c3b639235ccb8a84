"""Waiting without a guess at how fast the machine is: long for what is sure to come, briefly for what never does."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from loopwright.search.measure.measurer import Measurer

PATIENCE_S = 240.0
"""For what takes a second on an idle machine; well below the limit of a test."""


def wait_until(condition: Callable[[], bool]) -> bool:
    """True where a condition comes to hold."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.02)
    return condition()


@contextlib.contextmanager
def hurried(measurer: Measurer, **limits_s: float) -> Iterator[None]:
    """Measure under short limits (`run_timeout_s`, `build_timeout_s`): for what never ends.

    What does end is measured outside of it: on a loaded machine no short limit is long enough.
    """
    patient = measurer.options
    measurer.options = replace(patient, **limits_s)  # type: ignore[arg-type]
    try:
        yield
    finally:
        measurer.options = patient
