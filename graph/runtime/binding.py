"""A plan bound to arrays of a caller's: kernels read inputs and write outputs where the caller has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ...backends.llvm.bound_calls import Call, Copy, Slot
from .memory import Live, arrange, beside
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
            self._write(port.place, port.nbytes, -1).block.slot = Slot("argument", number)
        calls = [(step.kernel, self._tensors_of(number, step)) for number, step in enumerate(self._plan.steps)]
        copied = [self._output(port, Slot("argument", len(inputs) + number)) for number, port in enumerate(outputs)]
        between = [block for block in {id(t.block): t.block for t in self._tensors}.values() if block.slot is None]
        offsets, workspace_bytes = arrange([beside(block.live, self._plan.branches) for block in between])
        for block, offset in zip(between, offsets, strict=True):
            block.slot = Slot("workspace", offset)
        steps: list[Call | Copy] = [Call(kernel, tuple(_slot(*each) for each in tensors)) for kernel, tensors in calls]
        copies = [Copy(_slot(tensor, 0), slot, nbytes) for tensor, slot, nbytes in filter(None, copied)]
        return Binding((*steps, *copies), workspace_bytes)

    def _tensors_of(self, number: int, step: Step) -> list[tuple[_Tensor, int]]:
        """Return what a step reads, from which byte on, and writes, its workspace last; what it writes are new."""
        kernel = self._signatures[step.kernel]
        found = []
        for argument, place in zip(kernel.arguments, step.places, strict=True):
            nbytes = prod(argument.shape) * np.dtype(argument.dtype).itemsize
            written = argument.is_output
            found.append((self._write(place, nbytes, number), 0) if written else self._read(place, nbytes, number))
        for nbytes, place in zip(kernel.workspaces, step.workspaces, strict=True):
            if nbytes:
                found.append((self._write(place, nbytes, number), 0))
        return found

    def _write(self, place: Place, nbytes: int, step: int) -> _Tensor:
        block = _Block(place.number, Live(nbytes, step, step))
        tensor = self._at[place.number] = _Tensor(place.number, nbytes, step, block)
        self._tensors.append(tensor)
        return tensor

    def _read(self, place: Place, nbytes: int, step: int) -> tuple[_Tensor, int]:
        if place.is_constant:
            return _Tensor(0, 0, step, _Block(0, Live(0, step, step), Slot("constant", place.number))), 0
        held = self._held(place, nbytes)
        for other in held[1:]:
            self._join(held[0].block, other.block)
        held[0].block.live = replace(held[0].block.live, last=step)
        return held[0], place.number - held[0].start

    def _held(self, place: Place, nbytes: int) -> list[_Tensor]:
        """Return the tensors that hold bytes of the arena, in order: of all that lay there, those written last."""
        start, end = place.number, place.number + max(1, nbytes)
        if place.kind == "arena" and self._at[start].end >= end:
            return [self._at[start]]
        around = [tensor for tensor in self._at.values() if tensor.start < end and start < tensor.end]
        held: list[_Tensor] = []
        for tensor in sorted(around, key=lambda t: t.written, reverse=True):
            if all(tensor.end <= other.start or other.end <= tensor.start for other in held):
                held.append(tensor)
        return sorted(held, key=lambda t: t.start)

    def _join(self, block: _Block, other: _Block) -> None:
        """Have the tensors of two blocks lie as they do in the arena."""
        if block is other:
            return
        start = min(block.start, other.start)
        end = max(block.start + block.live.nbytes, other.start + other.live.nbytes)
        first, last = min(block.live.first, other.live.first), max(block.live.last, other.live.last)
        block.start, block.live = start, Live(end - start, first, last)
        for tensor in self._tensors:
            if tensor.block is other:
                tensor.block = block

    def _output(self, port: Port, slot: Slot) -> tuple[_Tensor, Slot, int] | None:
        """Have a tensor written to an output, or return what is copied to it, and how many bytes."""
        tensor, start = self._read(port.place, port.nbytes, len(self._plan.steps))
        assert not start, "an output of a network is a whole tensor"
        block = tensor.block
        if block.slot is not None or (block.start, block.live.nbytes) != (port.place.number, port.nbytes):
            return tensor, slot, port.nbytes
        block.slot = slot
        return None


@dataclass
class _Block:
    """Bytes that lie side by side, from a byte of the arena on: their lifetime, and where they lie, once known."""

    start: int
    live: Live
    slot: Slot | None = None


@dataclass(eq=False)
class _Tensor:
    """A stretch that a step wrote, in a block of its own or with what a later step reads together with it."""

    start: int
    nbytes: int
    written: int
    block: _Block

    @property
    def end(self) -> int:
        return self.start + max(1, self.nbytes)


def _slot(tensor: _Tensor, start: int) -> Slot:
    slot, behind = tensor.block.slot, tensor.start - tensor.block.start + start
    assert slot is not None
    if slot.kind == "workspace":
        return Slot("workspace", slot.number + behind)
    return replace(slot, start=behind)
