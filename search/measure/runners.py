"""The interface of what runs candidates to the measurer, and the usual one: one process on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Protocol

import numpy as np

from . import wire
from .backend_api import backend_path
from .measurement import MeasureError, MeasureOptions, MeasureTask
from .nursery import Nursery
from .process import Starter, WorkerProcess, WorkerStartError
from .tolerance import ANYTHING

_FORKED = (backend_path("llvm"), backend_path("cuda"))
"""Backends whose builders are forked: what these import starts no thread, where an OpenCL driver has some."""
_WORKER = f"{__package__}.worker"


class Worker(Protocol):
    """One that builds or runs, a job at a time; `deadline_s` is on the clock `time.monotonic`, infinity for none.

    It answers with messages as `worker.py` does. `job` is the number of the one that it is at.
    """

    role: str
    ready: bool
    job: int | None
    jobs_done: int
    task_number: int
    deadline_s: float
    timeout_s: float
    started_s: float

    @property
    def idle(self) -> bool: ...

    @property
    def killed_from_outside(self) -> bool: ...

    def fileno(self) -> int:
        """Return the descriptor that can be read from once there is an answer."""

    def send(self, message: wire.Message, blob: bytes = b"") -> None:
        """Send one message; raises WorkerGone when it is not taken."""

    def begin(self, job: int, timeout_s: float) -> None:
        """Count the job that was sent as begun, to be answered within `timeout_s` seconds."""

    def receive(self) -> list[tuple[wire.Message, bytes]]:
        """Return the messages that have arrived; raises WorkerGone where no more will, GarbledError for no message."""

    def let_go(self) -> None:
        """Begin to end it, without waiting."""

    def kill(self) -> None:
        """End it, and release what it held; harmless when repeated."""

    def exit_reason(self) -> str:
        """Return how one that has gone ended."""


class Runners(Protocol):
    """Runners of a measurer's candidates."""

    @property
    def devices(self) -> int:
        """The number of devices that run at once."""

    @property
    def width(self) -> int:
        """The number of jobs that may be under way at once."""

    @property
    def builders(self) -> int:
        """The number of builders elsewhere, beside those of this machine."""

    def start(self) -> Worker:
        """Start one runner, of `width`; WorkerStartError where it cannot be."""

    def start_builder(self) -> Worker:
        """Start one builder, of `builders`; WorkerStartError where it cannot be."""

    def use(self, task: MeasureTask, check: bool) -> wire.Message:
        """Take over a task; returns the message by which each runner does. Unless `check`, any output is right."""

    def close(self) -> None:
        """Release what all of them shared; harmless when repeated."""


class LocalRunners:
    """A process that holds this machine's device, and reads a task's data from files in `folder`."""

    devices = width = 1
    builders = 0

    def __init__(self, options: MeasureOptions, folder: Path) -> None:
        self._options, self._folder = options, folder
        self._task_number = 0

    def start(self) -> WorkerProcess:
        """Start the process."""
        return start_process("runner", self._options, self._folder)

    def start_builder(self) -> Worker:
        """Refuse: all builders are the measurer's own."""
        raise WorkerStartError("there are no builders elsewhere")

    def use(self, task: MeasureTask, check: bool) -> wire.Message:
        """Write a task's arrays to files, in place of those of the one before; MeasureError where that cannot be."""
        self._task_number += 1
        try:
            paths = self._write_arrays(task)
        except OSError as error:
            raise MeasureError(
                f"the task's data cannot be written to {self._folder.parent}: {error.strerror or error}; "
                "TMPDIR says where temporary files go"
            ) from error
        return {"op": "task", **paths, **rule_of(task, check)}

    def _write_arrays(self, task: MeasureTask) -> dict[str, list[str]]:
        for old in self._folder.glob("*.npy"):  # the runner may still have them mapped: they are not written over
            old.unlink()
        paths: dict[str, list[str]] = {"inputs": [], "expected": []}
        for kind, arrays in (("inputs", task.inputs), ("expected", task.expected)):
            for index, array in enumerate(arrays):
                paths[kind].append(str(self._folder / f"{self._task_number}-{kind}-{index}.npy"))
                np.save(paths[kind][-1], np.ascontiguousarray(array))
        return paths

    def close(self) -> None:
        """Leave the files to who owns the folder."""


class LocalBuilders:
    """Processes of this machine that build, one a core unless told otherwise; several are forked by a nursery.

    That imports what they all import, where the backend is one of `_FORKED`: another's may have threads by then.
    """

    def __init__(self, options: MeasureOptions, folder: Path) -> None:
        self._options, self._folder = options, folder
        self.count = len(os.sched_getaffinity(0)) if options.builders is None else options.builders
        self._nursery: Nursery | None = None
        if self.count > 1 and options.backend in _FORKED and sys.platform == "linux":
            with contextlib.suppress(OSError):  # starting a builder will say it
                self._nursery = Nursery([_WORKER, options.backend], _environment("builder", options))

    def start(self) -> WorkerProcess:
        """Start one; WorkerStartError where it cannot be."""
        start: Starter | None = None if self._nursery is None else self._nursery.spawn
        return start_process("builder", self._options, self._folder, start)

    def close(self) -> None:
        """End what forks them; harmless when repeated."""
        if self._nursery is not None:
            self._nursery.close()


def rule_of(task: MeasureTask, check: bool) -> wire.Message:
    """The tolerances of a task's outputs, and the element types of its arrays, as a runner is told."""
    tolerances = [each if check else ANYTHING for each in task.tolerances]
    return {"tolerances": tolerances, "dtypes": [array.dtype.name for array in (*task.inputs, *task.expected)]}


def start_process(role: str, options: MeasureOptions, folder: Path, start: Starter | None = None) -> WorkerProcess:
    """Start a builder or runner process, whose files go to `folder`; WorkerStartError where it cannot be."""
    nice = options.build_nice if role == "builder" else 0
    worker = WorkerProcess(role, options.backend, _environment(role, options), nice, str(folder), start=start)
    worker.deadline_s = worker.started_s + options.start_timeout_s
    return worker


def _environment(role: str, options: MeasureOptions) -> dict[str, str]:
    """Return what the environment of a process has beside ours."""
    threads = 1 if role == "builder" else options.threads
    return dict(options.env) | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})


def builds_elsewhere(worker: Worker) -> bool:
    """True for a builder that is no process of this machine."""
    return worker.role == "builder" and not isinstance(worker, WorkerProcess)
