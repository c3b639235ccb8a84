"""The interface of a backend module to the measurer: build a schedule into an artifact, load it, run it, time it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy.typing as npt

from ...backends.device_lost import DeviceLost as DeviceLost
from ...backends.installed import BackendError as BackendError
from ...backends.installed import backend_module
from ...backends.installed import backend_path as backend_path

Array = npt.NDArray[Any]


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

    One of another package has `compile(module) -> bytes` in the place of `build`, and gets that, the versions of passes
    and packed constants from here (`backends.installed.CompilingBackend`).

    A backend may have more: `warm_up(role)` imports now what is imported at the moment of use, `build_candidate` is
    called in the place of `build`, which there is too, for candidates of a search, `identity(artifact)` gives the bytes
    that decide how an artifact runs, `resources(artifact)` what its launches take, `machine()` names the machine that
    artifacts are for where the target does not, `lacking(dtype)` says why the device does not compute in an element
    type, None where it does, and `checks()` is a device that compares arrays in its own memory
    (`device_buffers.Checks`); its executables are DeviceExecutables then.
    """

    def build(self, workload: str, schedule: str) -> bytes:
        """Compile te-level IR text (with its target) under a pass pipeline; raises ScheduleError if it is illegal."""

    def load(self, artifact: bytes) -> Executable:
        """Load what `build` returned."""

    def device_name(self) -> str:
        """Return the device's name; may create the device context."""

    def versions(self) -> dict[str, str]:
        """Return versions by package or primitive pass name (`lw-split`); never touches the device."""


def load_backend(path: str) -> Backend:
    """Import the backend module `path`; raises BackendError naming what is missing."""
    return cast(Backend, backend_module(path))
