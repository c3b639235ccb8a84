"""The limits of each block of a schedule: seconds that each resource takes at least, and which one binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import Target
from ...passes.parametric.read import nest_of_candidate
from ...passes.parametric.sizes import Size, ceil_div, minimum
from ..features.machine import Machine, machine_of
from ..features.occupancy import KernelLaunch, launch_of
from ..features.roofline import Bounds, bounds_of
from ..features.view import NestView, StageView
from ..measure.limits import Limits

CPU_RESOURCES = ("arithmetic", "issue", "memory", "L2", "L1", "latency")
GPU_RESOURCES = ("arithmetic", "issue", "memory", "L2", "shared memory", "latency")
"""Resources in the order of the fields of `Bounds`."""
OCCUPANCY = "occupancy"
"""The limit of a block that latency binds, of which as many warps as a multiprocessor can hold would hide some."""
_HIDDEN = 0.8
"""Part of the latency's time that is left then, below which the lack of warps is what binds. A choice: it decides a
word of the report, and no kernel."""


@dataclass(frozen=True)
class BlockLimits:
    """A block's arithmetic, the least seconds by resource, and the resource that takes longest.

    `occupancy` is the share of a multiprocessor's threads that are resident, `waves` the rounds of thread blocks (of
    tasks on a CPU). Times are those of a model: `Roof` says of which rates.
    """

    block: str
    flop: float
    times_s: Mapping[str, float]
    binding: str
    occupancy: float | None
    waves: float

    @property
    def longest_s(self) -> float:
        """The seconds of the resource that binds."""
        return max(self.times_s.values())


@dataclass(frozen=True)
class Roof:
    """A rate of the machine that limits are figured with, its unit, and where it is from."""

    name: str
    rate: float
    unit: str
    source: str


def machine_at(target: Target, limits: Limits | None, dtype: str | None) -> Machine:
    """The machine of the features, with the clock and the memory's rate that measured (or published) limits imply."""
    machine = machine_of(target)
    peak = None if limits is None else limits.peak(dtype)
    if limits is None or peak is None:
        return machine
    # A peak counts operations on `dtype`; the machine's are on 4-byte elements.
    wide = 2.0 if dtype == "float64" and not target.is_gpu else 1.0
    clock_hz = wide * peak * 1e9 / (machine.cores * machine.operations_per_cycle)
    if dtype != "float32" and target.is_gpu:
        clock_hz = machine.clock_hz
    bytes_per_cycle = limits.gbytes_per_s * 1e9 / (machine.cores * clock_hz)
    return replace(machine, clock_hz=clock_hz, far_bytes_per_cycle=bytes_per_cycle)


def roofs(target: Target, machine: Machine, limits: Limits | None, dtype: str | None) -> list[Roof]:
    """The rates of a machine, all cores together; what was not measured is a model's at the clock."""
    hertz = machine.clock_hz * machine.cores
    known = limits is not None and limits.peak(dtype) is not None
    source = limits.source if limits is not None and known else "nominal"
    model = "model, by cycles"
    inner = "shared memory" if target.is_gpu else "L1"
    issued = 4.0 if target.is_gpu else 2.0
    return [
        Roof("clock", machine.clock_hz / 1e9, "GHz", "follows from arithmetic" if known else "nominal"),
        Roof("arithmetic", machine.operations_per_cycle * hertz / 1e9, "GFLOP/s", source),
        Roof("memory", machine.far_bytes_per_cycle * hertz / 1e9, "GB/s", source),
        Roof("L2", machine.near_bytes_per_cycle * hertz / 1e9, "GB/s", model),
        Roof(inner, machine.inner_bytes_per_cycle * hertz / 1e9, "GB/s", model),
        Roof("issue", issued * hertz / 1e9, "G warp instructions/s" if target.is_gpu else "G loads/s", model),
        Roof("latency", machine.latency_cycles, "cycles", model),
    ]


def block_limits(module: ModuleOp, target: Target, machine: Machine) -> list[BlockLimits]:
    """The limits of each block of a scheduled module on loops."""
    view = NestView(nest_of_candidate(module, target))
    launches = {kernel: _spread(launch_of(view, kernel), machine) for kernel in view.kernels}
    return [_limits(view, stage, launches[stage.kernel], machine) for stage in view.stages]


def _spread(launch: KernelLaunch, machine: Machine) -> KernelLaunch:
    """A launch with the blocks that a multiprocessor gets, where those are fewer than it could hold."""
    return replace(launch, resident=minimum(launch.resident, ceil_div(launch.blocks, machine.cores)))


def _limits(nest: NestView, stage: StageView, launch: KernelLaunch, machine: Machine) -> BlockLimits:
    gpu = nest.target.is_gpu
    names = GPU_RESOURCES if gpu else CPU_RESOURCES
    times = _seconds(bounds_of(nest, stage, launch, machine, fused=True), names)
    binding = max(times, key=lambda name: times[name])
    if gpu and binding == "latency":
        resident = launch.on.threads // launch.threads
        full = replace(launch, resident=resident, waves=ceil_div(launch.blocks, resident * machine.cores))
        filled = _seconds(bounds_of(nest, stage, full, machine, fused=True), names)
        binding = OCCUPANCY if filled["latency"] < _HIDDEN * times["latency"] else binding
    operations = sum(stage.stage.arithmetic.values()) if stage.stage.arithmetic else 0
    occupancy = _number(launch.occupancy) if gpu else None
    flop = _number(stage.iterations) * operations
    return BlockLimits(stage.stage.name, flop, times, binding, occupancy, _number(launch.waves))


def _seconds(bounds: Bounds, names: tuple[str, ...]) -> dict[str, float]:
    return {name: _number(getattr(bounds, field.name)) for name, field in zip(names, fields(bounds), strict=True)}


def _number(size: Size) -> float:
    assert isinstance(size, int | float), "the IR of one schedule has numbers only"
    return float(size)
