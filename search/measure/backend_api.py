"""The interface of a backend module to the measurer: build a schedule into an artifact, load it, run it, time it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy.typing as npt

from ...backends.device_lost import DeviceLost as DeviceLost
from ...dialects.errors import Error

Array = npt.NDArray[Any]


class BackendError(Error):
    """A backend module cannot be imported or lacks a function."""


class Executable(Protocol):
    """A loaded kernel."""

    def run(self, args: Sequence[Array]) -> None:
        """Run once on `args`, inputs then outputs; outputs are written in place and complete on return."""

    def time(self, args: Sequence[Array], number: int) -> float:
        """Return the seconds that `number` runs, back to back, take."""


class DeviceExecutable(Protocol):
    """A loaded kernel that also runs on buffers of the device, where the backend has `checks`."""

    def run(self, args: Sequence[Array]) -> None:
        """Run once on `args`, inputs then outputs; outputs are written in place and complete on return."""

    def time(self, args: Sequence[Array], number: int) -> float:
        """Return the seconds that `number` runs, back to back, take."""

    def run_on(self, buffers: Sequence[Any], args: Sequence[Array]) -> None:
        """Run once on buffers of all arguments; `args` are the same on the host, for constants that are packed."""

    def time_on(self, buffers: Sequence[Any], number: int) -> float:
        """Return the seconds that `number` runs take on the buffers of the `run_on` before."""


class Backend(Protocol):
    """A module with these functions, named by its dotted path.

    It may have more: `warm_up(role)` imports now what is imported at the moment of use, `identity(artifact)` gives the
    bytes that decide how an artifact runs, `resources(artifact)` what its launches take, `machine()` names the machine
    that artifacts are for where the target does not, `lacking(dtype)` says why the device does not compute in an
    element type, None where it does, and `checks()` is a device that compares arrays in its own memory
    (`device_checking.Checks`); its executables are DeviceExecutables then.
    """

    def build(self, workload: str, schedule: str) -> bytes:
        """Compile te-level IR text (with its target) under a pass pipeline; raises ScheduleError if it is illegal."""

    def load(self, artifact: bytes) -> Executable:
        """Load what `build` returned."""

    def device_name(self) -> str:
        """Return the device's name; may create the device context."""

    def versions(self) -> dict[str, str]:
        """Return versions by package or primitive pass name (`lw-split`); never touches the device."""


def backend_path(kind: str) -> str:
    """The module of the backend that comes with the package for a kind of target."""
    return f"{__package__.partition('.')[0]}.backends.{kind}.device"


def load_backend(path: str) -> Backend:
    """Import the backend module `path`; raises BackendError naming what is missing."""
    try:
        module = importlib.import_module(path)
    except ImportError as error:
        raise BackendError(f"backend {path!r} cannot be imported: {error}") from error
    missing = [
        name for name in ("build", "load", "device_name", "versions") if not callable(getattr(module, name, None))
    ]
    if missing:
        raise BackendError(f"backend {path!r} lacks the function(s) {', '.join(missing)}")
    return cast(Backend, module)
