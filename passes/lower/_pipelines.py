"""A loop whose copies into shared memory run some iterations ahead of what uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, Region

from ...dialects import kernel
from ...dialects.index import IndexExpr, axis
from ...dialects.loop import AllocOp, BlockOp, ForOp, blocks_in, statements
from ..analysis.placement import Placement, whole
from ..schedule._marks import PIPELINE_REGISTERS, PIPELINE_STAGES
from ._addresses import Known
from ._block_plan import Access, BlockPlan

if TYPE_CHECKING:
    from ._gpu_lowering import GpuLowering

Nest = ForOp | BlockOp


def run_ahead(loop: ForOp) -> Sequence[Nest]:
    """The nests directly in `loop` that are nothing but copies which may run ahead in it, as `pipeline` marks them."""
    if PIPELINE_STAGES not in loop.notes or loop.loop_kind != "serial":
        return ()
    return [nest for nest in statements(loop) if all(_is_ahead(block, loop) for block in _blocks_of(nest))]


def _blocks_of(nest: Nest) -> Sequence[BlockOp]:
    return [nest] if isinstance(nest, BlockOp) else list(blocks_in(nest))


def _is_ahead(block: BlockOp, loop: ForOp) -> bool:
    alloc = block.outputs[0].owner
    if PIPELINE_STAGES not in block.notes or not isinstance(alloc, AllocOp):
        return False
    return alloc.parent_op() is loop and alloc.scope == "shared"


def write_pipeline(lowering: GpuLowering, loop: ForOp, copies: Sequence[Nest]) -> None:
    """Write `loop` with `copies` running `stages - 1` iterations ahead, and one barrier in each iteration.

    The first iterations' copies stand before the loop. Where the device copies by itself, each iteration waits for the
    oldest copies only; otherwise the next ones are loaded to registers before the work and stored behind it.
    """
    _Pipeline(lowering, loop, copies).write()


class _Pipeline:
    def __init__(self, lowering: GpuLowering, loop: ForOp, copies: Sequence[Nest]) -> None:
        stages = loop.notes[PIPELINE_STAGES]
        assert isinstance(stages, IntegerAttr)
        self.lowering, self.at = lowering, lowering.at
        self.loop, self.name = loop, loop.loop_name
        self.ahead = stages.value.data - 1
        self.by_itself = [c for c in copies if lowering.asynchronous and not _through_registers(c)]
        self.held = [_Held(lowering, c, loop) for c in copies if c not in self.by_itself]
        self.copies = copies

    def write(self) -> None:
        self.lowering._allocate(self.loop)
        for step in range(self.ahead):
            self.at.env[self.name], self.at.ranges[self.name] = step, (step, step)
            self._start()
            for held in self.held:
                self._apart(held.nest)
            self._commit()
            del self.at.env[self.name], self.at.ranges[self.name]
        block = Block(arg_types=[IndexType()])
        self.lowering._within(self.loop, block, self._iteration)
        block.add_op(scf.YieldOp.create())
        bounds = [self.at.constant(0), self.at.constant(self.loop.size), self.at.constant(1)]
        self.at.here.block.add_op(scf.ForOp.create(operands=bounds, regions=[Region(block)]))
        self.at.here.loads.clear()

    def _start(self) -> None:
        """Write the copies of an iteration that the device does by itself, as one group."""
        if not self.by_itself:
            return
        self.lowering.in_flight = True
        for nest in self.by_itself:
            self._apart(nest)
        self.lowering.in_flight = False

    def _apart(self, nest: Nest) -> None:
        """Write a copy; the barrier of each iteration is all that it needs."""
        self.lowering._guarded(nest)

    def _commit(self) -> None:
        if self.by_itself:
            self.at.here.block.add_op(kernel.CommitOp())

    def _iteration(self) -> None:
        lowering = self.lowering
        if self.by_itself:
            self.at.here.block.add_op(kernel.WaitOp(self.ahead - 1))
        lowering.barrier()
        test = self.at.condition(IndexExpr(((self.name, -1),), self.loop.size - 1 - self.ahead))
        assert not isinstance(test, bool), "a pipelined loop has at least as many iterations as stages"
        lowering.branch(test, lambda: self._later(self._fetch))
        self._commit()
        for child in self.loop.body.block.ops:
            if child not in self.copies:
                lowering.write_child(child)
        if self.held:
            lowering.branch(test, lambda: self._later(self._put))

    def _fetch(self) -> None:
        self._start()
        for held in self.held:
            held.load(self._apart)

    def _put(self) -> None:
        for held in self.held:
            held.store(self._apart)

    def _later(self, write: Callable[[], None]) -> None:
        """Write with the loop's value as many iterations later as the copies run ahead."""
        at, name = self.at, self.name
        now, extent, known = at.env[name], at.ranges[name], at.known
        assert isinstance(now, Known)
        later = at.here.add(
            arith.AddiOp.create(operands=[now.value, at.constant(self.ahead)], result_types=[IndexType()])
        )
        at.env[name], at.ranges[name] = Known(later, len(at.scopes) - 1), (self.ahead, self.loop.size - 1)
        at.known = frozenset(c for c in known if name not in c.axes())
        write()
        at.env[name], at.ranges[name], at.known = now, extent, known


class _Held:
    """A copy on its way through registers: each thread loads its elements, and stores them later."""

    def __init__(self, lowering: GpuLowering, nest: Nest, loop: ForOp) -> None:
        self.lowering, self.nest = lowering, nest
        self.plans = [lowering.plans[block] for block in _blocks_of(nest)]
        self.loading: list[BlockPlan] = []
        self.storing: list[BlockPlan] = []
        for plan in self.plans:
            access = self._registers(plan, loop)
            first, second = copy(plan), copy(plan)
            first.writes = [access]
            second.loads = dict.fromkeys(plan.loads, access)
            second.tests = ()
            self.loading.append(first)
            self.storing.append(second)

    def _registers(self, plan: BlockPlan, loop: ForOp) -> Access:
        """The register for each element that a thread copies: loop by loop inside, and vthreads around."""
        loops = plan.block.enclosing_loops
        named = set().union(*(e.axes() for e in plan.block.bindings.data))
        around = [x for x in loops[: loops.index(loop)] if x.loop_kind == "vthread" and x.loop_name in named]
        inner = [x for x in (*around, *loops[loops.index(loop) + 1 :]) if "Idx" not in x.loop_kind and x.size > 1]
        inner.sort(key=lambda x: x.loop_kind == "vectorized")
        shape = tuple(x.size for x in inner)
        place = Placement(f"{plan.name}_next", "local", loop, False, shape, whole(shape))
        buffer = plan.writes[0].buffer
        assert isinstance(buffer.type, MemRefType)
        held = self.lowering.allocate(place.name, buffer.type.element_type, place.size, "local")
        self.lowering.buffers[held] = held
        at = tuple(axis(x.loop_name) for x in inner)
        return Access(place, held, at, place.offset(at), ())

    def load(self, write: Callable[[Nest], None]) -> None:
        """Write the loads."""
        self._write(self.loading, write)

    def store(self, write: Callable[[Nest], None]) -> None:
        """Write the stores."""
        self._write(self.storing, write)

    def _write(self, plans: Sequence[BlockPlan], write: Callable[[Nest], None]) -> None:
        lowering = self.lowering
        nests = dict(lowering.nests)
        for plan in plans:
            lowering.plans[plan.block] = plan
        lowering.nests.clear()
        lowering.in_registers = True
        write(self.nest)
        lowering.in_registers = False
        for plan in self.plans:
            lowering.plans[plan.block] = plan
        lowering.nests = nests


def _through_registers(nest: Nest) -> bool:
    return any(PIPELINE_REGISTERS in block.notes for block in _blocks_of(nest))
