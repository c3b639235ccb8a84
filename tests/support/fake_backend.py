"""A backend whose schedules say what happens: `time=<seconds>`, `run=<misbehaviour>`, `build=<misbehaviour>`.

The kernel doubles its input. Times are the ones named, not measured, so tests do not depend on the machine.
"""

import ctypes
import os
import signal
import sys
import time

import numpy as np


def _fields(text):
    return dict(part.split("=", 1) for part in text.split() if "=" in part)


def build(workload, schedule):
    fields = _fields(schedule)
    match fields.get("build"):
        case "raise":
            raise ValueError("no such instruction: frobnicate")
        case "refuse":
            from loopwright.passes.primitive import ScheduleError

            raise ScheduleError("split", {}, "factor 3 does not divide 8")
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
    print("noise on standard output")
    return (workload + "\n" + fields.get("artifact", schedule)).encode()


class Kernel:
    def __init__(self, text):
        self.fields = _fields(text)
        self.runs = 0

    def run(self, args):
        source, result = args
        self.runs += 1
        match self.fields.get("run"):
            case "raise":
                raise RuntimeError("launch failed")
            case "disk":
                raise OSError(28, "No space left on device")
            case "hang":
                ctypes.CDLL(None).pause()
            case "spin":  # never lets go of the interpreter
                ctypes.PyDLL(None).pause()
            case "segv":
                ctypes.string_at(0)
            case "exit":
                os._exit(3)
            case "sysexit":
                sys.exit(3)
            case "twice":
                os.fork()
                result[...] = source * 2
            case "lost":
                from loopwright.search.measure.backend_api import DeviceLost

                raise DeviceLost("the device fell off the bus")
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
            case "slowly":
                time.sleep(0.3)
                result[...] = source * 2
            case "log":
                result[...] = source * 2
                with open(self.fields["path"], "a") as log:
                    log.write("run\n")
            case _:
                result[...] = source * 2

    def time(self, args, number):
        if self.fields.get("run") == "racy":
            self.run(args)
        return float(self.fields["time"]) * number


def load(artifact):
    return Kernel(artifact.decode())


def device_name():
    return "fake device"


def versions():
    return {"fake": "1.0", "lw-fake": "1"}


def data(n=64):
    source = np.arange(n, dtype=np.float32)
    return source, source * 2
