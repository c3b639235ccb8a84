"""Measuring candidates in separate processes: builders compile, runners check and time."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from ..records.file import ErrorCode
from . import wire
from .jobs import Job, Jobs
from .measurement import MeasureError as MeasureError
from .measurement import Measurement as Measurement
from .measurement import MeasureOptions as MeasureOptions
from .measurement import MeasureTask as MeasureTask
from .measurement import PreflightError as PreflightError
from .measurement import headline as headline
from .measurement import what_is_wrong
from .process import WorkerGone, WorkerProcess, WorkerStartError
from .runners import LocalBuilders, LocalRunners, Runners, Worker, builds_elsewhere
from .scratch import Scratch, ScratchError
from .task_orders import TaskOrders
from .termination import OrderlyEnd
from .timing import ONCE, TimingSettings
from .wire import GarbledError

_MOST_KILLED_STARTS, _MOST_LATE_STARTS = 10, 3
"""In a row: what kills workers may go on for a while, and lateness costs a minute each."""


class Measurer:
    """Builder processes and runners, fed one candidate after another.

    Use as a context manager: on leaving, whatever the reason, no process and no file stays behind. SIGTERM is a reason
    too, where the program does not handle it: it then ends as it would have, after that. Not for several threads. Where
    builds and runs overlap, a thread of its own hands out work while the caller thinks.
    """

    def __init__(self, options: MeasureOptions) -> None:
        self.options = options
        self.meanwhile: Callable[[], object] | None = None
        """Called once, while the processes start; what it raises ends them."""
        self.device = ""
        self.versions: dict[str, str] = {}
        self.building_s = self.running_s = 0.0
        self._tasks = TaskOrders()
        self._runners: Runners | None = None
        self._builders: LocalBuilders | None = None
        self._jobs = Jobs()
        self._workers: list[Worker] = []
        self._changed = threading.Condition()
        """Held by who looks at or changes what is to do and what is done."""
        self._thread: threading.Thread | None = None
        self._ending = False
        self._failure: BaseException | None = None
        self._bell: socket.socket | None = None
        self._clapper: socket.socket | None = None
        self._selector: selectors.BaseSelector | None = None
        self._scratch: Scratch | None = None
        self._orderly_end = OrderlyEnd()
        self._process = self._failed_starts = 0

    def __enter__(self) -> Measurer:
        self._orderly_end.begin()
        self._process, self._ending, self._failure = os.getpid(), False, None
        try:
            for role in self._open():
                self._start(role)
            if self.options.overlap:
                self._thread = threading.Thread(target=self._serve, name="measurer", daemon=True)
                self._thread.start()
            if self.options.preflight is not None:
                self._submit_preflight(*self.options.preflight())
            if self.meanwhile is not None:
                self.meanwhile()
            with self._changed:
                while self._are_starting:
                    self._advance()
            self._check_preflight()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def _open(self) -> Sequence[str]:
        """Open what processes are started and talked to by; return the roles of those that are to be started."""
        try:
            self._scratch = Scratch()
            self._selector = selectors.DefaultSelector()
            self._bell, self._clapper = socket.socketpair()
        except (OSError, ScratchError) as error:
            why = (isinstance(error, OSError) and error.strerror) or error
            raise MeasureError(f"measuring cannot begin: {why}") from error
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        make, path = self.options.runners, self._scratch.path
        self._builders = LocalBuilders(self.options, path)
        self._runners = LocalRunners(self.options, path) if make is None else make(self.options, path, self._ring)
        return ["runner"] * self._runners_wanted + ["builder"] * self._builders.count

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._orderly_end.end_with(value)

    def _submit_preflight(self, task: MeasureTask, schedule: str) -> None:
        """Have a tiny task measured once, as soon as a builder and a runner are there."""
        self._use(task)
        with self._changed:
            self._jobs.submit([schedule], True, 1, ONCE, self._tasks.number)
        self._ring()

    def _check_preflight(self) -> None:
        """Take its result; PreflightError with a sentence if that did not work."""
        for found in self.results():
            if not found.ok:
                raise PreflightError(what_is_wrong(found, self.options.backend, self.device))
        self.building_s = self.running_s = 0.0
        self._tasks.task = None

    def close(self) -> None:
        """End every worker and remove all files; harmless when repeated, and in a forked child, whose they are not."""
        if os.getpid() != self._process:
            return
        if self._thread is not None:
            self._ending = True
            self._ring()
            self._thread.join()
            self._thread = None
        for worker in self._workers:
            worker.let_go()
        for worker in self._workers:
            worker.kill()
        self._workers.clear()
        for end in (self._runners, self._builders, self._selector, self._bell, self._clapper):
            if end is not None:
                end.close()
        self._selector = None
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def use(self, task: MeasureTask) -> None:
        """Take over `task` for what is submitted from now on; nothing may be pending."""
        if self._scratch is None or self._runners is None:
            raise ValueError("the measurer is not running: use it in a `with` statement")
        if self.pending:
            raise ValueError(f"the task cannot change while {self.pending} candidate(s) are pending")
        with self._changed:
            if not self._tasks.is_ahead(task.workload):
                self._jobs.forget_ahead()
            self._use(task)
            self._tasks.forget_ahead()

    def _use(self, task: MeasureTask) -> None:
        assert self._runners is not None
        self._tasks.use(task, self._runners.use(task, self.options.check))
        self._jobs.forget()

    def begin(self, workload: str, schedules: Sequence[str]) -> bool:
        """Build candidates of the task that will be used first while other workers start, until they are submitted.

        To be called by `meanwhile`. Waits while builders have enough of them for now; False where all workers are there
        then. Nothing of it where builds and runs take turns.
        """
        with self._changed:
            if self.options.overlap:
                self._jobs.begin(schedules, self._tasks.begin(workload))
                self._ring()
                while self._is_opening and self._jobs.are_enough_for(self.builders):
                    self._advance()
            return self._is_opening

    @property
    def best_s(self) -> float | None:
        """Seconds per run of the fastest candidate of the task; those that are clearly slower are stopped early."""
        return self._jobs.best_s

    @best_s.setter
    def best_s(self, best_s: float | None) -> None:
        self._jobs.best_s = best_s

    @property
    def pending(self) -> int:
        """Number of candidates submitted and not yet given back."""
        with self._changed:
            return len(self._jobs) + len(self._jobs.done)

    @property
    def built(self) -> int:
        """Number of these that wait for a device."""
        return self._jobs.waiting_for_device

    @property
    def devices(self) -> int:
        """Number of devices that run candidates at once."""
        return 1 if self._runners is None else self._runners.devices

    @property
    def _are_starting(self) -> bool:
        return not all(worker.ready for worker in self._workers)

    @property
    def _is_opening(self) -> bool:
        return self._are_starting or bool(self._jobs)

    @property
    def builders(self) -> int:
        """Number of builders that are there."""
        return sum(worker.role == "builder" for worker in self._workers)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are processes of this machine."""
        return [worker.pid for worker in self._workers if isinstance(worker, WorkerProcess)]

    def remember(self, known: Measurement) -> None:
        """Reuse `known` (from an earlier search, on this device) for candidates that compile to its artifact."""
        self._jobs.remember(known)

    def submit(self, schedules: Sequence[str], fresh: bool = False, laps: int = 1) -> list[int]:
        """Queue schedules of the current task and return their job numbers.

        Candidates that compile to a known artifact get its result without running, and clearly slow ones are not
        timed to the end, unless `fresh`. With several `laps`, candidates are timed in turn, one repeat a lap.
        """
        self._tasks.require_task()
        with self._changed:
            numbers = self._jobs.submit(schedules, fresh, laps, None, self._tasks.number)
        self._ring()
        return numbers

    def run(self, artifact: bytes, timing: TimingSettings, best_s: float | None) -> Measurement:
        """Check and time what a builder made elsewhere, where nothing else is pending; see `submit` for `best_s`."""
        self._tasks.require_task()
        self.best_s = best_s
        with self._changed:
            self._jobs.submit_built(artifact, timing, self._tasks.number)
        self._ring()
        (found,) = self.results()
        return found

    def withdraw(self, keep: int = 0) -> None:
        """Begin nothing more of what is pending, but the `keep` candidates that were submitted first, nor build ahead.

        What a worker is at goes on, but a build is not followed by a run. A candidate whose repeats are timed in turn
        ends with those that it has; one that has not run gives no result.
        """
        with self._changed:
            self._jobs.forget_ahead()
            self._jobs.withdraw(keep, {worker.job: worker.role for worker in self._workers})

    def results(self, meanwhile: Callable[[], object] | None = None) -> Iterator[Measurement]:
        """Yield measurements as they finish, until nothing is pending; more may be submitted meanwhile.

        `meanwhile` is called before each wait for a worker, and may withdraw what is pending.
        """
        while self.pending:
            if (found := self._next(meanwhile)) is not None:
                yield found

    def measure(self, schedules: Sequence[str], fresh: bool = False, laps: int = 1) -> list[Measurement]:
        """Submit schedules and return their measurements in the same order."""
        numbers = self.submit(schedules, fresh, laps)
        found = {measurement.job: measurement for measurement in self.results()}
        return [found[number] for number in numbers]

    def _next(self, meanwhile: Callable[[], object] | None) -> Measurement | None:
        """Return the next result, waiting for it; None where all that was pending has been withdrawn."""
        with self._changed:
            while not self._jobs.done:
                if meanwhile is not None:
                    meanwhile()
                if self._jobs.done:
                    break
                if not self._jobs:
                    return None
                self._advance()
            return self._jobs.done.popleft()

    def _advance(self) -> None:
        """Take a step, or wait until the thread that takes them has taken one."""
        if self._thread is None:
            self._step()
        elif self._failure is not None:
            raise self._failure
        else:
            self._changed.wait()

    def _serve(self) -> None:
        """Body of the thread: hand out work and take in answers until the end, or until measuring cannot go on."""
        try:
            while not self._ending:
                self._step()
        except BaseException as error:  # it belongs to the caller, who waits
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _ring(self) -> None:
        """Make the thread look at what is to do."""
        if self._thread is not None and self._clapper is not None:
            self._clapper.send(b"!")

    def _step(self) -> None:
        """Hand out work, wait until a worker answers or is late, and take in what happened."""
        assert self._selector is not None, "the measurer is not running"
        with self._changed:
            done = len(self._jobs.done)
            self._dispatch()
            self._changed.notify_all()
            if len(self._jobs.done) > done and self._thread is None:
                return
        busy = {worker.role for worker in self._workers if worker.job is not None}
        start_s = time.monotonic()
        soonest_s = min(worker.deadline_s for worker in self._workers)
        assert self._thread or busy or self._are_starting, "nothing is under way, so nothing would ever be reported"
        wait_s = None if soonest_s == float("inf") else max(0.0, soonest_s - start_s)
        # A process that was stopped beyond a deadline is told of nothing, whatever came meanwhile (epoll, after EINTR).
        events = self._selector.select(wait_s) or self._selector.select(0)
        now_s = time.monotonic()
        with self._changed:
            self.building_s += now_s - start_s if "builder" in busy else 0.0
            self.running_s += now_s - start_s if "runner" in busy else 0.0
            self._take_in([key.data for key, _ in events], now_s)
            self._changed.notify_all()

    def _take_in(self, ready: Sequence[Worker | None], now_s: float) -> None:
        for worker in ready:
            if worker is None and self._bell is not None:
                self._bell.recv(4096)
            elif worker is not None and worker in self._workers:
                self._receive(worker)
        for worker in list(self._workers):
            if worker.deadline_s <= now_s and worker in self._workers:
                self._expired(worker)

    def _dispatch(self) -> None:
        assert self._runners is not None
        for worker in list(self._workers):
            if worker.idle and worker.jobs_done >= self.options.recycle_after:
                self._restart(worker)
        for _ in range(self._runners_wanted - sum(worker.role == "runner" for worker in self._workers)):
            self._start("runner")
        for _ in range(self._builders_elsewhere - sum(builds_elsewhere(worker) for worker in self._workers)):
            self._add(self._runners.start_builder())
        overlap = self.options.overlap
        running = any(w.role == "runner" and w.job is not None for w in self._workers)
        for worker in [w for w in self._workers if w.role == "builder" and w.idle]:
            if self._jobs.waiting_for_builder and (overlap or not running):
                new = self._jobs.next_to_build()
                self._give(worker, new, new.build_order(), self.options.build_timeout_s)
        building = any(w.role == "builder" and w.job is not None for w in self._workers)
        for worker in [w for w in self._workers if w.role == "runner" and w.idle]:
            may_run = overlap or not (building or self._jobs.waiting_for_builder)
            if may_run and (job := self._jobs.next_to_run()) is not None:
                order = job.run_order(self.options.timing, self.best_s)
                self._give(worker, job, order, self.options.run_timeout_s, job.blob)

    def _give(self, worker: Worker, job: Job, order: wire.Message, timeout_s: float, blob: bytes = b"") -> None:
        worker.timeout_s = timeout_s
        try:
            if worker.task_number != job.task:
                worker.send(self._tasks.message(worker.role, job.task, self.versions))
                worker.task_number = job.task
                timeout_s += self.options.start_timeout_s  # until it says that it has taken the task over
            worker.send(order, blob)
        except WorkerGone:  # it ended while it was idle, which is not this candidate's doing
            self._again(worker, job)
            return
        worker.begin(job.number, timeout_s)

    def _again(self, worker: Worker, job: Job) -> None:
        """Restart a worker, and give the job that it did not do to the next."""
        self._jobs.again(job, worker.role)
        self._restart(worker)

    def _receive(self, worker: Worker) -> None:
        try:
            messages = worker.receive()
        except WorkerGone:
            self._gone(worker)
            return
        except GarbledError as error:
            self._garbled(worker, str(error))
            return
        for message, blob in messages:
            if worker not in self._workers:
                return
            if message.get("op") == "failed":
                raise WorkerStartError(f"the {worker.role} process cannot start: {message['message']}")
            if message.get("op") == "hello":
                worker.ready, worker.deadline_s = True, float("inf")
                self._failed_starts = 0
                self.versions = dict(message.get("versions", self.versions))
                self.device = message.get("device", self.device)
            elif message.get("op") == "refused":
                raise MeasureError(f"the {worker.role} process cannot take over the task: {message['message']}")
            elif message.get("op") == "taken":
                worker.started_s = time.monotonic()
                worker.deadline_s = worker.started_s + worker.timeout_s
            else:
                self._answered(worker, message, blob)

    def _answered(self, worker: Worker, message: wire.Message, blob: bytes) -> None:
        if message["id"] != worker.job:
            return  # from a copy of the process that a candidate made
        job = self._jobs[message["id"]]
        worker.job, worker.deadline_s = None, float("inf")
        worker.jobs_done += 1
        error = ErrorCode(message["code"])
        job.spent(worker.role, message["seconds"])
        if worker.role == "builder":
            job.made(message, blob)
        if message.get("tainted") or error is ErrorCode.DEVICE_LOST:
            self._restart(worker)
        if error is not ErrorCode.OK:
            job.fleet = message.get("fleet", {})
            self._jobs.finish(job, error, message["message"])
        elif worker.role == "builder":
            self._jobs.built(job)
        else:
            self._jobs.ran(job, message["times_s"], message["stopped_early"], message.get("fleet", {}))

    def _gone(self, worker: Worker) -> None:
        """Record the crash of a worker as its candidate's, and start another."""
        how = worker.exit_reason()
        if not worker.ready:
            self._failed_starts += 1
            if not worker.killed_from_outside or self._failed_starts >= _MOST_KILLED_STARTS:
                raise WorkerStartError(f"the {worker.role} process cannot start: {how}")
        if worker.job is not None:
            job, builds = self._jobs[worker.job], worker.role == "builder"
            if worker.killed_from_outside and not job.retried:  # out of memory, or somebody: not surely its doing
                job.retried = True
                self._again(worker, job)
                return
            error = ErrorCode.COMPILE_ERROR if builds else ErrorCode.RUNTIME_ERROR
            self._fail_in(worker, error, f"the process died while {'building' if builds else 'running'}: {how}")
        self._restart(worker)

    def _garbled(self, worker: Worker, what: str) -> None:
        """Record that something else than the worker wrote to its socket as its candidate's doing, and replace it."""
        if worker.job is not None:
            error = ErrorCode.COMPILE_ERROR if worker.role == "builder" else ErrorCode.RUNTIME_ERROR
            self._fail_in(worker, error, f"the process answered with what is no message: {what}")
        self._restart(worker)

    def _expired(self, worker: Worker) -> None:
        """Record a deadline missed as its candidate's, and replace the worker."""
        if not worker.ready:
            self._failed_starts += 1
            if not (self.device or self.versions) or self._failed_starts >= _MOST_LATE_STARTS:
                late = f"within {self.options.start_timeout_s:g} s: {worker.exit_reason()}"
                raise WorkerStartError(f"the {worker.role} process did not start {late}")
        else:
            builds = worker.role == "builder"
            error = ErrorCode.COMPILE_TIMEOUT if builds else ErrorCode.RUN_TIMEOUT
            what = "building" if builds else "running"
            self._fail_in(worker, error, f"{what} took longer than {worker.timeout_s:g} s")
        self._restart(worker)

    def _fail_in(self, worker: Worker, error: ErrorCode, message: str) -> None:
        assert worker.job is not None
        job = self._jobs[worker.job]
        job.spent(worker.role, time.monotonic() - worker.started_s)
        self._jobs.finish(job, error, message)

    def _restart(self, worker: Worker) -> None:
        assert self._selector is not None
        self._selector.unregister(worker)
        self._workers.remove(worker)
        worker.kill()
        if not builds_elsewhere(worker):
            self._start(worker.role)

    @property
    def _builders_elsewhere(self) -> int:
        """Builders on a fleet: none until one of this machine has said by which versions it builds."""
        return 0 if self._runners is None or not self.versions else self._runners.builders

    @property
    def _runners_wanted(self) -> int:
        return 1 if self._runners is None else self._runners.width

    def _start(self, role: str) -> None:
        assert self._runners is not None and self._builders is not None
        self._add(self._runners.start() if role == "runner" else self._builders.start())

    def _add(self, worker: Worker) -> None:
        assert self._selector is not None
        self._workers.append(worker)
        self._selector.register(worker, selectors.EVENT_READ, worker)
