"""The fake backend, but `n=` and `build=` leave no trace in the artifact."""

import fake_backend
from fake_backend import device_name, load, versions

__all__ = ["build", "device_name", "load", "versions"]


def build(workload: str, schedule: str) -> bytes:
    return fake_backend.build(workload, " ".join(p for p in schedule.split() if not p.startswith(("n=", "build="))))
