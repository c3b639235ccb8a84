"""An OpenCL device as one to measure on: builds schedules into artifacts, loads, runs and times them."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from ..c_family.artifact import Artifact
from ..c_family.executable import DeviceExecutable
from . import executable
from .checks import OpenClChecks
from .platform import describe, device_at


def build(workload: str, schedule: str) -> bytes:
    """Compile te-level IR text, with its target, under a pass pipeline; raises ScheduleError if a step is illegal."""
    from .. import scheduled
    from .compile import compile_module

    return compile_module(scheduled.scheduled_kernel(workload, schedule)).to_bytes()


def load(artifact: bytes) -> DeviceExecutable:
    """Load what `build` returned."""
    return executable.load(Artifact.from_bytes(artifact, "opencl"))


def identity(artifact: bytes) -> bytes:
    """Return what decides how an artifact runs: equal for artifacts that are the same on the device."""
    return Artifact.from_bytes(artifact, "opencl").identity()


def resources(artifact: bytes) -> list[dict[str, Any]]:
    """Return what each launch takes, as far as the compiler says: registers, shared bytes, bytes spilled."""
    return [asdict(each) for each in Artifact.from_bytes(artifact, "opencl").resources]


@cache
def checks() -> OpenClChecks:
    """Return the device as one that compares arrays where they are."""
    return OpenClChecks()


@cache
def device_name() -> str:
    """Return the device's name and its driver's version."""
    return describe(device_at())


def lacking(dtype: str) -> str | None:
    """The reason why the device does not compute in an element type, in a sentence; None where it does."""
    return executable.lacking(dtype, device_at())


@cache
def versions() -> dict[str, str]:
    """Return versions of what makes the code: packages, and each pass by its pipeline name."""
    from .. import scheduled

    return scheduled.code_versions(("pyopencl",))


def warm_up(role: str) -> None:
    """Import now what the first build or run would import."""
    if role == "builder":
        from .. import scheduled
        from .compile import compile_module  # noqa: F401 (loads it)

        scheduled.warm_up()
    device_at()
