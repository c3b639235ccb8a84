"""A builder of a fleet: a machine without a device, whose processes build candidates for the devices of others."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..dialects.counts import require_count
from ..dialects.target import KINDS
from ..search.measure.backend_api import backend_path
from ..search.measure.measurement import MeasureOptions
from ..search.measure.process import WorkerGone, WorkerProcess, WorkerStartError
from ..search.measure.runners import start_process
from ..search.measure.wire import GarbledError
from ..search.records.file import ErrorCode
from .member import Member
from .protocol import BUILDER_RESOURCE, Answer, Order
from .register import own_scratch
from .session import next_message

_RECYCLE_AFTER = MeasureOptions("").recycle_after


class _Process:
    """A builder process: the backend that it builds for, its versions, and the workload that it holds."""

    def __init__(self, backend: str, folder: Path) -> None:
        options = MeasureOptions(backend)
        self.backend, self.workload = backend, ""
        self.worker: WorkerProcess = start_process("builder", options, folder)
        try:
            hello, _ = next_message(self.worker, options.start_timeout_s)
        except (WorkerGone, GarbledError, TimeoutError):
            raise WorkerStartError(f"the builder process cannot start: {self.worker.exit_reason()}") from None
        if hello["op"] != "hello":
            self.worker.kill()
            raise WorkerStartError(f"the builder process cannot start: {hello['message']}")
        self.versions: Mapping[str, str] = hello["versions"]


class FleetBuilder(Member):
    """A machine that builds `count` candidates at once; a context manager, at whose end no process is left."""

    what = "builder"

    def __init__(self, name: str, count: int, backend: str = "") -> None:
        require_count("builders", count)
        super().__init__(name, count)
        self._backends = {*map(backend_path, KINDS), *([backend] if backend else [])}
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._built = self._failed = 0
        self._scratch = own_scratch()

    def close(self) -> None:
        self.stopped.set()
        with self._lock:
            for process in self._all:
                process.worker.kill()
            self._all.clear()
            self._idle.clear()
        self._scratch.remove()

    # -- what is known of it ----------------------------------------------------------------------------------------

    @property
    def place(self) -> str:
        return "among the builders"

    @property
    def offered(self) -> Mapping[str, float]:
        return {BUILDER_RESOURCE: self.threads}

    @property
    def information(self) -> dict[str, Any]:
        return {"loopwright-builder": {**self.facts, "builders": self.threads}}

    @property
    def statistics(self) -> dict[str, Any]:
        return {"done": self._built, "failed": self._failed}

    # -- jobs -------------------------------------------------------------------------------------------------------

    def carry_out(self, order: Order) -> Answer | None:
        """Carry out an order; called in as many threads as it builds at once."""
        if order.get("op") != "build":
            return None
        if order["backend"] not in self._backends:
            return self.refused(f"has no backend {order['backend']!r}")
        answer = self._build(order)
        done = answer["status"] == "done" and answer["code"] == ErrorCode.OK
        with self._lock:
            self._built, self._failed = self._built + done, self._failed + (not done)
        return answer

    def _build(self, order: Order) -> Answer:
        try:
            process = self._taken(order["backend"])
        except WorkerStartError as error:
            return self.refused(f"cannot build: {error}")
        try:
            if process.versions != order["versions"]:
                self._idle.append(process)
                return self.refused(_difference(process.versions, order["versions"]))
            reply, blob = self._asked(process, order)
        except (WorkerGone, GarbledError):
            how, killed = process.worker.exit_reason(), process.worker.killed_from_outside
            self._end(process)
            code = ErrorCode.UNKNOWN if killed else ErrorCode.COMPILE_ERROR
            return self._without(code, f"the process died while building: {how}")
        except TimeoutError:
            self._end(process)
            return self._without(ErrorCode.COMPILE_TIMEOUT, f"building took longer than {order['timeout_s']:g} s")
        if reply.get("tainted") or process.worker.jobs_done >= _RECYCLE_AFTER:
            self._end(process)
        else:
            self._idle.append(process)
        return {**reply, "status": "done", "blob": blob, "identity": self.identity}

    def _asked(self, process: _Process, order: Order) -> tuple[dict[str, Any], bytes]:
        """The answer of a process to an order, whose workload it is told first where that is another one."""
        worker, timeout_s = process.worker, float(order["timeout_s"])
        if process.workload != order["workload"]:
            worker.send({"op": "task", "workload": order["workload"]})
            next_message(worker, timeout_s)
            process.workload = order["workload"]
        worker.send({"op": "build", "id": 0, "schedule": order["schedule"]})
        reply, blob = next_message(worker, timeout_s)
        worker.jobs_done += 1
        return reply, blob

    def _without(self, code: ErrorCode, message: str) -> Answer:
        return {"status": "done", "code": code.value, "message": message, "seconds": 0.0, "identity": self.identity}

    def _taken(self, backend: str) -> _Process:
        """A process for a backend: an idle one, or a new one, in the place of another where too many are there."""
        with self._lock:
            fitting = next((each for each in self._idle if each.backend == backend), None)
            if fitting is not None:
                self._idle.remove(fitting)
                return fitting
            spare = self._idle.pop() if len(self._all) >= self.threads and self._idle else None
        if spare is not None:
            self._end(spare)
        process = _Process(backend, self._scratch.path)
        with self._lock:
            self._all.add(process)
        return process

    def _end(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.worker.kill()


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The first version that differs between a builder and a tuner."""
    name = min(each for each in {*ours, *theirs} if ours.get(each) != theirs.get(each))
    return f"has {name} {ours.get(name, 'not')}, this has {theirs.get(name, 'it not')}: install the same on both"
