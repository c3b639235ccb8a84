"""A tuner's link to a tracker: jobs out, answers in, across lost devices, lost data and a tracker that restarts."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..search.records.file import ErrorCode
from .address import connect
from .devices import RegisteredBuilder, RegisteredDevice, builders_of, devices_of, serving
from .job import serve
from .protocol import BUILDER_RESOURCE, PROTOCOL, Answer, FleetError, Order, device_resource, key_resource, order

MOST_LOST = 2
"""Times that a job goes elsewhere after its device was lost, before that is its result."""
_LOOK_EVERY_S = 1.0
_NOBODY_S = 45.0
"""Without a device for so long, a search ends; a tracker that restarts, and devices that come back to it, take less."""
_NO_BUILDER_S = 15.0
"""Without a builder for so long, what was sent to one is built on this side; a tracker that restarts takes less."""
_BOUNCED_S = 0.2
"""Before a job is sent again that a device which is set aside gave back."""
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


@dataclass(eq=False)
class Job:
    """An order on its way to an answer; `alone` jobs of a race all go to one device, those that `build` to none."""

    order: Order
    done: Callable[[Answer | FleetError], None]
    alone: bool = False
    builds: bool = False
    held: bool = False
    """True to have the device keep the answer for as long as we live."""
    data: Callable[[], dict[str, Any]] | None = None
    """Data of its task, for a device that does not have it."""
    identity: str = ""
    """Identity of the one device that it is for."""
    losses: int = 0
    avoided: set[str] = field(default_factory=set)
    future: Any = None
    ended: bool = False


class Link:
    """Jobs for devices under a key at a tracker. Answers come in threads of Dask's; close it at the end."""

    def __init__(
        self,
        tracker: str,
        key: str,
        security: Any,
        priority: int = 0,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.tracker, self.key, self._priority, self._changed_devices = tracker, key, priority, changed
        self._client = connect(tracker, security)
        self._changed = threading.Condition()
        self._jobs: set[Job] = set()
        self._later: list[tuple[float, int, Job]] = []
        self._numbers = itertools.count()
        self._race = ""
        self._uploads: list[Any] = []
        self._held: list[Job] = []
        self._has: set[tuple[str, str]] = set()
        self._failure: FleetError | None = None
        self._closed = False
        self._width_of_builders = 0
        self._served_s = self._built_s = time.monotonic()
        self._builders: Sequence[RegisteredBuilder] = ()
        try:
            self.devices: Sequence[RegisteredDevice] = serving(self._registered(), key, tracker)
        except BaseException:
            self._client.close(timeout=1)
            raise
        self._thread = threading.Thread(target=self._watch, name="fleet", daemon=True)
        self._thread.start()

    def _registered(self) -> list[RegisteredDevice]:
        identity = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=5)
        self._builders = [each for each in builders_of(identity) if each.protocol == PROTOCOL]
        return devices_of(identity)

    @property
    def active(self) -> list[RegisteredDevice]:
        """The devices that take jobs."""
        return [device for device in self.devices if not device.aside]

    @property
    def builders(self) -> int:
        """The number of candidates that builders of the fleet build at once."""
        return sum(each.builders for each in self._builders)

    # -- jobs out -----------------------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Send a job; its `done` is called once, with an answer or with why none will ever come."""
        with self._changed:
            if self._failure is None:
                self._jobs.add(job)
        if self._failure is not None:
            job.done(self._failure)
        else:
            self._send(job)

    def _send(self, job: Job) -> None:
        with self._changed:
            if job.ended or self._closed:
                return
            wanted = self._wanted(job)
            others = [d.address for d in self.active if d.identity not in job.avoided]
            others = others if job.avoided and not job.builds else []
            priority = self._priority
        try:
            job.future = self._submitted(dict(job.order), wanted, priority, others)
            job.future.add_done_callback(lambda future: self._landed(job, future))
            job.order.pop("data", None)  # it was sent: who gets the job next may have it
        except Exception:  # a connection that is being lost
            self._again(job, _BOUNCED_S)

    def _wanted(self, job: Job) -> dict[str, int]:
        """Dask's resources that a job takes."""
        if job.builds:
            return {BUILDER_RESOURCE: 1}
        if job.identity:
            return {device_resource(job.identity): 1}
        return {key_resource(self.key): 1} | ({device_resource(self._one_device()): 1} if job.alone else {})

    def _submitted(self, order: Order, resources: dict[str, int], priority: int, workers: Sequence[str] = ()) -> Any:
        import dask

        where = {"workers": [*workers], "allow_other_workers": True} if workers else {}
        with dask.config.set({_LARGE_GRAPH: "1 GiB"}):
            return self._client.submit(
                serve,
                order,
                key=("loopwright", uuid.uuid4().hex),
                pure=False,
                resources=resources,
                priority=priority,
                **where,
            )

    def _one_device(self) -> str:
        """The identity of the device that races are on: the same as long as it is there."""
        identities = [device.identity for device in (self.active or self.devices)]
        if self._race not in identities and identities:
            self._race = identities[0]
        return self._race

    def upload(self, task: str, data: dict[str, Any]) -> None:
        """Send a task's data to each device that has not had it, ahead of the jobs that follow."""
        for future in self._uploads:
            future.release()
        self._uploads = []
        for device in self.devices:
            if (device.identity, task) not in self._has:
                self._has.add((device.identity, task))
                wanted = {device_resource(device.identity): 1}
                with contextlib.suppress(Exception):  # a device without it says so, and gets it then
                    self._uploads.append(
                        self._submitted(order("task", task=task, data=data), wanted, self._priority + 1)
                    )

    # -- answers in ---------------------------------------------------------------------------------------------------

    def _landed(self, job: Job, future: Any) -> None:
        """Take in how a job came back; called in a thread of Dask's."""
        if future is not job.future or job.ended:
            return
        match future.status:
            case "finished":
                try:
                    answer = future.result(timeout=30)
                except Exception:  # the tracker or the device went before it could be fetched
                    self._again(job, 0.0)
                    return
                self._answered(job, answer)
            case "error":
                self._broken(job, future)
            case _:  # cancelled with the connection: the watch sends it again
                self._again(job, _BOUNCED_S)

    def _answered(self, job: Job, answer: Answer) -> None:
        match answer["status"]:
            case "refused":
                self._end(job, FleetError(answer["message"]))
            case "aside":
                self._again(job, _BOUNCED_S)
            case "needs":
                job.order["data"] = None if job.data is None else job.data()
                self._again(job, 0.0)
            case _ if answer.get("code") in (ErrorCode.DEVICE_LOST, ErrorCode.UNKNOWN) and job.losses < MOST_LOST:
                job.avoided.add(answer["identity"])
                job.losses += 1
                self._again(job, 0.0)
            case _:
                self._end(job, answer)

    def _broken(self, job: Job, future: Any) -> None:
        try:
            error = future.exception(timeout=5)
        except Exception:  # the connection was lost, or this process stopped, before it could be asked for
            self._again(job, _BOUNCED_S)
            return
        if type(error).__name__ == "NoValidWorkerError":
            self._again(job, _BOUNCED_S)
            return
        lost = type(error).__name__ == "KilledWorker"
        message = (
            f"the {'builders' if job.builds else 'devices'} that it ran on were lost, {MOST_LOST + 1} of them"
            if lost
            else f"{type(error).__name__}: {error}"
        )
        code = ErrorCode.DEVICE_LOST if lost and not job.builds else ErrorCode.UNKNOWN
        self._end(job, {"status": "done", "code": code.value, "message": message, "seconds": 0.0})

    def _again(self, job: Job, after_s: float) -> None:
        with self._changed:
            heapq.heappush(self._later, (time.monotonic() + after_s, next(self._numbers), job))
            self._changed.notify_all()

    def _end(self, job: Job, answer: Answer | FleetError) -> None:
        with self._changed:
            if job.ended:
                return
            job.ended = True
            self._jobs.discard(job)
        if not job.held:
            job.future = None
        job.done(answer)

    # -- the watch ----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Body of the thread: send again what came back, and look who is there."""
        look_s = time.monotonic()
        while not self._closed:
            now_s = time.monotonic()
            if now_s >= look_s:
                self._look()
                look_s = time.monotonic() + _LOOK_EVERY_S
            if self._client.status == "running":
                for job in self._due():
                    self._send(job)
            with self._changed:
                soonest_s = min([look_s, *(due for due, _, _ in self._later[:1])])
                if not self._closed:
                    self._changed.wait(max(0.01, soonest_s - time.monotonic()))

    def _due(self) -> list[Job]:
        found = []
        with self._changed:
            while self._later and self._later[0][0] <= time.monotonic():
                found.append(heapq.heappop(self._later)[2])
        return found

    def _look(self) -> None:
        """Ask who is registered; end all jobs where nobody has been for too long."""
        try:
            if self._client.status != "running":
                raise OSError
            found = [each for each in self._registered() if each.key == self.key]
        except Exception:  # the connection is being lost, or found again
            found = []
        width = (len(self.devices), self._width_of_builders)
        gone = {each.identity for each in self.devices} - {each.identity for each in found}
        if found:
            self.devices = found
        now_s = time.monotonic()
        if any(not each.aside for each in found):
            self._served_s = now_s
            self._send_elsewhere(gone)
        elif now_s - self._served_s > _NOBODY_S:
            self._fail(FleetError(self._nobody(found)))
        self._give_builds_back(now_s)
        self._width_of_builders = self.builders
        if width != (len(self.devices), self._width_of_builders):
            self._changed_devices()

    def _give_builds_back(self, now_s: float) -> None:
        """Give back what builders were to build, where none has been there for long."""
        if self._builders or self._client.status != "running":
            self._built_s = now_s
        elif now_s - self._built_s > _NO_BUILDER_S:
            for job in [job for job in self._jobs if job.builds]:
                self.forget(job)
                job.done({"status": "gone"})

    def _send_elsewhere(self, gone: set[str]) -> None:
        """Send what was for one device alone, which is no more, to another."""
        with self._changed:
            stranded = [job for job in self._jobs if job.alone and job.future is not None] if self._race in gone else []
            bound = [job for job in self._jobs if job.identity in gone and job.identity]
        for job in stranded:
            future, job.future = job.future, None
            with contextlib.suppress(Exception):
                future.cancel()
            self._again(job, 0.0)
        for job in bound:
            self._end(job, FleetError("the device is no longer registered: ask for one again"))

    def _nobody(self, found: Sequence[RegisteredDevice]) -> str:
        waited = f"{len(self._jobs)} job(s) have waited {_NOBODY_S:g} s"
        if self._client.status != "running":
            return f"the tracker at {self.tracker} is gone: {waited}"
        if found:
            return f"every device '{self.key}' is set aside: {waited}; {found[0].aside}"
        return f"no device '{self.key}' is left at {self.tracker}: {waited}"

    def _fail(self, error: FleetError) -> None:
        with self._changed:
            self._failure = error
            jobs = list(self._jobs)
        for job in jobs:
            self._end(job, error)

    def ask(self, order: Order, identity: str, timeout_s: float, held: bool = False) -> Answer:
        """Have one device carry out an order, and wait for the answer; FleetError where there is none in time.

        With `held` the device keeps the answer, and so knows that we live.
        """
        answered = threading.Event()
        answers: list[Answer | FleetError] = []

        def done(answer: Answer | FleetError) -> None:
            answers.append(answer)
            answered.set()

        job = Job(order, done, identity=identity, held=held)
        if held:
            self._held.append(job)
        self.submit(job)
        if not answered.wait(timeout_s):
            self.forget(job)
            raise FleetError(f"the device did not answer within {timeout_s:g} s")
        if isinstance(answers[0], FleetError):
            raise answers[0]
        return answers[0]

    def forget(self, job: Job) -> None:
        """Take a job back, whose answer is of no more interest."""
        with self._changed:
            job.ended = True
            self._jobs.discard(job)
            future, job.future = job.future, None
        if future is not None:
            with contextlib.suppress(Exception):
                future.cancel()

    def close(self) -> None:
        """Take back what is under way, and leave the tracker; harmless when repeated."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        for job in list(self._jobs):
            self.forget(job)
        self._thread.join(timeout=10)
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
