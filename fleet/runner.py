"""`lw.FleetRunner`: candidates run on the devices under a key of a fleet."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..search.measure import wire
from ..search.measure.local import Runner
from ..search.measure.measurement import MeasureOptions, MeasureTask
from ..search.measure.process import WorkerGone, WorkerStartError
from .link import Job, Link
from .protocol import Answer, FleetError, digest_of, order, pack_task, require_key
from .security import security_of

_AHEAD = 2
"""Jobs at each device, of which one runs: a job of 50 ms leaves none idle while its answer travels."""


@dataclass(frozen=True)
class _Place:
    """The devices to run on: all that is no term of measuring."""

    key: str
    tracker: str
    priority: int = 0
    tls_dir: str | os.PathLike[str] | None = None


@dataclass(frozen=True, init=False)
class FleetRunner(Runner):
    """Run on the devices registered under `key` at a tracker, `HOST:PORT`, or any Dask scheduler's address.

    The terms of measuring are those of `lw.LocalRunner`; `timeout` counts on the device, without waiting for one.
    Jobs of a higher `priority` run before those of other tuners; of equal ones, each tuner's in turn. `tls_dir` is a
    folder of certificates (`loopwright fleet tracker --tls-dir`). FleetError, where it is used, for a key that
    nobody serves or a tracker that cannot be reached.
    """

    place: _Place = field(default_factory=lambda: _Place("", ""))

    def __init__(
        self,
        key: str,
        tracker: str,
        *,
        priority: int = 0,
        tls_dir: str | os.PathLike[str] | None = None,
        number: int | None = None,
        repeat: int | None = None,
        min_repeat_ms: float | None = None,
        timeout: float | None = None,
        cooldown: float | None = None,
        check_correctness: bool = True,
        flush_bytes: int | None = None,
    ) -> None:
        require_key(key)
        super().__init__(number, repeat, min_repeat_ms, timeout, cooldown, check_correctness, flush_bytes)
        object.__setattr__(self, "place", _Place(key, tracker, int(priority), tls_dir))

    def options(self, base: MeasureOptions) -> MeasureOptions:
        """The options of a measurer that builds here and runs on the fleet at once; the rest is that of `base`."""
        return replace(super().options(base), runners=_Maker(self.place), overlap=True)


@dataclass(frozen=True)
class _Maker:
    """Makes the runners of a measurer."""

    place: _Place

    def __call__(self, options: MeasureOptions, folder: Path, changed: Callable[[], None]) -> FleetRunners:
        return FleetRunners(self.place, options, changed)


class FleetRunners:
    """Runners that each have one job under way somewhere on a fleet."""

    def __init__(self, place: _Place, options: MeasureOptions, changed: Callable[[], None]) -> None:
        self._options = options
        self._link = Link(place.tracker, place.key, security_of(place.tls_dir), place.priority, changed)
        try:
            self._require_backend()
        except BaseException:
            self._link.close()
            raise
        self._task = ""
        self._packed: dict[str, Any] = {}

    def _require_backend(self) -> None:
        for device in self._link.devices:
            if device.backend != self._options.backend:
                ours, theirs = (
                    name.removesuffix(".device").rpartition(".")[2] for name in (self._options.backend, device.backend)
                )
                raise FleetError(
                    f"device '{device.name}' runs kernels for {theirs}, these are for {ours}: lw.request_device("
                    f"{device.key!r}, ...).target says what to tune for"
                )

    @property
    def devices(self) -> int:
        """The number of devices that take jobs."""
        return max(1, len(self._link.active))

    @property
    def width(self) -> int:
        """The number of jobs under way: at each device one that runs, and the next."""
        return _AHEAD * self.devices

    @property
    def builders(self) -> int:
        """The number of candidates that builders of the fleet build at once."""
        return self._link.builders

    def start(self) -> RemoteRunner:
        """Return one more runner."""
        return RemoteRunner(self._link, self._options)

    def start_builder(self) -> RemoteBuilder:
        """Return one more builder."""
        return RemoteBuilder(self._link, self._options)

    def use(self, task: MeasureTask, check: bool) -> wire.Message:
        """Send a task's data to each device that has not had it, once."""
        self._packed = pack_task(task)
        self._task = digest_of(self._packed)
        self._link.upload(self._task, self._packed)
        return {"op": "task", "task": self._task, "check": check, "kept": lambda: self._packed}

    def close(self) -> None:
        """Take back what is under way."""
        self._link.close()


class _RemoteWorker:
    """One job on a fleet at a time; who does it there minds how long it takes."""

    role: str

    def __init__(self, link: Link, options: MeasureOptions) -> None:
        self._link, self._options = link, options
        self.ready = False
        self.job: int | None = None
        self.jobs_done = self.task_number = 0
        self.deadline_s = self.timeout_s = float("inf")
        self.started_s = time.monotonic()
        self._task: wire.Message = {}
        self._on_its_way: Job | None = None
        self._answers: deque[tuple[wire.Message, bytes] | Exception] = deque()
        self._lock = threading.Lock()
        try:
            self._bell: int = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # rings: the first answer is a greeting
        except OSError as error:
            raise WorkerStartError(f"a {self.role} on the fleet cannot start: {error.strerror}") from error
        self._answers.append((self._hello(), b""))

    def _hello(self) -> wire.Message:
        return {"op": "hello"}

    def _submit(self, job: Job) -> None:
        self._on_its_way = job
        self._link.submit(job)

    @property
    def idle(self) -> bool:
        """True where it can be given a job."""
        return self.ready and self.job is None

    @property
    def killed_from_outside(self) -> bool:
        """True: it has gone only where the fleet's builders have, which is no candidate's doing."""
        return True

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._bell

    def begin(self, job: int, timeout_s: float) -> None:
        """Count the job that was sent as begun."""
        self.job, self.started_s = job, time.monotonic()

    def _done(self, answer: tuple[wire.Message, bytes] | Exception) -> None:
        """Take in an answer, in whatever thread it comes."""
        with self._lock:
            if self._bell < 0:
                return
            self._answers.append(answer)
            os.eventfd_write(self._bell, 1)

    def receive(self) -> list[tuple[wire.Message, bytes]]:
        """Return the answers that have come; FleetError where none ever will, WorkerGone where nobody is left."""
        with self._lock:
            try:
                os.eventfd_read(self._bell)
            except BlockingIOError:
                return []
            found = list(self._answers)
            self._answers.clear()
        for answer in found:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in found if not isinstance(answer, Exception)]

    def let_go(self) -> None:
        """Take back its job."""
        if self._on_its_way is not None:
            self._link.forget(self._on_its_way)
            self._on_its_way = None

    def kill(self) -> None:
        """Take back its job, and close its descriptor; harmless when repeated."""
        self.let_go()
        with self._lock:
            if self._bell >= 0:
                os.close(self._bell)
                self._bell = -1

    def exit_reason(self) -> str:
        """Return how it ended."""
        return "it was let go"


class RemoteRunner(_RemoteWorker):
    """A runner to the measurer, on one of the devices."""

    role = "runner"

    def _hello(self) -> wire.Message:
        return {"op": "hello", "device": self._link.devices[0].device}

    def send(self, message: wire.Message, blob: bytes = b"") -> None:
        """Take over a task, or have a job run somewhere."""
        if message["op"] == "task":
            self._task = message
            return
        wanted = order(
            "run",
            task=self._task["task"],
            artifact=blob,
            timing=message["timing"],
            best_s=message["best_s"],
            check=self._task["check"],
            timeout_s=self.timeout_s,
            threads=self._options.threads,
        )
        number = message["id"]

        def done(answer: Answer | FleetError) -> None:
            self._done(answer if isinstance(answer, FleetError) else (_as_message(number, answer), b""))

        self._submit(Job(wanted, done, alone=message["alone"], data=self._task["kept"]))


class RemoteBuilder(_RemoteWorker):
    """A builder to the measurer, on one of the machines that build for others."""

    role = "builder"

    def send(self, message: wire.Message, blob: bytes = b"") -> None:
        """Take over a task, or have a candidate built somewhere."""
        if message["op"] == "task":
            self._task = message
            return
        wanted = order(
            "build",
            backend=self._options.backend,
            versions=dict(self._task["versions"]),
            workload=self._task["workload"],
            schedule=message["schedule"],
            timeout_s=self.timeout_s,
        )
        number = message["id"]

        def done(answer: Answer | FleetError) -> None:
            if isinstance(answer, FleetError) or answer["status"] == "gone":
                self._done(answer if isinstance(answer, FleetError) else WorkerGone())
            else:
                self._done(({**answer, "op": "built", "id": number}, answer.get("blob", b"")))

        self._submit(Job(wanted, done, builds=True))


def _as_message(number: int, answer: Mapping[str, Any]) -> wire.Message:
    """A device's answer as a runner process would give it."""
    return {
        "op": "ran",
        "id": number,
        "code": answer["code"],
        "message": answer["message"],
        "seconds": answer["seconds"],
        "times_s": answer.get("times_s", ()),
        "stopped_early": answer.get("stopped_early", False),
        "fleet": answer.get("fleet", {}),
    }
