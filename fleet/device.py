"""A device of a fleet: its description, the runner process inside that survives its jobs, and its statistics."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..dialects.target import Target
from ..search.measure.backend_api import backend_path
from ..search.measure.measurement import MeasureError, MeasureOptions, MeasureTask
from ..search.measure.measurer import Measurer
from ..search.measure.process import WorkerStartError
from ..search.measure.timing import TimingSettings
from ..search.records.file import ErrorCode
from .member import Member
from .protocol import Answer, FleetInputError, Order, key_resource, require_key, unpack_task
from .session import Sessions

_KEPT_BYTES = 1 << 30
"""Of tasks' data, beside that of the task at hand: some 40 layers of a network for images."""
_MOST_IN_A_ROW = 3
"""Jobs that fail for the device's sake, after which it is set aside."""
_ASIDE_S, _LONGEST_ASIDE_S = 20.0, 600.0
"""It is tried again after so long; each time in a row after twice as long. Nobody measured these."""
_NOT_THE_CANDIDATES = (ErrorCode.DEVICE_LOST, ErrorCode.UNKNOWN)


@dataclass(frozen=True)
class DeviceOptions:
    """Description of a device to be registered; `env` is for its processes, such as which GPU they see."""

    key: str
    name: str
    target: Target
    backend: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    aside_s: float = _ASIDE_S

    def __post_init__(self) -> None:
        require_key(self.key)

    @property
    def module(self) -> str:
        """The dotted path of the backend that runs there."""
        return self.backend or backend_path(self.target.kind)


class Device(Member):
    """A registered device; a context manager, at whose end no process is left. It does one job at a time."""

    what = "device"

    def __init__(self, options: DeviceOptions) -> None:
        super().__init__(options.name, 1)
        self.options = options
        self._lock = threading.Lock()
        self._measurer: Measurer | None = None
        self._threads = options.target.cores if options.target.kind == "llvm" else None
        self._device_name = ""
        self._in_use: tuple[str, bool] | None = None
        self._kept: OrderedDict[str, MeasureTask] = OrderedDict()
        self._sessions = Sessions(options.module, dict(options.env))
        self._done = self._failed = 0
        self._busy_s = 0.0
        self._in_a_row = self._times_aside = 0
        self._aside_until_s = 0.0
        self._why_aside = ""

    def __enter__(self) -> Device:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        self.stopped.set()
        with self._lock:
            self._sessions.close()
            self._end_measurer()

    # -- what is known of it ----------------------------------------------------------------------------------------

    @property
    def place(self) -> str:
        return f"under '{self.options.key}'"

    @property
    def offered(self) -> Mapping[str, float]:
        """One of its key while it takes jobs."""
        return {key_resource(self.options.key): 0 if self.aside else 1}

    @property
    def information(self) -> dict[str, Any]:
        return {"loopwright": self.description}

    @property
    def description(self) -> dict[str, Any]:
        """The facts that never change, as plain data."""
        return {
            **self.facts,
            "key": self.options.key,
            "target": str(self.options.target),
            "backend": self.options.module,
            "device": self._device_name,
        }

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts of its jobs so far, as plain data; `aside` says why it takes no jobs for now."""
        done = self._done + self._failed
        return {
            "done": self._done,
            "failed": self._failed,
            "mean_s": self._busy_s / done if done else 0.0,
            "busy": self._lock.locked(),
            "aside": self._why_aside,
        }

    @property
    def aside(self) -> bool:
        """True while it is set aside."""
        return bool(self._why_aside)

    def tidy(self) -> None:
        """End what was left by users who have died, unless it is at a job."""
        if self._lock.acquire(blocking=False):
            try:
                self._sessions.tidy()
            finally:
                self._lock.release()

    def try_again(self) -> None:
        """Come back, if it was set aside long enough and its runner starts."""
        if not self._why_aside or time.monotonic() < self._aside_until_s:
            return
        with self._lock:
            self._end_measurer()
            try:
                self._start()
            except (MeasureError, WorkerStartError) as error:
                self._set_aside(str(error))
                return
            self._why_aside, self._in_a_row = "", 0

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def carry_out(self, order: Order) -> Answer | None:
        with self._lock:
            match order.get("op"):
                case "task":
                    return self._keep(order)
                case "run":
                    return self._run(order)
                case "session":
                    return self._sessions.serve(order)
        return None

    def _keep(self, order: Order) -> Answer:
        """Keep a task's data, in place of what was used longest ago."""
        task = unpack_task(order["data"])
        self._kept[order["task"]] = task
        while len(self._kept) > 1 and sum(map(_bytes, self._kept.values())) - _bytes(task) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return {"status": "done"}

    def _run(self, order: Order) -> Answer:
        if self._why_aside:
            return {"status": "aside", "message": self._why_aside}
        if order.get("data") is not None:
            self._keep(order)
        if order["task"] not in self._kept:
            return {"status": "needs", "identity": self.identity}
        self._kept.move_to_end(order["task"])
        started, began_s = time.time(), time.monotonic()
        answer = self._measured(order)
        self._busy_s += time.monotonic() - began_s
        self._count(ErrorCode(answer["code"]), answer["message"])
        fleet = {"device": self.options.name, "started": started, "ended": time.time()}
        return {"status": "done", "fleet": fleet, "identity": self.identity, **answer}

    def _measured(self, order: Order) -> Answer:
        try:
            measurer = self._start(order["threads"])
            measurer.options = replace(measurer.options, check=bool(order["check"]), run_timeout_s=order["timeout_s"])
            wanted = (order["task"], bool(order["check"]))
            if self._in_use != wanted:
                self._in_use = None
                measurer.use(self._kept[order["task"]])
                self._in_use = wanted
            found = measurer.run(order["artifact"], TimingSettings(**order["timing"]), order["best_s"])
        except (MeasureError, WorkerStartError) as error:
            self._end_measurer()
            failed = {"code": ErrorCode.UNKNOWN.value, "message": str(error), "seconds": 0.0}
            return {**failed, "times_s": [], "stopped_early": False}
        return {
            "code": found.error.value,
            "message": found.message,
            "seconds": found.run_s,
            "times_s": [*found.times_s],
            "stopped_early": found.stopped_early,
        }

    def _start(self, threads: int | None = None) -> Measurer:
        """The measurer, with a runner for so many threads (None: as before)."""
        if self._measurer is not None and threads in (None, self._threads):
            return self._measurer
        self._end_measurer()
        self._threads = threads or self._threads
        options = MeasureOptions(self.options.module, builders=0, threads=self._threads, env=self.options.env)
        with contextlib.ExitStack() as undo:
            measurer = undo.enter_context(Measurer(options))
            self._device_name = measurer.device
            undo.pop_all()
        self._measurer = measurer
        return measurer

    def _end_measurer(self) -> None:
        self._in_use = None
        if self._measurer is not None:
            self._measurer.close()
            self._measurer = None

    def _count(self, code: ErrorCode, message: str) -> None:
        if code is ErrorCode.OK:
            self._done += 1
        else:
            self._failed += 1
        if code not in _NOT_THE_CANDIDATES:
            self._in_a_row = self._times_aside = 0
            return
        self._in_a_row += 1
        if self._in_a_row >= _MOST_IN_A_ROW:
            self._set_aside(message)

    def _set_aside(self, why: str) -> None:
        wait_s = min(self.options.aside_s * 2**self._times_aside, _LONGEST_ASIDE_S)
        self._times_aside += 1
        self._aside_until_s = time.monotonic() + wait_s
        first = why.strip().splitlines()[0] if why.strip() else "it gave no reason"
        self._why_aside = (
            f"device '{self.options.name}' is set aside after {self._in_a_row} jobs in a row that failed for its sake, "
            f"and tried again after {wait_s:g} s: {first}"
        )


def describe(key: str, name: str, target: Target, **options: Any) -> DeviceOptions:
    """Return the options of a device; FleetInputError for a key that is none."""
    try:
        return DeviceOptions(key, name, target, **options)
    except ValueError as error:
        raise FleetInputError(str(error)) from None


def _bytes(task: MeasureTask) -> int:
    return sum(array.nbytes for array in (*task.inputs, *task.expected))
