"""One function on its way from loops to a kernel for a GPU: launches, threads, shared memory and barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from math import prod
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.index import IndexExpr, axis
from ...dialects.loop import (
    ArrivalsOp,
    AtOp,
    BarrierOp,
    ForOp,
    JoinOp,
    KernelStep,
    blocks_in,
    is_bound,
    loops_in,
)
from ...dialects.loop_notes import BLOCKS_PER_SM
from ..analysis.joined import launch_sizes
from ..analysis.placement import Placement
from ._addresses import Scope
from ._block_plan import Access, BlockPlan
from ._branches import branch, under
from ._bulk_copies import BulkWriter, is_bulk
from ._join_threads import join_threads, joined_alone
from ._launch import Launch, allocate_first
from ._loop_values import Known
from ._lowering import Lowering
from ._matrix_product import ProductWriter, is_product
from ._product_waits import is_of_warp_group
from ._run_ahead import ASYNCHRONOUS, BULK, blocks_of
from ._starts import Nest, is_start, nests_of_launches, without_joins
from ._thread_dependence import element_axes, is_for_the_first, joins_threads, predicate_axes
from ._unrolled_loops import UnrolledLoops, write_once
from ._wide_loads import widen_loads


class GpuLowering(Lowering):
    """Writes a function for a GPU: each nest becomes a launch, its bound loops the place of a thread in it.

    A nest inside of a bound loop may be bound to the same axis again: that is how the threads of a block fill a shared
    buffer together. Virtual threads are copies of the innermost statements, so that they share copies and barriers.
    Bound loops are named after their axis, as all of them have the thread's place on it as their value. With `warps`
    the threads of a warp pass values on directly.
    """

    most_cuts: ClassVar[int] = 0
    launch: Launch
    """The one that is being written."""

    def __init__(self, func: FuncOp, warps: bool) -> None:
        super().__init__(func, gpu=True)
        self.warps = warps
        self.products = ProductWriter(self.at, self.buffers, self.plans)
        self.bulk = BulkWriter(self.at, self.buffers, self.plans)
        self.unrolled = UnrolledLoops(self.at, self.plans, self.writer)
        self.arrivals: dict[str, tuple[SSAValue, int, Mapping[str, int]]] = {}
        """The barriers of pipelined loops, how many there are, and the blocks of a cluster on each of its axes."""
        self.aligned = _read_by_descriptors(func) if warps else set()
        self.arriving: tuple[str, ...] = ()
        """The axes of blocks of which the last one runs what is being written."""
        self.virtual: list[ForOp] = []
        self.allocated: set[SSAValue] = set()
        self.extents: dict[str, int] = {}
        """Of the loops of the launch that is written, by name."""

    def run(self) -> None:
        self._allocate_outermost()
        for nests in nests_of_launches(self.func):
            self._launch(nests)
        self.entry.add_op(ReturnOp())
        self._replace_body()

    # -- launches -----------------------------------------------------------------------------------------------------

    def _launch(self, nests: Sequence[Nest | JoinOp]) -> None:
        loops = without_joins(nests)
        self.launch = Launch(self.at, launch_sizes(loops), max(map(_blocks_per_sm, loops)))
        self.extents = {
            x.loop_name: x.size for nest in loops if isinstance(nest, ForOp) for x in (nest, *loops_in(nest))
        }
        for nest in loops:
            if not is_start(nest):
                self._allocate_used_in(nest)
        self._nests(nests)
        self.launch.close()
        if self.warps:
            widen_loads(self.launch.block)

    def _nests(self, nests: Sequence[Nest | JoinOp]) -> None:
        """Write nests in order, those behind a join for the blocks that arrive last."""
        for number, nest in enumerate(nests):
            if isinstance(nest, JoinOp) and nest.together is not None:
                self.launch.wait_in_clusters(nest.kinds)
            elif isinstance(nest, JoinOp):
                self.arriving = nest.kinds
                last = self.launch.arrive(nest.kinds, nest.parts.data)
                branch(self.at, last, partial(self._nests, nests[number + 1 :]))
                self.arriving = ()
                return
            else:
                self._child(nest)

    def _allocate_outermost(self) -> None:
        """Allocate what the launches pass on, in global memory."""
        for buffer, place in self.placements.items():
            if not place.is_argument and place.owner is None and place.scope == "global":
                assert isinstance(buffer.type, MemRefType)
                element = buffer.type.element_type
                self.buffers[buffer] = allocate_first(self.entry, place.name, element, place.size, "global")

    def _allocate_used_in(self, op: Nest) -> None:
        """Allocate what a launch has in registers and shared memory outside of all of its loops."""
        plans = [self.plans[block] for block in blocks_of(op)]
        used = {a.buffer: a.place for p in plans for a in (*p.writes, *p.loads.values())}
        for buffer, place in used.items():
            if place.scope == "global" or place.owner is not None:
                continue
            if buffer in self.allocated:
                rule = f"buffer '{place.name}' of scope {place.scope} is used by several launches: give it scope global"
                raise PassFailedException(f"lw-lower-loop-to-kernel: {rule} (lw-set-scope)")
            self._allocate(buffer, place)

    def _allocate(self, buffer: SSAValue, place: Placement) -> None:
        assert isinstance(buffer.type, MemRefType)
        if buffer in self.allocated:
            return
        self.allocated.add(buffer)
        if place.scope == "global" and place.owner is not None:
            rule = f"buffer '{place.name}' is used inside of one launch only: give it scope shared or local"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule} (lw-set-scope)")
        align = ATOM_BYTES if buffer in self.aligned else 0
        element = buffer.type.element_type
        self.buffers[buffer] = self.launch.allocate(place.name, element, place.size, place.scope, align)

    # -- loops --------------------------------------------------------------------------------------------------------

    def _loop(self, op: ForOp) -> None:
        if op.loop_kind == "vthread":
            self.virtual.append(op)
            self.at.ranges[op.loop_name] = (0, op.size - 1)
            self._children(op)
            del self.at.ranges[op.loop_name]
            self.virtual.pop()
        elif is_bound(op):
            self._bound(op)
        elif self.warps and is_product(op):
            self.products.write(op)
        elif self._is_written_once(op):
            write_once(self.at, op, lambda: self._children(op))
        elif joined := self._joined_in_copies(op):
            self._join_copies(*joined)
        else:
            super()._loop(op)

    def _is_written_once(self, op: ForOp) -> bool:
        """True for an unrolled loop that is left to NVRTC, which is known to unroll what it is asked to."""
        if not self.warps or op.size == 1 or self._kind(op) != "unrolled":
            return False
        return self.unrolled.may_be_written_once(op, prod(loop.size for loop in self.virtual))

    def _joined_in_copies(self, op: ForOp) -> tuple[list[ForOp], BlockPlan] | None:
        """The copies of a reduction over threads that an unrolled loop makes, where they may be written together."""
        if not self.warps or self.virtual or op.size == 1 or self._kind(op) != "unrolled":
            return None
        found = joined_alone(op, self.plans)
        return found if found is not None and all(map(self._is_known_in_copies, found[0])) else None

    def _is_known_in_copies(self, loop: ForOp) -> bool:
        return loop.size == 1 or self._kind(loop) == "unrolled" or loop.size == self.launch.sizes.get(loop.loop_kind)

    def _join_copies(self, loops: Sequence[ForOp], plan: BlockPlan) -> None:
        """Write all copies of a reduction over threads, which wait together."""
        self.at.scopes.append(Scope(self.at.here.block))
        counts = [range(1 if is_bound(loop) else loop.size) for loop in loops]
        copies = [partial(self._in_copy, loops, values) for values in product(*counts)]
        join_threads(self.launch, self.writer, plan, self.warps, copies)
        self.at.scopes.pop()
        self.at.here.loads.clear()

    @contextmanager
    def _in_copy(self, loops: Sequence[ForOp], values: Sequence[int]) -> Iterator[None]:
        """Know the values of loops, of those bound to threads their place."""
        with ExitStack() as stack:
            for loop, value in zip(loops, values, strict=True):
                if is_bound(loop) and loop.size > 1:
                    known = Known(self.launch.threads[loop.loop_kind], len(self.at.scopes) - 1)
                    stack.enter_context(self.at.valued(loop.loop_name, known, (0, loop.size - 1)))
                else:
                    stack.enter_context(self.at.valued(loop.loop_name, value, (value, value)))
            yield

    def _bound(self, op: ForOp) -> None:
        kind = op.loop_kind
        size = self.launch.sizes[kind]
        if size == 1:
            self._copies(op)
            return
        value = self.launch.threads[kind]
        if op.size == size:
            self._thread(op, value)
            return
        test = self.launch.is_below(value, size, op.size)
        branch(self.at, test, lambda: self._thread(op, value))

    def _thread(self, op: ForOp, value: SSAValue) -> None:
        # A scope of its own, in the same region: two loops of one name may be bound to different axes.
        self.at.scopes.append(Scope(self.at.here.block))
        name = op.loop_name
        around, extent = self.at.env.get(name), self.at.ranges.get(name)
        self._known_as(op, value)
        if around is not None and extent is not None:
            self.at.env[name], self.at.ranges[name] = around, extent
        self.at.scopes.pop()
        self.at.here.loads.clear()

    # -- barriers -----------------------------------------------------------------------------------------------------

    def _child(self, child: Operation) -> None:
        if isinstance(child, BarrierOp):
            if not any(self.at.condition(c) is False for c in child.conditions):
                (self.launch.barrier if child.cluster is None else self.launch.meet_in_clusters)()
        elif isinstance(child, KernelStep):
            self.at.here.block.add_op(child.clone())
            if isinstance(child, kernel.WarpGroupWaitOp):
                self.at.here.loads.clear()
        elif isinstance(child, ArrivalsOp):
            self._arrivals(child)
        elif isinstance(child, AtOp):
            self._elsewhere(child)
        else:
            super()._child(child)

    def _elsewhere(self, op: AtOp) -> None:
        """Write nests for another iteration of a loop."""
        values = [self.at.condition(c) for c in op.conditions]
        if any(v is False for v in values):
            return
        test = self.at.conjunction([v for v in values if not isinstance(v, bool)], False)
        if test is None:
            self._at_iteration(op)
        else:
            branch(self.at, test, lambda: self._at_iteration(op))

    def _at_iteration(self, op: AtOp) -> None:
        at, name = self.at, op.loop_name
        around, extent, known = at.env.get(name), at.ranges.get(name), at.known
        iteration, values = at.iteration(op)
        if iteration.is_constant:
            at.env[name] = iteration.const
        else:
            parts = [at.scalar(iteration - iteration.const), at.constant(iteration.const)]
            sum_ = at.here.add(arith.AddiOp.create(operands=parts, result_types=[IndexType()]))
            at.scopes.append(Scope(at.here.block))  # its own, in the same region: the loop goes on with another value
            at.env[name] = Known(sum_, len(at.scopes) - 1)
            at.known = frozenset(c for c in known if name not in c.axes())
        at.ranges[name] = values
        bulk = [nest for nest in op.body.block.ops if isinstance(nest, ForOp) and is_bulk(nest)]
        if bulk:
            self._first_thread(lambda: self._copy_in_bulk(name, bulk))
        for child in op.body.block.ops:
            if child not in bulk:
                self._child(child)
        del at.env[name], at.ranges[name]
        if around is not None and extent is not None:
            at.env[name], at.ranges[name] = around, extent
        at.known = known
        if not iteration.is_constant:
            at.scopes.pop()
            at.here.loads.clear()

    # -- bulk copies --------------------------------------------------------------------------------------------------

    def _first_thread(self, write: Callable[[], None]) -> None:
        """Write what the first thread of a block does alone."""
        kinds = [kind for kind in self.launch.threads if kind.startswith("threadIdx")]
        tests = [self.launch.is_below(self.launch.threads[kind], self.launch.sizes[kind], 1) for kind in kinds]
        test = self.at.conjunction(tests, False)
        if test is None:
            write()
        else:
            branch(self.at, test, write)

    def _arrivals(self, op: ArrivalsOp) -> None:
        """Make the barriers of a loop, or wait for that of an iteration: its stage, and which round it is."""
        name, stages = op.label.data, op.stages.data
        if op.start is not None:
            barriers = self.launch.allocate(f"{name}_arrivals", i64, stages, "shared")
            self.arrivals[name] = barriers, stages, {axis: self.launch.sizes[axis] for axis in op.axes}
            self._first_thread(lambda: self._start(barriers, stages))
            if op.axes:
                self.launch.wait_in_clusters(op.axes)
            else:
                self.launch.barrier()
            return
        barrier, index = self._arrival(name)
        parity = self.at.scalar(self.at.fixed(axis(name) // stages % 2))
        self.at.here.block.add_op(kernel.BarrierAwaitOp(barrier, index, parity))

    def _start(self, barriers: SSAValue, stages: int) -> None:
        for stage in range(stages):
            self.at.here.block.add_op(kernel.BarrierInitOp(barriers, self.at.constant(stage), 1))
        self.at.here.block.add_op(kernel.ProxyFenceOp())

    def _arrival(self, name: str) -> tuple[SSAValue, SSAValue]:
        barriers, stages, _ = self.arrivals[name]
        return barriers, self.at.scalar(self.at.fixed(axis(name) % stages))

    def _copy_in_bulk(self, name: str, nests: Sequence[ForOp]) -> None:
        barrier, index = self._arrival(name)
        expected = sum(self.bulk.bytes_of(nest) for nest in nests)
        self.at.here.block.add_op(kernel.BarrierExpectOp(barrier, index, expected))
        blocks = prod(n for kind, n in self.launch.sizes.items() if kind.startswith("blockIdx"))
        for nest in nests:
            self.bulk.write(nest, (barrier, index), self.arrivals[name][2], blocks * self.extents[name])

    # -- statements ---------------------------------------------------------------------------------------------------

    def _block(self, plan: BlockPlan) -> None:
        if joins_threads(plan):
            self._copies_of(plan, lambda: join_threads(self.launch, self.writer, plan, self.warps))
            return

        def write() -> None:
            if ASYNCHRONOUS in plan.block.notes:
                self._copy_by_itself(plan)
            else:
                super(GpuLowering, self)._block(plan)

        reads = plan.loads.values()
        self._copies_of(plan, lambda: self._alone(plan, lambda: self._settled(plan, plan.conditions, reads, write)))

    def _copy_by_itself(self, plan: BlockPlan) -> None:
        left = self._lane_conditions(plan.conditions)
        if left is not None and not self.writer.copy_asynchronously(plan, left):
            self.writer.update(plan, left, False)

    def _copies_of(self, plan: BlockPlan, write: Callable[[], None]) -> None:
        """Write a statement for each virtual thread that it tells apart.

        A reduction that only a predicate tells apart has one result for all of them, and is run by the first.
        """
        axes = element_axes(plan)
        loops = [x for x in self.virtual if x.loop_name in axes | predicate_axes(plan)]
        zigzag = self.warps and bool(loops) and self._multiplies_lanes(plan, {x.loop_name for x in loops})
        if self.warps and not zigzag and all(self.unrolled.is_steady(plan, x.loop_name) for x in loops):
            self._written_once(loops, write)
            return
        once = {x.loop_name for x in loops if is_for_the_first(plan, x.loop_name, axes)}
        for number, values in enumerate(product(*(range(1 if x.loop_name in once else x.size) for x in loops))):
            for loop, value in zip(loops, values, strict=True):
                self.at.env[loop.loop_name] = value
                self.at.ranges[loop.loop_name] = (value, value)
            self.writer.backwards = zigzag and number % 2 == 1
            write()
        self.writer.backwards = False
        for loop in loops:
            self.at.env.pop(loop.loop_name, None)
            self.at.ranges[loop.loop_name] = (0, loop.size - 1)

    def _multiplies_lanes(self, plan: BlockPlan, rows: set[str]) -> bool:
        """True for multiply-adds in registers of lanes of one factor with the other one, of which rows are apart.

        A bank of registers gives an instruction one operand in a cycle, beside what the one before had in the same
        place. Every second row takes its lanes from the last one on, which the row before has just read.
        """
        lane = self.at.lane
        if lane is None or not plan.fused or len(plan.writes) != 1 or len(plan.loads) != 2:
            return False
        if any(access.place.scope != "local" for access in (*plan.writes, *plan.loads.values())):
            return False
        axes = [access.offset.axes() for access in plan.loads.values()]
        lanes, others = sorted(axes, key=lambda names: lane not in names)
        return lane in lanes and lane not in others and rows <= others and not rows & lanes

    def _written_once(self, loops: Sequence[ForOp], write: Callable[[], None]) -> None:
        if not loops:
            write()
            return
        first, *rest = loops
        write_once(self.at, first, lambda: self._written_once(rest, write))

    def _settled(
        self,
        plan: BlockPlan,
        conditions: Sequence[IndexExpr],
        reads: Iterable[Access],
        write: Callable[[], None],
    ) -> None:
        """Write under the predicates that are the same for all lanes."""
        before = self.at.known
        if self._may_overshoot(plan, conditions, reads):
            write()
            self.at.known = before
            return
        lane = self.at.lane
        same = [c for c in conditions if self._open(c) and (lane is None or lane not in self.at.test(c).axes())]
        under(self.at, same, write)

    def _may_overshoot(self, plan: BlockPlan, conditions: Sequence[IndexExpr], reads: Iterable[Access]) -> bool:
        """True where running beyond the edge fills registers that nobody reads, from memory that is there."""
        still = [c for c in conditions if self._open(c) and self.at.condition(c) is not True]
        if not still or not self.unrolled.may_overshoot(plan, still, reads):
            return False
        self.at.known = self.at.known | set(still)
        return True

    def _alone(self, plan: BlockPlan, write: Callable[[], None]) -> None:
        """Write so that one thread runs what is the same for all of them, where others would see it done twice."""
        idle = self._idle(plan)
        if not idle:
            write()
            return
        memory = _own_memory({w.place.scope for w in plan.writes}, idle)
        if memory and not self._keeps_to_itself(plan, idle):
            names = " and ".join(f"'{w.place.name}' in scope {w.place.scope}" for w in plan.writes)
            what = f"what one {memory[0]} writes for all, others have not in {memory[1]}"
            rule = f"block '{plan.name}' writes {names}: {what}"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; give them one scope (lw-set-scope)")
        tests: list[SSAValue] = []
        for kind in idle:
            tests.append(self.launch.is_below(self.launch.threads[kind], self.launch.sizes[kind], 1))
        test = self.at.conjunction(tests, False)
        assert test is not None
        branch(self.at, test, write)

    def _idle(self, plan: BlockPlan) -> list[str]:
        """Axes of threads that a statement does not tell apart, and along which the first runs it for the others."""
        scopes = {w.place.scope for w in plan.writes}
        if scopes == {"local"}:
            return []
        threads = [k for k in self.launch.threads if k not in self.arriving]
        kinds = [k for k in threads if "global" in scopes or k.startswith("threadIdx")]
        told_apart = {n for e in plan.block.bound.values() for n in e.axes()}
        asked = predicate_axes(plan)
        return [k for k in kinds if k not in told_apart | asked or is_for_the_first(plan, k, told_apart)]

    def _keeps_to_itself(self, plan: BlockPlan, idle: list[str]) -> bool:
        """True where nobody but the same threads asks for the memory of their own that a statement writes."""
        own = {w.buffer for w in plan.writes if w.place.scope != "global"}
        others = [p for p in self.plans.values() if own & {a.buffer for a in (*p.loads.values(), *p.writes)}]
        return all(self._idle(other) == idle and not joins_threads(other) for other in others)


ATOM_BYTES = 1024
"""Bytes that a swizzle of 128 is the same again after, and so what buffers start at that descriptors name (PTX ISA)."""


def _read_by_descriptors(func: FuncOp) -> set[SSAValue]:
    """The shared buffers that the copy engine fills or that products of warp groups read."""
    found: set[SSAValue] = set()
    for block in blocks_in(func):
        if BULK in block.notes:
            found |= set(block.outputs)
        if is_of_warp_group(block):
            found |= {load.buffer for load in block.loads}
    return found


def _blocks_per_sm(nest: Nest) -> int:
    """The most blocks a multiprocessor that a loop of thread blocks is annotated with; 0 where none is."""
    loops = [nest, *loops_in(nest)] if isinstance(nest, ForOp) else []
    notes = [loop.notes.get(BLOCKS_PER_SM) for loop in loops if isinstance(loop, ForOp)]
    return max((note.value.data for note in notes if isinstance(note, IntegerAttr)), default=0)


def _own_memory(scopes: set[str], idle: Iterable[str]) -> tuple[str, str] | None:
    """The owner of memory, and its kind, that a statement run by the first on the axes `idle` alone leaves empty."""
    if "local" in scopes:
        return "thread", "registers"
    if "shared" in scopes and any(kind.startswith("blockIdx") for kind in idle):
        return "block of threads", "shared memory"
    return None
