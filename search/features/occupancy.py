"""Occupancy of a GPU by a kernel: registers, shared memory, resident blocks, waves."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.intrinsics_cuda import REGISTER_BYTES
from ...dialects.multiprocessor import Multiprocessor, multiprocessor_of
from ...dialects.target import WARP
from ...passes.parametric.nest import Loop, Stage
from ...passes.parametric.sizes import Size, ceil_div, maximum, minimum, total
from ...passes.parametric.usage import launch_usage
from .machine import BASE_REGISTERS, machine_of
from .view import NestView, StageView


@dataclass(frozen=True)
class KernelLaunch:
    """One kernel: blocks, threads of a block, what each needs, and how many blocks a multiprocessor holds at once."""

    blocks: Size
    threads: Size
    registers: Size
    shared_bytes: Size
    resident: Size
    waves: Size
    on: Multiprocessor

    @property
    def occupancy(self) -> Size:
        """The share of a multiprocessor's threads that are resident."""
        return self.resident * self.threads / self.on.threads

    @property
    def warps(self) -> Size:
        """Resident warps of a multiprocessor."""
        return self.resident * ceil_div(self.threads, WARP)


def launch_of(nest: NestView, kernel: Loop | Stage) -> KernelLaunch:
    """The launch of one kernel; on a CPU blocks are tasks, and one thread runs each."""
    views = nest.in_kernel(kernel)
    blocks = maximum(1, *(v.tasks for v in views))
    used = launch_usage(nest.nest, kernel, nest.kept)
    threads, shared = used.threads, used.shared_bytes
    registers = BASE_REGISTERS + used.local_bytes / REGISTER_BYTES + maximum(0, *(operand_registers(v) for v in views))
    cores, on = machine_of(nest.target).cores, multiprocessor_of(nest.target)
    if not nest.target.is_gpu:
        return KernelLaunch(blocks, threads, registers, shared, 1, ceil_div(blocks, cores), on)
    taken = minimum(registers, on.registers_per_thread)
    resident = blocks_at_a_time(on, threads, taken * threads, maximum(1, shared))
    return KernelLaunch(blocks, threads, registers, shared, resident, ceil_div(blocks, resident * cores), on)


def blocks_at_a_time(on: Multiprocessor, threads: Size, registers: Size, shared_bytes: Size) -> Size:
    """Blocks of a multiprocessor at a time, at least one: by the threads, registers and shared memory that each takes.

    Over populations, as arrays: `estimates.residency.resident_blocks`.
    """
    found = minimum(on.threads // threads, on.registers // registers, on.shared_bytes // shared_bytes, on.blocks)
    return maximum(1, found)


def operand_registers(view: StageView) -> Size:
    """Registers for what one run of the straight-line code reads from elsewhere."""
    count = len(view.stage.writes)
    reads = zip(view.loads, view.body_footprints[count:], strict=True)
    return total([f.elements for m, f in reads if m.access.buffer.scope != "local"])
