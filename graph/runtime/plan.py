"""What running a compiled network takes: its tensors' places in memory, and the kernels that are called on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import prod
from typing import Any

import numpy as np

from ...dialects.numpy_types import teach_numpy

ALIGNMENT = 256
"""Tensors start on multiples of so many bytes: cache lines of CPUs, and what buffers within buffers need on GPUs."""


class PlanError(ValueError):
    """What was read is no plan."""


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
        """Read what `to_json` returned; PlanError says what is missing, or of the wrong kind."""
        made = _fields(Plan, values, "the plan")
        made["inputs"], made["outputs"] = (_ports(made[kind], kind) for kind in ("inputs", "outputs"))
        made["steps"] = tuple(_step(s, f"step {n}") for n, s in enumerate(_listed(made["steps"], "steps")))
        kernels = enumerate(_listed(made["kernels"], "kernels"))
        constants = enumerate(_listed(made["constants"], "constants"))
        made["constants"] = tuple(_constant(c, f"constant {n}") for n, c in constants)
        made["kernels"] = tuple(KernelInfo(**_fields(KernelInfo, k, f"kernel {n}")) for n, k in kernels)
        return Plan(**made)

    def check(self) -> None:
        """PlanError where a step or a port names a kernel, a constant or bytes that there are not."""
        if self.target.partition(" ")[0] not in ("llvm", "cuda", "opencl"):
            raise PlanError(f"there is no target '{self.target}'")
        if not isinstance(self.versions, Mapping):
            raise PlanError("its versions are no object")
        for number, step in enumerate(self.steps):
            if not 0 <= step.kernel < len(self.kernels):
                raise PlanError(f"step {number} calls kernel {step.kernel}, there are {len(self.kernels)}")
            for place in (*step.places, *step.workspaces):
                self._check_place(place, 0, f"step {number}")
        for port in (*self.inputs, *self.outputs):
            self._check_place(port.place, port.nbytes, f"'{port.name}'")

    def _check_place(self, place: Place, nbytes: int, where: str) -> None:
        limit = len(self.constants) - 1 if place.is_constant else self.arena_bytes - nbytes
        if place.kind not in ("arena", "constant") or not 0 <= place.number <= limit:
            raise PlanError(f"{where} lies at {place.kind} {place.number}, which there is not")


def _fields(kind: type, values: Any, what: str) -> dict[str, Any]:
    """The fields of a dataclass, each of the plain type that it is declared with."""
    if not isinstance(values, Mapping):
        raise PlanError(f"{what} is no object")
    known = {f.name: f for f in fields(kind)}
    for name in (*values, *known):
        if name not in known or name not in values:
            raise PlanError(f"{what} has {'no' if name in known else 'an unknown'} field '{name}'")
    for name, field_ in known.items():
        wanted = _PLAIN.get(str(field_.type))
        if wanted is not None and type(values[name]) is not wanted:
            raise PlanError(f"{what}: field '{name}' is {values[name]!r}, not of type {field_.type}")
    return dict(values)


_PLAIN = {"str": str, "int": int, "bool": bool}


def _listed(values: Any, what: str) -> Sequence[Any]:
    if not isinstance(values, list | tuple):
        raise PlanError(f"its {what} are no list")
    return values


def _ports(values: Any, what: str) -> tuple[Port, ...]:
    made = [_fields(Port, v, f"one of the {what}") for v in _listed(values, what)]
    for v in made:
        try:
            teach_numpy(v["dtype"])
            np.dtype(v["dtype"])
        except TypeError:
            raise PlanError(f"'{v['name']}' has elements of an unknown type {v['dtype']}") from None
        v["place"] = _place(v["place"], f"'{v['name']}'")
        v["shape"] = tuple(_listed(v["shape"], "extents"))
        if not all(type(n) is int and n >= 0 for n in v["shape"]):
            raise PlanError(f"'{v['name']}' has the shape {v['shape']}")
    return tuple(Port(**v) for v in made)


def _constant(values: Any, what: str) -> ConstantInfo:
    made = _fields(ConstantInfo, values, what)
    for name in ("shape", "axes", "layout"):
        made[name] = tuple(_listed(made[name], f"{name} of {what}"))
    return ConstantInfo(**made)


def _step(values: Any, what: str) -> Step:
    made = _fields(Step, values, what)
    for name in ("places", "workspaces"):
        made[name] = tuple(_place(v, what) for v in _listed(made[name], name))
    return Step(**made)


def _place(values: Any, what: str) -> Place:
    return Place(**_fields(Place, values, f"a place of {what}"))
