"""A CUDA device as one to measure on: builds schedules into cubins, loads, runs and times them."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from ..c_family.artifact import Artifact
from ..c_family.executable import DeviceExecutable
from .checks import CudaChecks
from .driver import describe
from .nvrtc import MissingCompiler, compiler_version
from .runtime import CudaRuntime


def build(workload: str, schedule: str) -> bytes:
    """Compile te-level IR text, with its target, under a pass pipeline; raises ScheduleError if a step is illegal.

    Needs neither a GPU nor a driver.
    """
    from .. import scheduled
    from .compile import compile_module

    return compile_module(scheduled.scheduled_kernel(workload, schedule)).to_bytes()


def build_candidate(workload: str, schedule: str) -> bytes:
    """The same of one of many candidates: each of its kernels is compiled alone, as others may have it too."""
    from .. import scheduled
    from .compile import compile_apart

    return compile_apart(scheduled.scheduled_kernel(workload, schedule)).to_bytes()


def load(artifact: bytes) -> DeviceExecutable:
    """Load what `build` returned."""
    loaded = Artifact.from_bytes(artifact, "cuda")
    return DeviceExecutable(loaded, CudaRuntime(loaded))


def identity(artifact: bytes) -> bytes:
    """Return what decides how an artifact runs: equal for artifacts that are the same on the device."""
    return Artifact.from_bytes(artifact, "cuda").identity()


def resources(artifact: bytes) -> list[dict[str, Any]]:
    """Return what each launch takes, as far as the compiler says: registers, shared bytes, bytes spilled."""
    return [asdict(each) for each in Artifact.from_bytes(artifact, "cuda").resources]


@cache
def checks() -> CudaChecks:
    """Return the device as one that compares arrays where they are."""
    return CudaChecks()


@cache
def device_name() -> str:
    """Return the device's name and its driver's version."""
    return describe()


@cache
def versions() -> dict[str, str]:
    """Return versions of what makes the code: compiler, packages, and each pass by its pipeline name."""
    from .. import scheduled

    found = scheduled.code_versions(("pycuda", "nvidia-cuda-nvrtc"))
    try:
        found["cuda-compiler"] = compiler_version()
    except MissingCompiler:
        found["cuda-compiler"] = "none"
    return found


def warm_up(role: str) -> None:
    """Import now what the first build or run would import."""
    if role == "builder":
        from .. import scheduled
        from .compile import compile_module  # noqa: F401 (loads it)

        scheduled.warm_up()
        compiler_version()
    else:
        device_name()
