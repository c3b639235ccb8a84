"""Requests to the measurer and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from ...dialects.errors import Error
from ..records.file import ErrorCode
from .timing import TimingSettings
from .tolerance import Tolerance


class MeasureError(Error):
    """Measuring cannot go on, whatever the candidate."""


class PreflightError(MeasureError):
    """Not even a tiny kernel runs on the target; the text says what is wrong."""


@dataclass(frozen=True)
class MeasureOptions:
    """Options of measuring. `backend` is a module path; `env` goes to workers, `threads` to their OpenMP runtimes.

    `runners` makes what runs candidates (`runners.Runners`), where that is not one process on this machine: from the
    options, a folder for files, and a function to be called when its `width` or `builders` has changed.
    With `overlap`, builds and runs go on at the same time; on a CPU target they would disturb each other's clock.
    Without `check` any output passes. `preflight` gives a tiny task and its schedule, which are measured first of all:
    PreflightError if that fails.
    """

    backend: str
    builders: int | None = None  # None: one for each core that this process may use
    overlap: bool = False
    build_timeout_s: float = 30.0
    run_timeout_s: float = 10.0
    start_timeout_s: float = 60.0
    timing: TimingSettings = field(default_factory=TimingSettings)
    check: bool = True
    threads: int | None = None
    build_nice: int = 0
    recycle_after: int = 1000
    env: Mapping[str, str] = field(default_factory=dict)
    runners: Callable[[MeasureOptions, Path, Callable[[], None]], Any] | None = field(default=None, repr=False)
    preflight: Callable[[], tuple[MeasureTask, str]] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class MeasureTask:
    """A workload's IR text, data for it, and the right outputs, each to be met within its tolerance."""

    workload: str
    inputs: Sequence[npt.NDArray[Any]]
    expected: Sequence[npt.NDArray[Any]]
    tolerances: Sequence[Tolerance]


@dataclass(frozen=True)
class Measurement:
    """The result of one candidate: an error, or `times_s`, seconds per run, one number a repeat.

    Of one `stopped_early` they are of fewer repeats or of probes, and so less exact. One `reused` compiled to the
    artifact of an earlier candidate, and has its result. `resources` are what each launch takes on a GPU. `fleet` is
    the `device` of a fleet that ran it, and when it `started` and `ended`, in seconds since 1970.
    """

    job: int
    schedule: str
    error: ErrorCode
    message: str = ""
    times_s: tuple[float, ...] = ()
    build_s: float = 0.0
    run_s: float = 0.0
    artifact: str = ""
    stopped_early: bool = False
    reused: bool = False
    resources: tuple[Mapping[str, Any], ...] = ()
    fleet: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True where it ran and was right."""
        return self.error is ErrorCode.OK


class Measuring(Protocol):
    """Interface of a measurer to a search; see `Measurer`."""

    best_s: float | None

    @property
    def options(self) -> MeasureOptions: ...

    @property
    def device(self) -> str: ...

    @property
    def versions(self) -> Mapping[str, str]: ...

    @property
    def building_s(self) -> float: ...

    @property
    def running_s(self) -> float: ...

    @property
    def pending(self) -> int: ...

    @property
    def built(self) -> int: ...

    @property
    def devices(self) -> int: ...

    @property
    def builders(self) -> int: ...

    def use(self, task: MeasureTask) -> None: ...

    def remember(self, known: Measurement) -> None: ...

    def submit(self, schedules: Sequence[str], fresh: bool = False, laps: int = 1) -> list[int]: ...

    def withdraw(self, keep: int = 0) -> None: ...

    def results(self, meanwhile: Callable[[], object] | None = None) -> Iterator[Measurement]: ...


def headline(text: str) -> str:
    """The line of an error's text that says most: the first, with the last one of a traceback that begins in it."""
    lines = text.strip().splitlines() or [""]
    before, traceback, _ = lines[0].partition("Traceback (most recent call last)")
    return before + lines[-1] if traceback else lines[0]


def what_is_wrong(found: Measurement, backend: str, device: str) -> str:
    """Say of a tiny kernel's failure what does not work on a backend's target."""
    target = backend.split(".")[-2] if backend.count(".") > 1 else backend
    what = {
        ErrorCode.INSTANTIATION_ERROR: f"no kernel can be scheduled for {target}",
        ErrorCode.COMPILE_ERROR: f"kernels for {target} do not compile",
        ErrorCode.COMPILE_TIMEOUT: f"kernels for {target} do not compile in time",
        ErrorCode.WRONG_RESULT: f"a kernel that adds 1 gives something else on {device}",
    }.get(found.error, f"kernels for {target} compile, but do not run on {device}")
    return f"{what}: {headline(found.message)} (`loopwright doctor` looks at each target)"
