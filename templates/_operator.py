"""An operator with its templates: a function from shapes to tensors, and the loops to tile on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..computation import Workload, from_shapes, start
from ..dialects.te import ComputeOp, ReadOp
from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.operator import Condition, TemplateOperator
from ..search.template.registry import register_operator, template
from ..te import Tensor
from . import _cpu, _gpu, _mali

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
        return _cpu.tiled(cfg, start(cfg, workload), self.outer, self.row, self.column, self.reduce, self.packed)


@dataclass(frozen=True)
class Gpu:
    """The loops of `_gpu.tiled` and `_mali.tiled`: `spatial` ones on axes up to x, `outer` ones beside the first."""

    spatial: tuple[str, ...]
    reduce: tuple[str, ...]
    outer: tuple[str, ...]

    def tiled(self, cfg: Config, workload: Workload) -> Schedule:
        return _gpu.tiled(cfg, start(cfg, workload), self.spatial, self.reduce, self.outer)

    def tiled_for_mali(self, cfg: Config, workload: Workload) -> Schedule:
        return _mali.tiled(cfg, start(cfg, workload), self.spatial, self.reduce, self.outer)


def operator(
    loops: str, cpu: Cpu, gpu: Gpu, when: Condition | None = None
) -> Callable[[Make], Callable[..., Workload]]:
    """Register an operator, and its templates under its name with `_cpu`, `_gpu` and `_mali`.

    `loops` and `when` are those of a TemplateOperator. The decorated function also takes a network's group as text.
    """

    def register(make: Make) -> Callable[..., Workload]:
        register_operator(TemplateOperator(make.__name__, make, loops, when))
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
    """Return whether a convolution reads its filters from the end."""
    return any(index.coefficient("rx") < 0 for read in _reads(reduction) for index in read.indices.data)


def _reads(reduction: ComputeOp) -> list[ReadOp]:
    return [op for op in reduction.body.block.ops if isinstance(op, ReadOp)]
