"""The plan of a compiled network: where its tensors lie in memory, and the kernels that are called on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

import numpy as np

from ...storage.typed_json import TypeMismatch, read_as

ALIGNMENT = 256
"""Tensors start on multiples of so many bytes: cache lines of CPUs, and what buffers within buffers need on GPUs."""


class PlanError(ValueError):
    """Raised where the text read is no plan."""


@dataclass(frozen=True)
class Place:
    """The place of a tensor: a byte of the arena, or the number of a constant.

    The kind is `arena` for a whole tensor, `part` for some of the elements of one that lie side by side, which a step
    reads or writes as a tensor, and `constant`.
    """

    kind: str
    number: int

    @property
    def is_constant(self) -> bool:
        return self.kind == "constant"


@dataclass(frozen=True)
class Port:
    """An input or an output of the network."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    place: Place

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Step:
    """One call of a kernel, by its number, on tensors (inputs, then outputs) and workspaces."""

    kernel: int
    label: str
    places: tuple[Place, ...]
    workspaces: tuple[Place, ...] = ()


@dataclass(frozen=True)
class KernelInfo:
    """A description of a kernel: its operators, arithmetic operations, and the schedule that made it."""

    label: str
    workload_key: str
    flops: int
    schedule: str
    tuned: bool
    bytes_moved: int = 0

    @property
    def is_winograd(self) -> bool:
        """True where a convolution in it is computed by Winograd's transforms."""
        return "_winograd" in self.label


@dataclass(frozen=True)
class ConstantInfo:
    """A constant as the network has it, and how its elements were laid out for the kernels that read it.

    `axes` names the dimensions of `shape`; `layout` has an item for each dimension of what is kept, over these names:
    `ff/16` are tiles of 16, `ff%16` the place in a tile, `rc*ry` both axes as one. Both are empty where it is kept as
    it is.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    axes: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.layout:
            return f"{self.name}: {self.dtype}{list(self.shape)}"
        named = ", ".join(f"{axis}={extent}" for axis, extent in zip(self.axes, self.shape, strict=True))
        return f"{self.name}: {self.dtype}[{named}] packed as [{', '.join(self.layout)}]"


@dataclass(frozen=True)
class KeptOperator:
    """An operator that computes in float32 in a network that was compiled in a 16-bit float, and why."""

    name: str
    operator: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.operator}): {self.reason}"


@dataclass(frozen=True)
class Plan:
    """A network as steps on one stretch of memory."""

    name: str
    target: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    steps: tuple[Step, ...]
    kernels: tuple[KernelInfo, ...]
    constants: tuple[ConstantInfo, ...]
    arena_bytes: int
    tensor_bytes: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    kept_fp32: tuple[KeptOperator, ...] = ()
    branches: tuple[tuple[int, ...], ...] = ()
    """Steps in a row of which some may run beside others: where each branch begins, and the end of the last."""

    @property
    def kind(self) -> str:
        """The kind of the target: llvm, cuda or opencl."""
        return self.target.split(maxsplit=1)[0]

    @property
    def flops(self) -> int:
        """Arithmetic operations of one run."""
        return sum(self.kernels[step.kernel].flops for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Any) -> Plan:
        """Read what `to_json` returned; PlanError says what is missing, or of another type than it is declared with.

        `check_plan` says whether it can be run.
        """
        try:
            plan: Plan = read_as(Plan, values, "the plan")
        except TypeMismatch as error:
            raise PlanError(str(error)) from None
        return plan
