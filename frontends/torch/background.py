"""Tuning beside a program: by one process at a time, for one region after another, which takes what is found."""

from __future__ import annotations

import os
import queue
import threading
import warnings
import weakref
from functools import cache
from typing import Protocol

from ...graph.export import CpuNetwork
from ...graph.tuning_process import TuningJob, TuningProcess

TRIALS = 256
"""Trials a kernel, those on record among them, after which a model counts as tuned. Nobody measured others."""
PAUSE_S = 10.0
"""Seconds between two changes of kernels, a guess: compiling a ResNet-50 again takes 0.9 s of this process."""


class Tunable(Protocol):
    """Interface of what is tuned."""

    def renew(self) -> None:
        """Take the schedules that are on record now."""


def tune_beside(tunable: Tunable, network: CpuNetwork, records: str) -> None:
    """Have a network tuned in a process of its own, when those before it are, as long as the tunable is there.

    The kernels of the network are those that the tunable runs.
    """
    job = TuningJob.of(network, records, TRIALS * len(network.workloads), PAUSE_S)
    _waiting(os.getpid()).put((weakref.ref(tunable), job))


@cache
def _waiting(process: int) -> queue.SimpleQueue[tuple[weakref.ref[Tunable], TuningJob]]:
    """The jobs to come of a process, for a thread that sees to them, which a forked child has to start anew."""
    waiting: queue.SimpleQueue[tuple[weakref.ref[Tunable], TuningJob]] = queue.SimpleQueue()
    threading.Thread(target=_serve, args=(waiting,), name="tuning", daemon=True).start()
    return waiting


def _serve(waiting: queue.SimpleQueue[tuple[weakref.ref[Tunable], TuningJob]]) -> None:
    while True:
        tunable, job = waiting.get()
        if tunable() is None:
            continue
        try:
            process = TuningProcess(job)
        except OSError as error:
            warnings.warn(f"no process can be started to tune in: {error}", RuntimeWarning, stacklevel=1)
            continue
        try:
            while process.wait_for_news(lambda: tunable() is not None):  # noqa: B023
                found = tunable()
                if found is not None:
                    found.renew()
                del found
        finally:
            process.close()
