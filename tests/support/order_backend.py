"""The fake backend, whose kernels note their name and the time of each run in a file."""

import time
from collections.abc import Sequence

import fake_backend
from fake_backend import build, device_name, versions

from loopwright.search.measure.backend_api import Array

__all__ = ["build", "device_name", "load", "versions"]


class Kernel(fake_backend.Kernel):
    def run(self, args: Sequence[Array]) -> None:
        super().run(args)
        with open(self.fields["path"], "a") as log, open(self.fields["path"] + ".times", "a") as times:
            log.write(self.fields["name"])
            times.write(f"{time.monotonic()}\n")


def load(artifact: bytes) -> Kernel:
    return Kernel(artifact.decode())
