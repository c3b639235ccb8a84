"""Occupancy of a GPU by a kernel: registers, shared memory, resident blocks, waves."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.multiprocessor import Multiprocessor, multiprocessor_of
from ...dialects.target import WARP
from ...passes.parametric.nest import Buffer, Loop, Stage
from ...passes.parametric.sizes import Size, ceil_div, maximum, minimum, product, total
from .machine import BASE_REGISTERS, machine_of
from .view import NestView, StageView, role


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
    threads = product([maximum(1, *(_extent(v, f"threadIdx.{d}") for v in views)) for d in "xyz"])
    shared = total([nest.bytes_kept(b) for b in _kept_in(nest, views, "shared")])
    registers = BASE_REGISTERS + total([_words(nest, views, b) for b in _kept_in(nest, views, "local")])
    registers = registers + maximum(0, *(_operands(v) for v in views))
    cores, on = machine_of(nest.target).cores, multiprocessor_of(nest.target)
    if not nest.target.is_gpu:
        return KernelLaunch(blocks, threads, registers, shared, 1, ceil_div(blocks, cores), on)
    used = minimum(registers, on.registers_per_thread)
    resident = minimum(
        on.threads // threads,
        on.registers // (used * threads),
        on.shared_bytes // maximum(1, shared),
        on.blocks,
    )
    resident = maximum(1, resident)
    return KernelLaunch(blocks, threads, registers, shared, resident, ceil_div(blocks, resident * cores), on)


def _extent(view: StageView, kind: str) -> Size:
    return product([x.extent for x in view.loops if x.kind == kind])


def _kept_in(nest: NestView, views: list[StageView], scope: str) -> list[Buffer]:
    found = {a.buffer: None for v in views for a in v.stage.accesses if a.buffer.scope == scope}
    return [b for b in found if b in nest.kept]


def _words(nest: NestView, views: list[StageView], buffer: Buffer) -> Size:
    """4-byte registers for a thread's part of a buffer: each of its virtual threads has one."""
    owner = nest.owners[buffer]
    virtual: Size = 1
    if owner is not None:
        around: Loop | None = owner
        while around is not None:
            virtual = virtual * around.extent if role(around) == "vthread" else virtual
            around = around.parent
    return nest.bytes_kept(buffer) * virtual / 4


def _operands(view: StageView) -> Size:
    """Registers for what one run of the straight-line code reads from elsewhere."""
    count = len(view.stage.writes)
    reads = zip(view.loads, view.body_footprints[count:], strict=True)
    return total([f.elements for m, f in reads if m.access.buffer.scope != "local"])
