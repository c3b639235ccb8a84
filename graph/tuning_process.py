"""A process that tunes a network's kernels for the one that starts it (`python -m ...tuning_process DESCRIPTOR`)."""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from xdsl.parser import Parser

from ..backends.context import create_context
from ..dialects.target import target_of
from ..search.measure import wire
from ..search.measure.backend_api import backend_path, load_backend
from ..search.measure.spawn import spawn
from ..search.records.file import Record
from ..search.task import SearchTask
from ..search.tune.options import TuningOptions
from ..search.tune.scheduler import TaskScheduler
from ..search.tune.state import SchedulerState
from .builders import Job, build_all
from .chosen_schedules import KnownSchedules
from .export import CpuNetwork
from .tasks import has_reduction

_LOOK_EVERY_S = 0.5
"""Seconds between two looks at whether the process that started this one is still there. A choice."""
_NICE = 10
"""Added to the priority, so that what runs beside goes first. A choice: half of what there is."""
_END_WITHIN_S = 20.0
"""Seconds until a process that was told to end is killed: its workers end by themselves then. A choice."""
_GAIN = 0.98
"""Kernels are told of again when the network takes less than this part of its time when they were told of last. A
choice: what a repeat tells from noise."""


@dataclass(frozen=True)
class TunedKernel:
    """A kernel to tune: te-level IR text with its target, and how often a run of the network runs it."""

    workload: str
    weight: int


@dataclass(frozen=True)
class TuningJob:
    """Kernels to tune until the file `records` holds so many `trials`; at least `pause_s` lie between two news."""

    kernels: tuple[TunedKernel, ...]
    records: str
    trials: int
    pause_s: float

    @staticmethod
    def of(network: CpuNetwork, records: str, trials: int, pause_s: float) -> TuningJob:
        """Return the job of tuning the kernels of a network."""
        runs = Counter(step.kernel for step in network.plan.steps)
        kernels = tuple(TunedKernel(workload, runs[number]) for number, workload in enumerate(network.workloads))
        return TuningJob(kernels, records, trials, pause_s)

    @staticmethod
    def from_message(message: wire.Message) -> TuningJob:
        """Read a job that came over a socket from this very version."""
        return TuningJob(**{**message, "kernels": tuple(TunedKernel(**each) for each in message["kernels"])})


class TuningProcess:
    """The side that asks for tuning; OSError where the process cannot start."""

    def __init__(self, job: TuningJob) -> None:
        self._socket, theirs = socket.socketpair()
        self._decoder = wire.Decoder()
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with theirs:
            self._process = spawn(__name__, [], theirs, {}, **quiet)
        self._socket.sendall(wire.encode(asdict(job)))

    @property
    def number(self) -> int:
        """The process's number."""
        return self._process.pid

    def wait_for_news(self, wanted: Callable[[], bool]) -> bool:
        """Wait until better schedules are in the records; False where there will be none, or none are `wanted`."""
        while wanted():
            if not select.select([self._socket], [], [], _LOOK_EVERY_S)[0]:
                continue
            try:
                return wire.receive(self._socket, self._decoder) is not None
            except OSError:
                return False
        return False

    def close(self) -> None:
        """End the process and all that it started."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _News:
    """Tells the other side of better schedules, when their kernels are in the cache of compiled ones."""

    def __init__(self, connection: socket.socket, job: TuningJob, tasks: Sequence[SearchTask]) -> None:
        self._connection, self._job, self._tasks = connection, job, tasks
        self._told_s = time.monotonic()
        self._latency_s = math.inf
        self._any = False

    def __call__(self, state: SchedulerState, record: Record) -> None:
        """Note a trial."""
        self._any = True
        if time.monotonic() - self._told_s >= self._job.pause_s:
            self.tell(state.latency_s)

    def tell(self, latency_s: float) -> None:
        """Tell of what there is now, where it is better than what was told last."""
        if not self._any or not latency_s < _GAIN * self._latency_s:
            return
        self._build()
        self._connection.sendall(wire.encode({"latency_s": latency_s}))
        self._told_s, self._latency_s = time.monotonic(), latency_s

    def _build(self) -> None:
        target = self._tasks[0].target
        backend = backend_path(target.kind)
        known = KnownSchedules(self._job.records, load_backend(backend).versions(), target)
        found = zip(self._job.kernels, self._tasks, map(known.best, self._tasks), strict=True)
        build_all(backend, [Job(t.name, k.workload, best.schedule) for k, t, best in found if best is not None], 1)


def tune(job: TuningJob, connection: socket.socket) -> None:
    """Tune the kernels that have a reduction, and tell the other side of what is found."""
    tasks = [_task(kernel) for kernel in job.kernels]
    searched = [(task, kernel) for task, kernel in zip(tasks, job.kernels, strict=True) if has_reduction(task)]
    if not searched:
        return
    job = replace(job, kernels=tuple(kernel for _, kernel in searched))
    tasks = [task for task, _ in searched]
    news = _News(connection, job, tasks)
    scheduler = TaskScheduler(tasks, [kernel.weight for kernel in job.kernels], job.records, callbacks=[news])
    measure = replace(tasks[0].measure_options(), builders=1)
    result = scheduler.tune(TuningOptions(num_measure_trials=job.trials, progress=False), measure)
    news.tell(result.latency_s)


def _task(kernel: TunedKernel) -> SearchTask:
    module = Parser(create_context(), kernel.workload).parse_module()
    return SearchTask(module, target=target_of(module))


def _end_with(connection: socket.socket, parent: int) -> None:
    """End this process, in order, when the one that started it has gone or closes the connection.

    Other children of that process may hold the other end of the connection: its number tells then.
    """
    while os.getppid() == parent:
        if select.select([connection], [], [], _LOOK_EVERY_S)[0]:
            break  # nothing is said after the job: this is the end
    os.kill(os.getpid(), signal.SIGTERM)


def main(descriptor: int) -> None:
    """Tune what the other side asks for, and end, at the latest when the other side does."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection, decoder = socket.socket(fileno=descriptor), wire.Decoder()
    received = wire.receive(connection, decoder)
    if received is None:
        return
    os.nice(_NICE)
    threading.Thread(target=_end_with, args=(connection, parent), daemon=True).start()
    job = TuningJob.from_message(received[0])
    Path(job.records).parent.mkdir(parents=True, exist_ok=True)
    tune(job, connection)


if __name__ == "__main__":
    main(int(sys.argv[1]))
