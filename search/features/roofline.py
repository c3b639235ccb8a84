"""Lower bounds of a stage's time: by arithmetic, by what memory must deliver, by latency."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.target import WARP
from ...passes.parametric.sizes import Size, ceil_div, equal, less, maximum, minimum, total, where
from .lanes import bank_conflicts, distinct_parts, sectors, vector_step, vector_width
from .machine import SECTOR_BYTES, Machine, machine_of
from .movement import Movement, once
from .occupancy import KernelLaunch
from .view import NestView, StageView


@dataclass(frozen=True)
class Bounds:
    """Seconds that a stage takes at least by each resource, all cores at work as far as its tasks go."""

    arithmetic_s: Size
    issue_s: Size
    far_s: Size
    near_s: Size
    inner_s: Size
    latency_s: Size

    @property
    def longest_s(self) -> Size:
        """The largest of them."""
        return maximum(self.arithmetic_s, self.issue_s, self.far_s, self.near_s, self.inner_s, self.latency_s)


def bounds_of(
    nest: NestView, view: StageView, launch: KernelLaunch, machine: Machine | None = None, fused: bool = False
) -> Bounds:
    """The bounds of one stage of a kernel, on a machine of nominal figures unless others are given.

    With `fused`, a multiplication and an addition are issued as one instruction, and what threads of a warp share comes
    once from shared memory; cost models learned without.
    """
    machine = machine or machine_of(nest.target)
    if nest.target.is_gpu:
        return _gpu_bounds(view, launch, machine, fused)
    return _cpu_bounds(nest, view, machine)


def unique_bytes(view: StageView, movement: Movement) -> Size:
    """Bytes that an access touches in all iterations of the stage."""
    return view.footprint(movement, *_ALL).size_bytes


_ALL = ("block", "parallel", "thread", "vthread", "serial", "unrolled", "lane")


@once
def body_requests(view: StageView, movement: Movement) -> Size:
    """Loads or stores of one run of the straight-line code: a vector where its lanes lie side by side."""
    elements = view.body_footprints[view.movements.index(movement)].elements
    return elements / minimum(vector_width(view, movement), elements)


def _cpu_bounds(nest: NestView, view: StageView, machine: Machine) -> Bounds:
    hertz = machine.clock_hz * machine.cores * _busy(view.tasks, machine.cores)
    width = nest.target.vector_bytes
    lanes = minimum(view.lanes, maximum(1, width // 4))
    arithmetic = view.iterations * view.operations / (4.0 * lanes)
    issue = view.trips * total([_vector_requests(view, m, width) for m in view.movements]) / 2.0
    chain = view.trips * machine.latency_cycles if view.stage.is_reduction else view.trips
    touched = total([f.size_bytes for f in view.body_footprints])
    l1, l2 = traffic(view, nest.target.l1_bytes), traffic(view, nest.target.l2_bytes)
    return Bounds(
        arithmetic_s=arithmetic / hertz,
        issue_s=issue / hertz,
        far_s=l2 / (machine.far_bytes_per_cycle * hertz),
        near_s=l1 / (machine.near_bytes_per_cycle * hertz),
        inner_s=view.trips * touched / (machine.inner_bytes_per_cycle * hertz),
        latency_s=chain / hertz,
    )


def _vector_requests(view: StageView, movement: Movement, width: int) -> Size:
    """Loads or stores in one run of the code, counted in vectors of the machine; lanes apart are loads each."""
    elements = view.body_footprints[view.movements.index(movement)].elements
    step = vector_step(view, movement)
    packed = maximum(1, elements * movement.element_bytes / width)
    return where(less(1, step), elements, where(equal(step, 1), packed, elements))


def traffic(view: StageView, cache_bytes: int) -> Size:
    """Bytes into a cache: in the outermost loop whose data fits it, that data once for each iteration around."""
    result: Size = view.iterations * total([m.element_bytes for m in view.movements])
    inside: Size = 1
    apart = view.loops_of("block", "parallel")
    for loop, together in view.touched:
        if loop in apart:
            break
        inside = inside * loop.extent
        result = where(less(together, cache_bytes), together * (view.iterations / inside), result)
    return result


def _gpu_bounds(view: StageView, launch: KernelLaunch, machine: Machine, fused: bool) -> Bounds:
    pairs = min(view.stage.arithmetic.get("add", 0), view.stage.arithmetic.get("multiply", 0)) if fused else 0
    threads = maximum(1, view.tasks * view.threads)
    warps_in_all = maximum(1, threads / WARP)
    per_warp = view.trips / threads
    cores = _busy(launch.blocks, machine.cores * launch.resident) * machine.cores
    hertz = machine.clock_hz * cores
    arithmetic = view.iterations * view.operations / machine.operations_per_cycle
    near: Size = 0
    inner: Size = 0
    far: Size = 0
    issued: Size = view.body_iterations * (view.operations - pairs)
    for movement in view.movements:
        scope = movement.access.buffer.scope
        if scope == "local":
            continue
        requests = body_requests(view, movement)
        issued = issued + requests
        served = warps_in_all * per_warp * requests
        if scope == "shared":
            words = vector_width(view, movement) * movement.element_bytes / 4
            parts = distinct_parts(view, movement) if fused else words
            inner = inner + served * bank_conflicts(view, movement) * parts
        else:
            near = near + served * sectors(view, movement) * SECTOR_BYTES
            far = far + unique_bytes(view, movement)
    issue = warps_in_all * per_warp * issued / 4.0
    in_flight = maximum(1, launch.warps)
    depth = per_warp * machine.latency_cycles * launch.waves
    return Bounds(
        arithmetic_s=arithmetic / hertz,
        issue_s=issue / hertz,
        far_s=far / (machine.far_bytes_per_cycle * hertz),
        near_s=near / (machine.near_bytes_per_cycle * hertz),
        inner_s=inner / hertz,
        latency_s=depth * maximum(1, issued / 4.0 / in_flight) / machine.clock_hz,
    )


def _busy(tasks: Size, places: Size) -> Size:
    """The average share of the places that are at work while the tasks run in waves."""
    return tasks / (ceil_div(tasks, places) * places)
