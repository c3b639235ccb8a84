"""Networks as object files and shared libraries with a C header, to be called where there is no Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from os import PathLike
from pathlib import Path

import numpy as np

from ..backends.llvm.c_function import Call, CFunction, Copy, Slot, c_name, require_reach
from ..backends.llvm.emit import KernelText, emit
from ..backends.llvm.host import cpu_of
from ..backends.llvm.library import check_path, write_library
from ..backends.scheduled import scheduled_kernel
from ..backends.signature import Argument
from ..dialects.target import Target
from .runtime.memory import Live, arrange
from .runtime.network import CompiledNetwork
from .runtime.package import Package
from .runtime.plan import Place, Port, Step
from .runtime.signature import Signature, signature_of


class CpuNetwork(CompiledNetwork):
    """A network compiled here for a CPU, which can be taken elsewhere: `workloads` are its kernels as te-level IR."""

    def __init__(self, package: Package, target: Target, workloads: Sequence[str]) -> None:
        super().__init__(package)
        self._target = target
        self._workloads = tuple(workloads)

    def export_library(self, path: str | PathLike[str], name: str | None = None) -> Path:
        """Write the network as an object file (`.o`) or a shared library (`.so`), and a C header beside it.

        Returns the header's path. The function is `lw_<name>`, of the network's name unless another one is given: two
        in one program need two names. It takes pointers to inputs and outputs, which it uses where they are, and to a
        workspace for what lies between them; constants are part of the file. ValueError for one that has more of
        these than code can reach.
        """
        who = f"network {self.plan.name}"
        check_path(who, Path(path))
        require_reach(who, self.package.constants)
        function = _Binding(self.package, self._texts()).function(c_name(self.plan.name if name is None else name))
        return write_library(function, path, cpu_of(self._target))

    def _texts(self) -> list[KernelText]:
        """Lower the kernels again: their artifacts are machine code for a process that loads it."""
        texts = [
            emit(scheduled_kernel(workload, kernel.schedule))
            for workload, kernel in zip(self._workloads, self.plan.kernels, strict=True)
        ]
        for text, artifact in zip(texts, self.package.kernels, strict=True):
            assert Signature(text.arguments, (text.workspace_bytes,)) == signature_of("llvm", artifact)
        return texts


class _Binding:
    """Binds the steps of a plan to arrays of a caller's.

    In a plan, inputs and outputs lie in the arena. Here kernels read and write them where the caller has them, and the
    others are arranged anew. An output that is an input, a constant or another output is a copy.
    """

    def __init__(self, package: Package, kernels: Sequence[KernelText]) -> None:
        self._package, self._plan, self._kernels = package, package.plan, kernels
        self._tensors: list[_Tensor] = []
        self._at: dict[int, _Tensor] = {}
        """The tensor at each byte of the arena where one begins."""

    def function(self, name: str) -> CFunction:
        """Return the function that makes the plan's steps."""
        inputs, outputs = self._plan.inputs, self._plan.outputs
        for number, port in enumerate(inputs):
            self._write(port.place, port.nbytes, -1).slot = Slot("argument", number)
        calls = [(step.kernel, self._tensors_of(number, step)) for number, step in enumerate(self._plan.steps)]
        copies = [self._output(port, Slot("argument", len(inputs) + number)) for number, port in enumerate(outputs)]
        between = [tensor for tensor in self._tensors if tensor.slot is None]
        offsets, workspace_bytes = arrange([tensor.live for tensor in between])
        for tensor, offset in zip(between, offsets, strict=True):
            tensor.slot = Slot("workspace", offset)
        return CFunction(
            what="network",
            name=name,
            arguments=(*(_argument(port, False) for port in inputs), *(_argument(port, True) for port in outputs)),
            kernels=tuple(self._kernels),
            steps=(*(Call(kernel, tuple(map(_slot, tensors))) for kernel, tensors in calls), *filter(None, copies)),
            constants=self._package.constants,
            workspace_bytes=workspace_bytes,
        )

    def _tensors_of(self, number: int, step: Step) -> list[_Tensor]:
        """Return what a step reads and writes, its workspace last; what it writes are new tensors."""
        kernel = self._kernels[step.kernel]
        found = []
        for argument, place in zip(kernel.arguments, step.places, strict=True):
            nbytes = prod(argument.shape) * np.dtype(argument.dtype).itemsize
            found.append(self._write(place, nbytes, number) if argument.is_output else self._read(place, number))
        if kernel.workspace_bytes:
            found.append(self._write(step.workspaces[0], kernel.workspace_bytes, number))
        return found

    def _write(self, place: Place, nbytes: int, step: int) -> _Tensor:
        tensor = self._at[place.number] = _Tensor(Live(nbytes, step, step))
        self._tensors.append(tensor)
        return tensor

    def _read(self, place: Place, step: int) -> _Tensor:
        if place.is_constant:
            return _Tensor(Live(0, step, step), Slot("constant", place.number))
        tensor = self._at[place.number]
        tensor.live = replace(tensor.live, last=step)
        return tensor

    def _output(self, port: Port, slot: Slot) -> Copy | None:
        """Have a tensor written to an output, or return the copy that it takes."""
        tensor = self._read(port.place, len(self._plan.steps))
        if tensor.slot is not None:
            return Copy(tensor.slot, slot, port.nbytes)
        tensor.slot = slot
        return None


@dataclass
class _Tensor:
    """A tensor of a plan: its lifetime, and where it lies, once that is known."""

    live: Live
    slot: Slot | None = None


def _slot(tensor: _Tensor) -> Slot:
    assert tensor.slot is not None
    return tensor.slot


def _argument(port: Port, is_output: bool) -> Argument:
    return Argument(port.name, port.dtype, port.shape, is_output)
