"""An operator with its templates: a function from shapes to tensors, and the loops to tile on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..computation import Computation, Workload, from_shapes, start
from ..dialects.te import ComputeOp, ReadOp
from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.operator import Condition, TemplateOperator
from ..search.template.registry import register_operator, template
from ..te import Tensor
from . import _cpu, _gpu, _mali

PHASES = ("py", "px")
"""Loops over the phases of a transposed convolution's output, which has one with strides of 1."""

Make = Callable[..., Sequence[Tensor]]
Tiled = Callable[[Config, Workload], Schedule]


@dataclass(frozen=True)
class Cpu:
    """The loops of `_cpu.tiled`: a vector of `column` for some steps of `row`."""

    outer: tuple[str, ...]
    row: str
    column: str
    reduce: tuple[str, ...]
    packed: tuple[str, ...] = ()

    def tiled(self, cfg: Config, workload: Workload) -> Schedule:
        made = start(cfg, workload)
        _require_loops(made, self.row, self.column, *self.reduce)
        outer, packed = _those_in(made, self.outer), _those_in(made, self.packed)
        return _cpu.tiled(cfg, made, outer, self.row, self.column, self.reduce, packed)


@dataclass(frozen=True)
class Gpu:
    """The loops of `_gpu.tiled` and `_mali.tiled`: `spatial` ones on axes up to x, `outer` ones beside the first."""

    spatial: tuple[str, ...]
    reduce: tuple[str, ...]
    outer: tuple[str, ...]

    def tiled(self, cfg: Config, workload: Workload) -> Schedule:
        made = start(cfg, workload)
        _require_loops(made, *self.spatial, *self.reduce)
        return _gpu.tiled(cfg, made, self.spatial, self.reduce, _those_in(made, self.outer))

    def tiled_for_mali(self, cfg: Config, workload: Workload) -> Schedule:
        made = start(cfg, workload)
        _require_loops(made, *self.spatial, *self.reduce)
        return _mali.tiled(cfg, made, self.spatial, self.reduce, _those_in(made, self.outer))


def _require_loops(made: Computation, *names: str) -> None:
    """ValueError where a computation lacks loops that are tiled, as a transposed convolution of one pixel does."""
    missing = [name for name in names if name not in made.loops]
    if missing:
        has = ", ".join(made.loops)
        raise ValueError(f"the template tiles loop '{missing[0]}', the computation has {has} alone")


def _those_in(made: Computation, names: Sequence[str]) -> list[str]:
    """Return the names but those of phases that a computation has no loops over, as its strides are 1."""
    return [name for name in names if name not in PHASES or name in made.loops]


def operator(
    loops: str, cpu: Cpu, gpu: Gpu, when: Condition | None = None, optional: tuple[str, ...] = ()
) -> Callable[[Make], Callable[..., Workload]]:
    """Register an operator, and its templates under its name with `_cpu`, `_gpu` and `_mali`.

    `loops`, `when` and `optional` are those of a TemplateOperator. The decorated function also takes a network's group
    as text.
    """

    def register(make: Make) -> Callable[..., Workload]:
        register_operator(TemplateOperator(make.__name__, make, loops, when, optional))
        return register_templates(make, cpu.tiled, gpu.tiled, gpu.tiled_for_mali)

    return register


def register_templates(make: Make, cpu: Tiled, gpu: Tiled, mali: Tiled) -> Callable[..., Workload]:
    """Register what schedules a function's tensors on each kind of device, under its name with the device's.

    Returns the function, which then also takes the text of a module.
    """
    workload = from_shapes(make)
    for device, tiled in (("cpu", cpu), ("gpu", gpu), ("mali", mali)):
        _register(f"{make.__name__}_{device}", workload, tiled)
    return workload


def _register(name: str, workload: Callable[..., Workload], tiled: Tiled) -> None:
    def scheduled(cfg: Config, *args: Any) -> Schedule:
        return tiled(cfg, workload(*args))

    scheduled.__module__, scheduled.__name__, scheduled.__qualname__ = workload.__module__, name, name
    scheduled.__doc__ = workload.__doc__
    template(name)(scheduled)


def grouped(reduction: ComputeOp) -> bool:
    """Return whether a convolution reads other channels for other filters."""
    data, *_ = _reads(reduction)
    return any("ff" in index.axes() for index in data.indices.data)


def transposed(reduction: ComputeOp) -> bool:
    """Return whether a convolution reads its filters from the end, or by phases of strides."""
    if any(axis.name in PHASES for axis in reduction.axes.data):
        return True
    return any(index.coefficient("rx") < 0 for read in _reads(reduction) for index in read.indices.data)


def _reads(reduction: ComputeOp) -> list[ReadOp]:
    return [op for op in reduction.body.block.ops if isinstance(op, ReadOp)]
