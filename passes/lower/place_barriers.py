"""Place barriers: where a thread comes to what another one of its block has written, or still reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.loop import SERIAL, BarrierOp, BlockOp, ForOp, JoinOp, blocks_in, scope_of, statements
from ...dialects.target import target_of
from ..analysis.joined import launch_sizes
from ..analysis.nest import functions_on_loops
from ..analysis.placement import Placement
from ._block_plan import BlockPlan
from ._copies import holding_for
from ._run_ahead import run_ahead
from ._starts import Nest, nests_of_launches, without_joins
from ._steps import note_step, require_after
from ._thread_dependence import joins_threads
from ._thread_sharing import passed_on
from .join_launches import JoinLaunches
from .place_buffers import placements_of


@dataclass(frozen=True)
class PlaceBarriers(ModulePass):
    """`block a writes %s; block b reads %s` -> `block a writes %s; barrier; block b reads %s`, for shared memory `%s`.

    The same for what the threads of a block pass on through global memory, and for writing what others read before. A
    serial loop is entered as it is left, so that barriers hold for all of its iterations. Those of a pipelined loop,
    and of reductions over threads, are part of them, and not placed here. On a CPU nothing is.

    Requires: launches joined (`lw-join-launches`); no values passed on between blocks of threads, or through registers;
    no barrier in a loop that is bound to some of the threads on an axis only.
    """

    name = "lw-place-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).is_gpu
        for func in functions_on_loops(op):
            require_after(func, self.name, JoinLaunches.name)
            place_barriers(func, gpu)


def place_barriers(func: FuncOp, gpu: bool) -> None:
    """Place the barriers of a function whose buffers are placed; PassFailedException where none will do."""
    if gpu:
        placements = placements_of(func)
        for nests in nests_of_launches(func):
            _place_in_launch(nests, placements)
    note_step(func, PlaceBarriers.name)


def _place_in_launch(nests: Sequence[Nest | JoinOp], placements: Mapping[SSAValue, Placement]) -> None:
    """Place the barriers in the nests of a launch; arrivals between them are barriers themselves."""
    plans = {nest: [BlockPlan(b, placements) for b in _blocks(nest)] for nest in without_joins(nests)}
    sizes, join = launch_sizes(plans), next((op for op in nests if isinstance(op, JoinOp)), None)
    behind = nests[nests.index(join) + 1 :] if join is not None else ()
    joining = {plan for nest in without_joins(behind) for plan in plans[nest]}
    every = [plan for own in plans.values() for plan in own]
    kinds, together = (join.kinds, join.together is not None) if join is not None else ((), False)
    passed = passed_on(every, sizes, joining, kinds, together)
    found = {(buffer, block) for buffer, block, _ in passed}
    for nest, own in plans.items():
        if isinstance(nest, ForOp):
            _Launch(nest, own, sizes, found).place()


def _blocks(nest: Nest) -> Iterable[BlockOp]:
    return [nest] if isinstance(nest, BlockOp) else blocks_in(nest)


Touched = set[tuple[SSAValue, BlockOp]]
"""Buffers, with the blocks that touch them."""


@dataclass
class _Traffic:
    """Traffic between threads: buffers read and written since they last waited for each other, with the blocks."""

    reads: Touched = field(default_factory=set)
    writes: Touched = field(default_factory=set)

    def conflicts(self, other: _Traffic) -> bool:
        """True where `other` must not start before this is done in all threads; a block writes no element twice."""
        return _meet(self.writes, other.reads) or _meet(self.reads, other.writes) or _meet(self.writes, other.writes)

    @property
    def is_empty(self) -> bool:
        """True where no other thread sees anything of it."""
        return not (self.reads or self.writes)

    def add(self, other: _Traffic) -> None:
        self.reads |= other.reads
        self.writes |= other.writes

    def clear(self) -> None:
        self.reads.clear()
        self.writes.clear()

    def copy(self) -> _Traffic:
        return _Traffic(set(self.reads), set(self.writes))


def _meet(a: Touched, b: Touched) -> bool:
    return any(x is y and p is not q for x, p in a for y, q in b)


class _Launch:
    """Walks a nest of a launch in the order in which it is run, unrolled loops copy by copy."""

    def __init__(self, nest: ForOp, plans: Sequence[BlockPlan], sizes: Mapping[str, int], passed: Touched) -> None:
        self.nest, self.sizes = nest, sizes
        self.known: dict[ForOp | BlockOp, _Traffic] = {p.block: _of_block(p.block, passed) for p in plans}
        self.joining = {plan.block for plan in plans if joins_threads(plan)}
        self.traffic = _Traffic()
        self.copies: dict[ForOp, int] = {}
        """The copy of each unrolled loop around that is being walked."""
        self.needed: dict[ForOp | BlockOp, tuple[Sequence[ForOp], set[tuple[int, ...]]]] = {}
        """The nests that a barrier stands before, with the unrolled loops around, and in which copies of these."""

    def place(self) -> None:
        self._loop(self.nest)
        for nest, (loops, copies) in self.needed.items():
            block = nest.parent_block()
            assert block is not None
            for conditions in holding_for(loops, copies):
                block.insert_op_before(BarrierOp(conditions), nest)

    def _loop(self, op: ForOp) -> None:
        self._require_all_threads(op)
        is_copied = op.loop_kind in ("unrolled", "vectorized") and op.size > 1
        if not is_copied or self._of(op).is_empty:
            self._children(op)
            return
        for number in range(op.size):
            self.copies[op] = number
            self._children(op)
        del self.copies[op]

    def _require_all_threads(self, op: ForOp) -> None:
        size = self.sizes.get(op.loop_kind, 1)
        if op.loop_kind.startswith("threadIdx") and op.size != size and self._waits(op):
            kind = op.loop_kind
            rule = (
                f"loop '{op.loop_name}' has {op.size} of the {size} threads of {kind}, which wait for each other in it"
            )
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; give it all of them")

    def _waits(self, op: ForOp) -> bool:
        traffic = self._of(op)
        return traffic.conflicts(traffic) or any(block in self.joining for block in blocks_in(op))

    def _children(self, op: ForOp) -> None:
        children = statements(op)
        ahead = run_ahead(op) if op.size > 1 else ()
        if ahead:  # each iteration starts with a barrier, which is all that its copies need
            self.traffic.clear()
        elif op.loop_kind == SERIAL and op.size > 1:
            self.traffic.add(self._after(children, self.traffic.copy()))
        for child in children:
            if child not in ahead:
                self._child(child)

    def _child(self, child: ForOp | BlockOp) -> None:
        if self.traffic.conflicts(self._of(child)):
            self.traffic.clear()
            _, copies = self.needed.setdefault(child, (tuple(self.copies), set()))
            copies.add(tuple(self.copies.values()))
        if isinstance(child, BlockOp):
            self.traffic.add(self._of(child))
        else:
            self._loop(child)

    def _of(self, op: ForOp | BlockOp) -> _Traffic:
        """Return what is read and written in `op` and seen by other threads, the start of reductions included."""
        found = self.known.get(op)
        if found is None:
            found = self.known[op] = _Traffic()
            for block in blocks_in(op):
                found.add(self.known[block])
        return found

    def _after(self, children: Iterable[ForOp | BlockOp], traffic: _Traffic) -> _Traffic:
        """Return the traffic under way behind `children`, when they start with `traffic`."""
        for child in children:
            if self._of(child).is_empty:
                continue
            if traffic.conflicts(self._of(child)):
                traffic.clear()
            if isinstance(child, BlockOp):
                traffic.add(self._of(child))
            else:
                inner = statements(child)
                traffic = self._after(inner, traffic)
                if child.size > 1:
                    traffic = self._after(inner, traffic)
        return traffic


def _of_block(block: BlockOp, passed: Touched) -> _Traffic:
    reads = {load.buffer for load in block.loads}
    return _Traffic(_seen(reads, block, passed), _seen(block.outputs, block, passed))


def _seen(buffers: Iterable[SSAValue], block: BlockOp, passed: Touched) -> Touched:
    """Return those of the buffers in which other threads of the block see what this one does."""
    return {(buffer, block) for buffer in buffers if scope_of(buffer) == "shared" or (buffer, block) in passed}
