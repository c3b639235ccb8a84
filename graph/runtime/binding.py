"""A plan bound to arrays of a caller's: kernels read inputs and write outputs where the caller has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ...backends.llvm.bound_calls import Call, Copy, Slot
from .memory import Live, arrange
from .plan import Place, Plan, Port, Step
from .signature import Signature


@dataclass(frozen=True)
class Binding:
    """Calls of kernels and copies in order; arguments are the inputs, then the outputs."""

    steps: tuple[Call | Copy, ...]
    workspace_bytes: int


def bound(plan: Plan, signatures: Sequence[Signature]) -> Binding:
    """Bind the steps of a plan to arrays of a caller's; `signatures` are those of its kernels.

    In a plan, inputs and outputs lie in the arena. Here only what is between them lies in a workspace, and is arranged
    anew. An output that is an input, a constant or another output is a copy.
    """
    return _Binder(plan, signatures).binding()


class _Binder:
    def __init__(self, plan: Plan, signatures: Sequence[Signature]) -> None:
        self._plan, self._signatures = plan, signatures
        self._tensors: list[_Tensor] = []
        self._at: dict[int, _Tensor] = {}
        """The tensor at each byte of the arena where one begins."""

    def binding(self) -> Binding:
        inputs, outputs = self._plan.inputs, self._plan.outputs
        for number, port in enumerate(inputs):
            self._write(port.place, port.nbytes, -1).slot = Slot("argument", number)
        calls = [(step.kernel, self._tensors_of(number, step)) for number, step in enumerate(self._plan.steps)]
        copies = [self._output(port, Slot("argument", len(inputs) + number)) for number, port in enumerate(outputs)]
        between = [tensor for tensor in self._tensors if tensor.slot is None]
        offsets, workspace_bytes = arrange([tensor.live for tensor in between])
        for tensor, offset in zip(between, offsets, strict=True):
            tensor.slot = Slot("workspace", offset)
        steps: list[Call | Copy] = [Call(kernel, tuple(_slot(*each) for each in tensors)) for kernel, tensors in calls]
        return Binding((*steps, *filter(None, copies)), workspace_bytes)

    def _tensors_of(self, number: int, step: Step) -> list[tuple[_Tensor, int]]:
        """Return what a step reads, from which byte on, and writes, its workspace last; what it writes are new."""
        kernel = self._signatures[step.kernel]
        found = []
        for argument, place in zip(kernel.arguments, step.places, strict=True):
            nbytes = prod(argument.shape) * np.dtype(argument.dtype).itemsize
            found.append((self._write(place, nbytes, number), 0) if argument.is_output else self._read(place, number))
        for nbytes, place in zip(kernel.workspaces, step.workspaces, strict=True):
            if nbytes:
                found.append((self._write(place, nbytes, number), 0))
        return found

    def _write(self, place: Place, nbytes: int, step: int) -> _Tensor:
        tensor = self._at[place.number] = _Tensor(Live(nbytes, step, step))
        self._tensors.append(tensor)
        return tensor

    def _read(self, place: Place, step: int) -> tuple[_Tensor, int]:
        if place.is_constant:
            return _Tensor(Live(0, step, step), Slot("constant", place.number)), 0
        start = self._start_of(place) if place.kind == "part" else place.number
        tensor = self._at[start]
        tensor.live = replace(tensor.live, last=step)
        return tensor, place.number - start

    def _start_of(self, part: Place) -> int:
        """The byte of the arena where the tensor begins that a place is a part of: of all that lay there, the last."""
        around = [
            (tensor.live.first, start)
            for start, tensor in self._at.items()
            if start <= part.number < start + tensor.live.nbytes
        ]
        return max(around)[1]

    def _output(self, port: Port, slot: Slot) -> Copy | None:
        """Have a tensor written to an output, or return the copy that it takes."""
        tensor, start = self._read(port.place, len(self._plan.steps))
        assert not start, "an output of a network is a whole tensor"
        if tensor.slot is not None:
            return Copy(tensor.slot, slot, port.nbytes)
        tensor.slot = slot
        return None


@dataclass
class _Tensor:
    """A tensor of a plan: its lifetime, and where it lies, once that is known."""

    live: Live
    slot: Slot | None = None


def _slot(tensor: _Tensor, start: int) -> Slot:
    assert tensor.slot is not None
    if tensor.slot.kind == "workspace":
        return Slot("workspace", tensor.slot.number + start)
    return replace(tensor.slot, start=start)
