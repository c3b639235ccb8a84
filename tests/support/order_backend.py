"""The fake backend, whose builds and runs note themselves in one file, `path=`, a line each: `build 3`, `run 3`.

With `timed=yes` timings do so, too: `time 3`. A build with `after=<line>` waits until that line is there. A builder
whose environment names a file in `STARTS_AFTER` starts once that is there.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import fake_backend
from fake_backend import device_name

from loopwright.search.measure.backend_api import Array

__all__ = ["build", "device_name", "load", "versions"]


def noted(path: Path) -> list[str]:
    """What has been noted, in order."""
    return path.read_text().splitlines() if path.exists() else []


def runs_noted(path: Path) -> str:
    """The names of what ran, in order."""
    return "".join(line.removeprefix("run ") for line in noted(path) if line.startswith("run "))


def versions() -> dict[str, str]:
    while (path := os.environ.get("STARTS_AFTER")) and not os.path.exists(path):
        time.sleep(0.01)
    found: dict[str, str] = fake_backend.versions()
    return found


def _note(fields: dict[str, str], what: str) -> None:
    with open(fields["path"], "a") as log:
        log.write(f"{what} {fields['name']}\n")


def build(workload: str, schedule: str) -> bytes:
    fields = fake_backend.fields_of(schedule)
    while (awaited := fields.get("after", "").replace("_", " ")) and awaited not in noted(Path(fields["path"])):
        time.sleep(0.01)
    artifact: bytes = fake_backend.build(workload, schedule)
    _note(fields, "build")
    return artifact


class Kernel(fake_backend.Kernel):
    def run(self, args: Sequence[Array]) -> None:
        super().run(args)
        _note(self.fields, "run")

    def time(self, args: Sequence[Array], number: int) -> float:
        if "timed" in self.fields:
            _note(self.fields, "time")
        return super().time(args, number)


def load(artifact: bytes) -> Kernel:
    return Kernel(artifact.decode())
