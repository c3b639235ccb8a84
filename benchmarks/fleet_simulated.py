"""A backend of simulated devices: a job takes 50 ms there, or as many seconds as its schedule says (`sleep=0`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

SERVICE_S = 0.05


def build(workload: str, schedule: str) -> bytes:
    return f"{workload} {schedule}".encode()


class Kernel:
    """Doubles its input, in no time that counts; what is timed is simulated."""

    def __init__(self, text: str) -> None:
        self._fields = dict(part.split("=", 1) for part in text.split() if "=" in part)
        self._began_s = time.monotonic()

    def run(self, args: Sequence[npt.NDArray[Any]]) -> None:
        if "hang" in self._fields:
            time.sleep(1000)
        args[1][...] = 2 * args[0]

    def time(self, args: Sequence[npt.NDArray[Any]], number: int) -> float:
        left_s = float(self._fields.get("sleep", SERVICE_S)) - (time.monotonic() - self._began_s)
        time.sleep(max(0.0, left_s))
        return 1e-3 * number


def load(artifact: bytes) -> Kernel:
    return Kernel(artifact.decode())


def device_name() -> str:
    return "simulated device"


def versions() -> dict[str, str]:
    return {"simulated": "1"}
