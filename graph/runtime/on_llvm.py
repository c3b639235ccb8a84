"""Networks on this CPU."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.arrays import aligned_copy, workspace_of
from ...backends.host_cache import host_cache_bytes
from ...backends.host_memory import available_bytes
from ...backends.llvm.amx import allow_tiles
from ...backends.llvm.bound_calls import Copy, Slot
from ...backends.llvm.cpu import host_model, why_not_here
from ...backends.llvm.executable import Artifact
from ...backends.llvm.loaded_object import LoadedObject
from ...backends.llvm.sequence import KernelSequence
from ...backends.llvm.symbols import MOST_THREADS
from ...backends.time_evaluator import HostCaches
from ...dialects.cached_property import cached_property
from ...dialects.cpu_models import CPU_MODELS
from .binding import Binding, bound
from .package import Package, PackageError, require_memory
from .plan import Place, Plan, Port
from .signature import signature_of

Array = npt.NDArray[Any]
ANY_MODEL = "generic"
"""The model of targets that name none."""


class LlvmNetwork:
    """The kernels of a network in memory, and its constants."""

    def __init__(self, package: Package) -> None:
        self.plan = package.plan
        self._signatures = [signature_of("llvm", data) for data in package.kernels]
        artifacts = [Artifact.from_bytes(data) for data in package.kernels]
        features = dict.fromkeys(feature for artifact in artifacts for feature in artifact.features)
        if (reason := why_not_here(tuple(features))) is not None:
            raise PackageError(f"network {self.plan.name} {reason}")
        allow_tiles(features)
        self._codes = [LoadedObject(artifact.object_code, artifact.threads) for artifact in artifacts]
        self.addresses = [code.run for code in self._codes]
        self.threads = max((artifact.threads for artifact in artifacts), default=1)
        kernels = [step.kernel for step in self.plan.steps]
        self.branches = [
            bounds
            for bounds in self.plan.branches
            if all(artifacts[kernel].threads == 1 for kernel in kernels[bounds[0] : bounds[-1]])
        ]
        """Those of the plan whose kernels have no parallel loops, which would want the threads that run them."""
        together = max((len(bounds) - 1 for bounds in self.branches), default=1)
        self.threads = max(self.threads, min(together, _cores_of(self.plan.target), MOST_THREADS))
        self.constants = [_aligned(array) for array in package.constants]

    def session(self) -> LlvmSession:
        """Return a session with an arena of its own."""
        return LlvmSession(self)

    def frame(self) -> LlvmFrame:
        """Return a frame, which runs the steps on arrays of a caller's."""
        return LlvmFrame(self)

    @cached_property
    def binding(self) -> Binding:
        """The steps on arguments, constants and a workspace."""
        return bound(self.plan, self._signatures)

    def __del__(self) -> None:
        for code in getattr(self, "_codes", []):
            code.close()


class LlvmFrame:
    """A workspace, and the steps on it with the pointers they take: those of arguments are set in each run.

    One frame is for one thread at a time. It keeps what it runs in memory.
    """

    def __init__(self, network: LlvmNetwork) -> None:
        binding = network.binding
        self._network = network
        self._workspace = workspace_of(max(1, binding.workspace_bytes))
        self._copies = [(s.target, s.source, s.nbytes) for s in binding.steps if isinstance(s, Copy)]
        calls = [step for step in binding.steps if not isinstance(step, Copy)]
        self._sequence = KernelSequence(
            [
                (network.addresses[c.kernel], [0 if _is_open(s) else self._address(s, ()) for s in c.slots])
                for c in calls
            ],
            network.threads,
            network.branches,
        )
        self._pointers = self._sequence.pointers
        self._holes = sorted(
            (slot.number, first + position, slot.start)
            for first, call in zip(self._sequence.first, calls, strict=True)
            for position, slot in enumerate(call.slots)
            if _is_open(slot)
        )

    def _address(self, slot: Slot, addresses: Sequence[int]) -> int:
        if slot.kind == "argument":
            return addresses[slot.number] + slot.start
        if slot.kind == "constant":
            return int(self._network.constants[slot.number].ctypes.data)
        return int(self._workspace.ctypes.data) + slot.number

    def run(self, addresses: Sequence[int]) -> None:
        """Run once on arrays at these addresses, inputs then outputs: contiguous, of the plan's types and shapes."""
        pointers = self._pointers
        for argument, place, start in self._holes:
            pointers[place] = addresses[argument] + start
        self._sequence.run()
        for target, source, nbytes in self._copies:
            ctypes.memmove(self._address(target, addresses), self._address(source, addresses), nbytes)


def _cores_of(target: str) -> int:
    """Return the threads that a plan's target is for: the word of its text, which takes no compiler to read."""
    words = dict(part.partition("=")[::2] for part in target.split()[1:])
    return int(words["cores"]) if words.get("cores", "").isdecimal() else 1


def _is_open(slot: Slot) -> bool:
    return slot.kind == "argument"


class LlvmSession:
    """An arena, and the steps on it with the pointers they take."""

    def __init__(self, network: LlvmNetwork) -> None:
        self._network = network
        self._arena = _arena(network.plan)
        self._caches: tuple[int, HostCaches] | None = None
        self._sequence = KernelSequence(
            [
                (network.addresses[step.kernel], [self._address(place) for place in (*step.places, *step.workspaces)])
                for step in network.plan.steps
            ],
            network.threads,
            network.branches,
        )

    def _address(self, place: Place) -> int:
        if place.is_constant:
            return int(self._network.constants[place.number].ctypes.data)
        return int(self._arena.ctypes.data) + place.number

    def _array(self, port: Port) -> Array:
        if port.place.is_constant:
            return self._network.constants[port.place.number]
        stretch = self._arena[port.place.number : port.place.number + port.nbytes]
        return stretch.view(np.dtype(port.dtype)).reshape(port.shape)

    def write(self, port: Port, array: Array) -> None:
        self._array(port)[...] = array

    def read(self, port: Port, array: Array) -> None:
        array[...] = self._array(port)

    def run(self) -> None:
        self._sequence.run()

    def finish(self) -> None:
        """Do nothing: `run` returns when all is complete."""

    @property
    def cache_bytes(self) -> int:
        return host_cache_bytes()

    def flush(self, nbytes: int) -> None:
        if self._caches is None or self._caches[0] != nbytes:
            self._caches = (nbytes, HostCaches(nbytes))
        self._caches[1].flush()

    def time(self, number: int) -> float:
        start_s = time.perf_counter()
        self._sequence.run_often(number)
        return time.perf_counter() - start_s

    def time_steps(self) -> list[float]:
        times_s = []
        for number in range(len(self._network.plan.steps)):
            start_s = time.perf_counter()
            self._sequence.run_one(number)
            times_s.append(time.perf_counter() - start_s)
        return times_s


def _arena(plan: Plan) -> Array:
    require_memory(plan, available_bytes(), "this machine now")
    return workspace_of(max(1, plan.arena_bytes))


def _aligned(array: Array) -> Array:
    return array if array.ctypes.data % 64 == 0 and array.flags.c_contiguous else aligned_copy(array)


def load(package: Package, index: int = 0) -> LlvmNetwork:
    """Load a network's kernels; there is one CPU.

    PackageError where they are for another model of CPU, or use instructions that this one does not have.
    """
    if index:
        raise ValueError(f"there is no CPU {index}")
    options = dict(part.partition("=")[::2] for part in package.plan.target.split()[1:])
    wanted, here = options.get("model", ANY_MODEL), host_model()
    if "arch" not in options and wanted not in (here, ANY_MODEL, *CPU_MODELS):
        raise PackageError(
            f"network {package.plan.name} is compiled for {wanted}, this CPU is {here}: compile it again"
        )
    return LlvmNetwork(package)
