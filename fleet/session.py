"""Sessions on a device: a process for each `request_device`, which holds what was sent until it closes or is silent."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..search.measure.process import WorkerGone, WorkerProcess, WorkerStartError
from ..search.measure.wire import GarbledError
from .protocol import Answer, Order
from .session_process import join_blob, split_blob

_MOST_SESSIONS = 4
_SILENT_S = 900.0
"""Without an order for so long, a session's process is ended: nobody tells a device whose tracker was lost meanwhile
that its user has died."""
_MODULE = f"{__package__}.session_process"


@dataclass
class _Held:
    """The process of a session, and when it was last asked for something."""

    process: WorkerProcess
    wanted: Callable[[], bool]
    used_s: float = field(default_factory=time.monotonic)


class Sessions:
    """The sessions of one device, by the names that their users chose."""

    def __init__(self, backend: str, env: dict[str, str]) -> None:
        self._backend, self._env = backend, env
        self._held: dict[str, _Held] = {}

    def serve(self, order: Order) -> Answer:
        """Carry out an order of a session; one that crashes or takes too long ends it, with all that it held."""
        name = str(order["session"])
        self.tidy()
        if order["what"] == "close":
            self._end(name)
            return {"status": "done"}
        if order["what"] == "open":
            return self._open(name, order.get("wanted", lambda: True))
        if name not in self._held:
            return _failed("this session has ended, with all that it held: ask for the device again", "SessionEnded")
        held = self._held[name]
        held.used_s = time.monotonic()
        message, blob = split_blob(order["with"])
        try:
            held.process.send({"what": order["what"], "with": message}, blob)
            reply, data = next_message(held.process, float(order["timeout_s"]))
        except (WorkerGone, GarbledError):
            how = held.process.exit_reason()
            self._end(name)
            return _failed(f"the process on the device ended: {how}", "SessionEnded")
        except TimeoutError:
            self._end(name)
            return _failed(f"it took longer than {order['timeout_s']:g} s, and was ended", "TimeoutError")
        if "error" in reply:
            return _failed(reply["error"], reply["kind"])
        return {"status": "done", "result": join_blob(reply["ok"], data)}

    def _open(self, name: str, wanted: Callable[[], bool]) -> Answer:
        while len(self._held) >= _MOST_SESSIONS:
            self._end(min(self._held, key=lambda each: self._held[each].used_s))
        try:
            self._held[name] = _Held(WorkerProcess("session", self._backend, self._env, module=_MODULE), wanted)
        except WorkerStartError as error:
            return _failed(str(error), "WorkerStartError")
        return {"status": "done"}

    def tidy(self) -> None:
        """End the sessions whose users have died, or said nothing for long."""
        now_s = time.monotonic()
        for name in [n for n, held in self._held.items() if now_s - held.used_s > _SILENT_S or not held.wanted()]:
            self._end(name)

    def _end(self, name: str) -> None:
        if (held := self._held.pop(name, None)) is not None:
            held.process.kill()

    def close(self) -> None:
        """End all of them; harmless when repeated."""
        for name in list(self._held):
            self._end(name)


def _failed(message: str, kind: str) -> Answer:
    return {"status": "failed", "message": message, "kind": kind}


def next_message(process: WorkerProcess, timeout_s: float) -> tuple[dict[str, Any], bytes]:
    """The next message of a process; TimeoutError where there is none in time."""
    until_s = time.monotonic() + timeout_s
    while (left_s := until_s - time.monotonic()) > 0:
        if select.select([process], [], [], left_s)[0] and (messages := process.receive()):
            return messages[0]
    raise TimeoutError
