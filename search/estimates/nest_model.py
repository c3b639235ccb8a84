"""Analytic model of a GPU's kernels by their nest alone, for what no rule estimates: rows, pools, elements, moves."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.multiprocessor import CLOCK_HZ, GPU_LINE_BYTES, Multiprocessor, multiprocessor_of
from ...dialects.target import WARP
from ...passes.parametric.nest import Loop, Stage
from ...passes.parametric.sizes import (
    Size,
    ceil_div,
    equal,
    less,
    maximum,
    minimum,
    negated,
    product,
    total,
    where,
)
from ...passes.parametric.usage import copies, launch_usage
from ..features.lanes import bank_conflicts, vector_width
from ..features.machine import SECTOR_BYTES
from ..features.movement import Movement
from ..features.occupancy import blocks_at_a_time
from ..features.roofline import unique_bytes
from ..features.view import NestView, StageView
from .gpu_dot_model import SHUFFLE_CYCLES
from .gpu_model import BARRIER_CYCLES, MEMORY_BYTES_PER_S
from .residency import REGISTERS_AT_ONCE, SHARED_RESERVED

LAUNCH_S = 1.08e-6
"""Seconds of a kernel that does nothing. Fitted, as are the other numbers here that say so: to 765 measured candidates
of 63 rows, pools, reductions, elements and moves (an H200; `benchmarks/samples`), by robust regression of log2 of their
times. Of 105 others that were measured afterwards what is estimated least takes 1.10 times the fastest one's time; by
the lower bounds of features 1.32 times."""
START_CYCLES = 456.0
"""Cycles of a block before its first loads have come. Fitted."""
WAIT_CYCLES, AHEAD = 122.0, 7.3
"""Cycles of a loop's loads that nothing hides, and the iterations that are under way where a loop is not unrolled.
Fitted: about half of what the second-level cache takes."""
SHARED_WAIT_CYCLES = 51.0
"""The same of loads from shared memory, of which none is ahead. Fitted."""
STEP_INSTRUCTIONS = 2.4
"""Instructions around one run of straight-line code. Fitted."""
FETCHED_BYTES_PER_CYCLE = 97.0
"""Bytes that a multiprocessor gets from the second-level cache in a cycle, where not all ask at once. Fitted."""
CACHE_BYTES_PER_S, CACHED_BYTES = 7.0e12, 4e7
"""Bandwidth of the second-level cache, fitted, and what fits it: four fifths of the 50 MB of an H200."""
BLOCK_CYCLES = 1.05
"""Cycles from the start of one block of a launch to that of the next, on all multiprocessors. Fitted: a pool in blocks
of 32 threads takes 36.8 us, of 256 threads 5.7."""
OTHER_REGISTERS = 28
"""Registers of a thread for addresses and counters. A choice between the 24 that features count and the 32 of dot
products."""
LINE_SECTORS = GPU_LINE_BYTES // SECTOR_BYTES
"""Sectors of a line of the first-level cache, of which a warp's request takes one in a cycle (CUDA C++ Best Practices
Guide, coalesced access)."""


def nest_seconds(view: NestView) -> Size:
    """A rough time of each candidate: of its kernels, one after the other."""
    return total([_kernel_seconds(view, kernel) for kernel in view.kernels])


@dataclass(frozen=True)
class _Work:
    """The work of one block in one stage: warps that work, and what each takes; bytes are of the block.

    `issued` are instructions of a warp, `served` its cycles of the first-level cache and shared memory, `waited` and
    `joined` the cycles of a thread that wait for loads, and for other threads.
    """

    warps: Size
    issued: Size
    served: Size
    fetched_bytes: Size
    waited: Size
    joined: Size

    def cycles(self, blocks: Size, on: Multiprocessor) -> Size:
        """Cycles that so many blocks on a multiprocessor take at a time."""
        warps = blocks * self.warps
        together = maximum(
            ceil_div(warps, on.schedulers) * self.issued,
            warps * self.served,
            blocks * self.fetched_bytes / FETCHED_BYTES_PER_CYCLE,
        )
        alone = self.waited + self.issued * maximum(1, self.warps / on.schedulers)
        return maximum(together, alone) + self.joined


def _kernel_seconds(view: NestView, kernel: Loop | Stage) -> Size:
    on, cores = multiprocessor_of(view.target), max(1, view.target.cores)
    stages = view.in_kernel(kernel)
    used = launch_usage(view.nest, kernel, view.kept)
    works = [_work(stage, used.threads) for stage in stages]
    blocks = maximum(1, *(stage.tasks for stage in stages))
    resident = _resident(stages, used.threads, used.shared_bytes, on)

    def cycles(at_a_time: Size) -> Size:
        return START_CYCLES + total([work.cycles(at_a_time, on) for work in works])

    whole = blocks // (cores * resident)
    rest = ceil_div(blocks - whole * cores * resident, cores)
    taken = whole * cycles(resident) + where(less(0, rest), cycles(maximum(1, rest)), 0)
    touched = _touched_bytes(stages)
    moved_s = touched / where(less(CACHED_BYTES, touched), MEMORY_BYTES_PER_S, CACHE_BYTES_PER_S)
    return maximum(maximum(taken, blocks * BLOCK_CYCLES) / CLOCK_HZ, moved_s) + LAUNCH_S


def _resident(stages: list[StageView], threads: Size, shared_bytes: Size, on: Multiprocessor) -> Size:
    """Blocks that a multiprocessor has at a time."""
    local = [m for stage in stages for m in stage.writes if m.access.buffer.scope == "local"]
    owners = {m: stage for stage in stages for m in stage.writes}
    held = total([owners[m].footprint(m, *_THREAD).elements for m in local])
    asked = ceil_div(held + OTHER_REGISTERS, REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
    registers = minimum(on.registers_per_thread, asked) * ceil_div(threads, WARP) * WARP
    return blocks_at_a_time(on, threads, registers, shared_bytes + SHARED_RESERVED)


_THREAD = ("serial", "unrolled", "lane", "vthread")


def _work(view: StageView, threads: Size) -> _Work:
    """The work of one block of so many threads in a stage."""
    warps = maximum(1, ceil_div(threads, WARP) * minimum(1, view.threads / threads))
    even = _steps_evenly(view)
    runs, requests = view.per_thread, [_request(view, m, even) for m in view.movements]
    reducing = view.stage.loop_names(reduce=True)
    across = [loop for loop in view.loops_of("thread") if loop.name in reducing]
    stored = any(m.access.buffer.scope == "shared" for m in view.writes)
    return _Work(
        warps,
        issued=runs * (view.body_iterations * view.operations + STEP_INSTRUCTIONS + total([r.count for r in requests])),
        served=runs * total([r.served for r in requests]),
        fetched_bytes=total(
            [r.fetched_bytes(view, m, runs * warps) for r, m in zip(requests, view.movements, strict=True)]
        ),
        waited=0 if across else _waited(view),
        joined=(_joined(across) if across else 0) + BARRIER_CYCLES * stored,
    )


@dataclass(frozen=True)
class _Request:
    """The loads or stores of one run of the straight-line code: their number, the sectors of each, cycles of a warp."""

    count: Size
    sectors: Size
    served: Size

    def fetched_bytes(self, view: StageView, movement: Movement, runs: Size) -> Size:
        """Bytes of a block's so many runs: each once, where it is asked for more often than it is long."""
        if movement.access.buffer.scope != "global":
            return 0
        lines = view.footprint(movement, *_THREAD, "thread").lines(SECTOR_BYTES)
        return minimum(runs * self.count * self.sectors, lines) * SECTOR_BYTES


def _request(view: StageView, movement: Movement, even: Size) -> _Request:
    """The requests of an access, in vectors where lanes step evenly."""
    scope = movement.access.buffer.scope
    if scope == "local":
        return _Request(0, 0, 0)
    elements = view.body_footprints[view.movements.index(movement)].elements
    width = where(even, vector_width(view, movement), 1)
    count = elements / minimum(width, elements)
    if scope == "shared":
        return _Request(count, 0, count * width * bank_conflicts(view, movement))
    touched = _sectors(view, movement, width)
    return _Request(count, touched, count * maximum(1, touched / LINE_SECTORS))


def _steps_evenly(view: StageView) -> Size:
    """1 where the lanes of all accesses are neighbours, at a multiple of the vector, or one; else they are copies."""
    if not view.loops_of("lane"):
        return 0
    lane = view.loops_of("lane")[-1]
    others = [loop for loop in view.loops if loop is not lane]
    even: Size = 1
    for movement in view.movements:
        step = movement.address_step(lane)
        reached = total([r * s for r, s in zip(movement.reach(lane), movement.strides, strict=True)])
        even = even * less(step, 2) * equal(reached, step * (lane.extent - 1))
        if movement.access.buffer.scope != "local":
            starts = product([equal(movement.address_step(loop) % lane.extent, 0) for loop in others])
            even = even * maximum(starts, negated(step))
    return even


def _sectors(view: StageView, movement: Movement, width: Size) -> Size:
    """Sectors that a warp's request of vectors touches: `lanes.sectors` over all dimensions of a block's threads."""
    count: Size = 1 + (width * movement.element_bytes - 1) // SECTOR_BYTES
    inside: Size = 1
    for loop in sorted(view.loops_of("thread"), key=lambda loop: loop.kind):
        distance = 1
        while distance < WARP:
            here = less(distance * inside, WARP) * less(distance, loop.extent)
            apart = negated(less(movement.address_step(loop, distance) * movement.element_bytes, SECTOR_BYTES))
            count = count * (1 + here * apart)
            distance *= 2
        inside = inside * loop.extent
    return minimum(count, 2 * WARP)


def _waited(view: StageView) -> Size:
    """Cycles that a thread waits for what it loads in a stage, nothing else at work."""
    scopes = {m.access.buffer.scope for m in view.loads}
    runs = view.per_thread
    if "global" in scopes:
        return runs / minimum(runs, maximum(copies(view.stage) / view.body_iterations, AHEAD)) * WAIT_CYCLES
    return runs * SHARED_WAIT_CYCLES if "shared" in scopes or view.stage.is_reduction else 0


def _joined(across: list[Loop]) -> Size:
    """Cycles to join what threads have: steps within a warp, and those of several warps by shared memory."""
    threads = product([loop.extent for loop in across])
    steps = total([less(1 << power, threads) for power in range(WARP.bit_length() - 1)])
    return steps * SHUFFLE_CYCLES + where(less(WARP, threads), 2 * BARRIER_CYCLES, 0)


def _touched_bytes(stages: list[StageView]) -> Size:
    """Bytes of global memory that a kernel touches, those of a buffer once."""
    found: dict[str, Size] = {}
    for stage in stages:
        for movement in stage.movements:
            buffer = movement.access.buffer
            if buffer.scope == "global":
                found[buffer.name] = maximum(found.get(buffer.name, 0), unique_bytes(stage, movement))
    return total([*found.values()])
