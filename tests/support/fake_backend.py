"""A backend whose schedules say what happens: `time=<seconds>`, `run=<misbehaviour>`, `build=<misbehaviour>`.

The kernel doubles its input. Times are the ones named, not measured, so tests do not depend on the machine.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def fields_of(text: str) -> dict[str, str]:
    """The words of a schedule that are `name=value`."""
    return dict(part.split("=", 1) for part in text.split() if "=" in part)


def build(workload: str, schedule: str) -> bytes:
    fields = fields_of(schedule)
    match fields.get("build"):
        case "raise":
            raise ValueError("no such instruction: frobnicate")
        case "refuse":
            from loopwright.passes.primitive import ScheduleError

            raise ScheduleError("split", "factor 3 does not divide 8")
        case "assert":
            raise AssertionError("our bug")
        case "hang":
            time.sleep(1000)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sysexit":
            sys.exit(3)
        case "child":
            os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "987")
            time.sleep(1000)
        case "sleep":
            time.sleep(0.1)
        case "hang_at_first":
            _hang_at_first(fields["path"])
    print("noise on standard output")
    return (workload + "\n" + fields.get("artifact", schedule)).encode()


def _hang_at_first(path: str) -> None:
    """Make a file and hang, unless it is there."""
    if not os.path.exists(path):
        open(path, "x").close()
        time.sleep(1000)


def _raise(error: Exception) -> None:
    raise error


def _lose() -> None:
    from loopwright.search.measure.backend_api import DeviceLost

    raise DeviceLost("the device fell off the bus")


ENDS: dict[str, Callable[[], object]] = {
    "raise": lambda: _raise(RuntimeError("launch failed")),
    "disk": lambda: _raise(OSError(28, "No space left on device")),
    "hang": lambda: ctypes.CDLL(None).pause(),
    "spin": lambda: ctypes.PyDLL(None).pause(),  # never lets go of the interpreter
    "segv": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "sysexit": lambda: sys.exit(3),
    "lost": _lose,
}
"""Ends of a run that gives no result."""


class Kernel:
    def __init__(self, text: str) -> None:
        self.fields = fields_of(text)
        self.runs = 0

    def run(self, args: Sequence[Array]) -> None:
        self.runs += 1
        if "begun" in self.fields:
            open(self.fields["begun"], "w").close()
        kind = self.fields.get("run", "")
        if os.path.exists(self.fields.get("unless", "")):  # from some moment on
            kind = self.fields["then"]
        if kind in ENDS:
            ENDS[kind]()
        else:
            self._compute(kind, *args)

    def _compute(self, kind: str, source: Array, result: Array) -> None:
        """Double the source, or something like it."""
        match kind:
            case "twice":
                os.fork()
                result[...] = source * 2
            case "wrong":
                result[...] = source * 2 + 1
            case "partial":
                result[:-1] = source[:-1] * 2
            case "accumulate":
                result += source * 2
            case "racy":
                result[...] = source * (2 if self.runs == 1 else 3)
            case "overrun":
                result[...] = source * 2
                ctypes.memset(result.ctypes.data + result.nbytes, 0, 16)
            case "dirty":
                result[...] = source * 2
                source[0] = 7
            case "hang_at_first":
                _hang_at_first(self.fields["path"])
                result[...] = source * 2
            case "log":
                result[...] = source * 2
                with open(self.fields["path"], "a") as log:
                    log.write("run\n")
            case _:
                result[...] = source * 2

    def time(self, args: Sequence[Array], number: int) -> float:
        if self.fields.get("run") == "racy":
            self.run(args)
        return float(self.fields["time"]) * number


def load(artifact: bytes) -> Kernel:
    return Kernel(artifact.decode())


def device_name() -> str:
    return "fake device"


def versions() -> dict[str, str]:
    return {"fake": "1.0", "lw-fake": "1"}


def data(n: int = 64) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    source = np.arange(n, dtype=np.float32)
    return source, source * 2
