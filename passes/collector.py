"""Python's garbage collector where IR is built: it would walk tens of thousands of live objects to free none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 100_000
"""Objects between two collections in a process that only builds: about as many as one candidate's IR has."""


def collect_rarely() -> None:
    """Leave what is there now to the end of the process, and collect what comes about once for each kernel built.

    For a process of ours that does nothing else.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's cyclic garbage collector off while the block runs, if it is on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
