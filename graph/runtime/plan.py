"""What running a compiled network takes: its tensors' places in memory, and the kernels that are called on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

import numpy as np

from ...dialects.combiner import teach_numpy

ALIGNMENT = 256
"""Tensors start on multiples of so many bytes: cache lines of CPUs, and what buffers within buffers need on GPUs."""


@dataclass(frozen=True)
class Place:
    """Where a tensor lies: at a byte of the arena, or as the constant of a number."""

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
    """What is known of a kernel: its operators, arithmetic operations, and the schedule that made it."""

    label: str
    workload_key: str
    flops: int
    schedule: str
    tuned: bool
    bytes_moved: int = 0


@dataclass(frozen=True)
class Plan:
    """A network as steps on one stretch of memory."""

    name: str
    target: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    steps: tuple[Step, ...]
    kernels: tuple[KernelInfo, ...]
    arena_bytes: int
    tensor_bytes: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

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
    def from_json(values: Mapping[str, Any]) -> Plan:
        """Read what `to_json` returned."""
        return Plan(
            name=values["name"],
            target=values["target"],
            inputs=_ports(values["inputs"]),
            outputs=_ports(values["outputs"]),
            steps=tuple(
                Step(s["kernel"], s["label"], _places(s["places"]), _places(s["workspaces"])) for s in values["steps"]
            ),
            kernels=tuple(KernelInfo(**k) for k in values["kernels"]),
            arena_bytes=values["arena_bytes"],
            tensor_bytes=values["tensor_bytes"],
            versions=values["versions"],
        )


def _ports(values: Sequence[Mapping[str, Any]]) -> tuple[Port, ...]:
    for v in values:
        teach_numpy(v["dtype"])
    return tuple(Port(v["name"], v["dtype"], tuple(v["shape"]), Place(**v["place"])) for v in values)


def _places(values: Sequence[Mapping[str, Any]]) -> tuple[Place, ...]:
    return tuple(Place(**v) for v in values)
