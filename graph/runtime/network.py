"""A compiled network: executors of it, and the file that it can be kept in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...backends.forkable import ForkableLock
from ...backends.kernel_function import Given
from ...backends.of_this_process import SharedInProcess
from ...dialects.classic_words import attributes_know_classic_words, subscript_knows_classic_word
from ...dialects.shown_text import size
from .device import LoadedNetwork, load
from .executor import Array, Executor
from .package import Package
from .plan import KeptOperator, KernelInfo, Plan
from .reading import load_package


@attributes_know_classic_words
@subscript_knows_classic_word('lib["default"]')
class CompiledNetwork(SharedInProcess):
    """A network that can be run: `net(x)`, `net.executor()`, or kept: `net.save("net.lw")`.

    A call runs on an executor of the network's own, one call at a time. Executors share kernels and constants; each has
    memory of its own, so that several may run in threads.
    """

    def __init__(self, package: Package) -> None:
        self.package = package
        self._loaded: dict[int, LoadedNetwork] = {}
        self._lock = ForkableLock()
        self._own: Executor | None = None

    @property
    def plan(self) -> Plan:
        """Steps, kernels and memory."""
        return self.package.plan

    @property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """Return what is known of each kernel."""
        return self.plan.kernels

    @property
    def kept_fp32(self) -> tuple[KeptOperator, ...]:
        """The operators that compute in float32 though the network was compiled with `precision=`, and why."""
        return self.plan.kept_fp32

    def executor(self, device: int = 0) -> Executor:
        """Return an executor on the target's device of that number."""
        return Executor(self.plan, self.loaded(device).session())

    def __call__(self, *arrays: Given, **inputs: Given) -> Array | Any:
        """Run on arrays for all inputs, in order or by name; returns the output, or a tuple of several."""
        with self._lock:
            if self._own is None:
                self._own = self.executor()
        return self._own(*arrays, **inputs)

    def loaded(self, device: int = 0) -> LoadedNetwork:
        """Return the kernels and constants on a device, which all that runs them there shares."""
        with self._lock:
            if device not in self._loaded:
                self._loaded[device] = load(self.package, device)
        return self._loaded[device]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, for `lw.load_network`, with this user's tag; OSError names a file that cannot be."""
        self.package.save(path)

    def export_library(self, path: str | os.PathLike[str], name: str | None = None) -> Path:
        """Write it as an object file or a shared library with a C header; ValueError where there is no source of it."""
        where = f"to export network {self.plan.name} to {os.fspath(path)}"
        if self.plan.kind != "llvm":
            raise ValueError(f"{where} compile it for llvm: it is for {self.plan.kind}, whose kernels C cannot call")
        raise ValueError(
            f"{where} use what lw.compile returns: a file of a compiled network holds machine code for a process that "
            "loads it, and no source of kernels; its model and its records give the same kernels again"
        )

    def __repr__(self) -> str:
        plan = self.plan
        tuned = sum(kernel.tuned for kernel in plan.kernels)
        winograd = sum(kernel.is_winograd for kernel in plan.kernels)
        how = f"{tuned} tuned, {winograd} by Winograd" if winograd else f"{tuned} tuned"
        inputs, outputs = (", ".join(map(str, ports)) for ports in (plan.inputs, plan.outputs))
        return (
            f"<compiled network {plan.name}({inputs}) -> {outputs}: {len(plan.steps)} steps of {len(plan.kernels)} "
            f"kernels ({how}), arena {size(plan.arena_bytes)}, "
            f"constants {size(self.package.constant_bytes)}>"
        )


def load_network(path: str | os.PathLike[str], *, trusted: bool = False) -> CompiledNetwork:
    """Load the compiled network in a file; nothing is compiled.

    The file holds native code, which runs with all rights of this process. What this user saved is known by its tag, a
    MAC with the user's key; that says who made a file, and not that it is right. PackageError for any other file,
    unless the caller trusts where it is from (`trusted`), and for one that is damaged or no network, trusted or not.
    """
    return CompiledNetwork(load_package(path, trusted=trusted))
