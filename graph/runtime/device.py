"""The interface between an executor and the device that a network runs on."""

from __future__ import annotations

import importlib
from typing import Any, Protocol, cast

import numpy.typing as npt

from .package import Package
from .plan import Port

Array = npt.NDArray[Any]


class Session(Protocol):
    """One arena with the network's steps on it."""

    def write(self, port: Port, array: Array) -> None:
        """Copy a contiguous array to an input."""

    def read(self, port: Port, array: Array) -> None:
        """Copy an output to a contiguous array, when all runs are complete."""

    def run(self) -> None:
        """Run all steps; on a GPU they may still be running on return."""

    def finish(self) -> None:
        """Wait for all that was started."""

    @property
    def cache_bytes(self) -> int:
        """The size of the device's last cache."""

    def flush(self, nbytes: int) -> None:
        """Write so many bytes that no run reads, to empty the caches, and wait."""

    def time(self, number: int) -> float:
        """Return the seconds that `number` runs take, back to back."""

    def time_steps(self) -> list[float]:
        """Return the seconds of each step in one run."""


class LoadedNetwork(Protocol):
    """A network's kernels and constants on a device; sessions share them."""

    def session(self) -> Session:
        """Return a session with an arena of its own."""


def load(package: Package, index: int = 0) -> LoadedNetwork:
    """Put a network on the device that it was compiled for."""
    module = importlib.import_module(f".on_{package.plan.kind}", __package__)
    return cast(LoadedNetwork, module.load(package, index))
