"""Settle loop kinds: how each loop is written, where that is not what a schedule asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from math import gcd

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.index import IndexExpr
from ...dialects.loop import SERIAL, THREAD_KINDS, AtOp, BlockOp, ForOp, blocks_in, scope_of, statements
from ...dialects.loop_steps import WrittenAttr
from ...dialects.target import Target, target_of
from ...dialects.te import IndexOp, PredicateOp
from ..analysis.code_size import buffer_element_bytes, unroll_limit
from ..analysis.joined import launch_sizes
from ..analysis.matrix_product import TENSORIZE
from ..analysis.nest import functions_on_loops, ranges_of
from ._block_plan import BlockPlan
from ._copies import holding_for
from ._lanes import same_for_lanes, step_in_memory
from ._loop_values import LoopValues
from ._quads import are_transposed
from ._run_ahead import ASYNCHRONOUS, taken_ahead, work_of
from ._starts import is_start, loops_started, nests_of_launches, without_joins
from ._steps import note_step, require_after
from ._thread_dependence import element_axes, predicate_axes
from .expand_pipelines import ExpandPipelines
from .place_buffers import placements_of
from .tell_loops_apart import spelled

LANES = (2, 4, 8)
"""Elements that a thread of a GPU moves as vectors; above four, the printers take several."""

MOST_BYTES = 16
"""Bytes that a device copies by itself at most; as many lanes of one byte are a vector in fills of shared memory."""


@dataclass(frozen=True)
class SettleLoopKinds(ModulePass):
    """`for i in 4 { S }` below `annotated {auto_unroll_max_step = 16}` -> `for i in 4 as unrolled { S }`

    A loop is written as its kind says but for these. A serial loop that makes few enough copies of what is in it, as
    the annotation says, is unrolled. On a GPU a vectorized loop is too, unless all that it reads and writes is the same
    for its lanes, or neighbours that start at a multiple of their number (`as unrolled unless (0 - i >= 0)` where they
    do in some copies of unrolled loops around), or four threads transpose what it writes to such neighbours; nor may a
    predicate tell its lanes apart, but for tails beyond which registers are filled for nobody. On a CPU loops in lanes
    are serial, as are parallel loops in parallel ones, and virtual threads.

    Requires: pipelines expanded (`lw-expand-pipelines`); on a GPU no parallel loop, on a CPU none bound to threads.
    """

    name = "lw-settle-loop-kinds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, ExpandPipelines.name)
            settle_loop_kinds(func, target_of(op))


def settle_loop_kinds(func: FuncOp, target: Target) -> None:
    """Say of each loop of a function how it is written; PassFailedException for kinds that the target does not have."""
    settling = _GpuSettling(func, target.kind == "cuda") if target.is_gpu else _Settling(func)
    for nests in map(without_joins, nests_of_launches(func)):
        settling.launch(nests)
        for nest in nests:
            settling.statement(nest)
    note_step(func, SettleLoopKinds.name)


class _Settling:
    """Walks the nests of a function for the threads of a CPU, outer loops before inner ones."""

    def __init__(self, func: FuncOp) -> None:
        self.func = func
        self.limit = 0
        """The most copies that serial loops may make here."""
        self.around: list[str] = []
        """Kinds that the loops around are written as, those of one iteration left out."""

    def launch(self, nests: Sequence[Operation]) -> None:
        """Begin the outermost nests of a launch."""

    def statement(self, op: Operation) -> None:
        """Settle the loops of a nest."""
        if isinstance(op, ForOp):
            limit = self.limit
            self._loop(op)
            self.limit = limit

    def _loop(self, op: ForOp) -> None:
        self._require_known(op)
        kind = self._kind(op)
        if taken_ahead(op) is None:  # a pipelined loop counts its iterations
            self.limit = unroll_limit(op, self.limit)
            if kind == SERIAL and op.size > 1 and op.ends is None and self._copies(op) <= self.limit:
                kind = "unrolled"
        if kind != op.loop_kind:
            op.written = WrittenAttr(kind, self._exceptions(op, kind))
        with self._inside(op, kind):
            for child in op.body.block.ops:
                if isinstance(child, AtOp):
                    self._elsewhere(child)
                elif isinstance(child, ForOp | BlockOp):
                    self.statement(child)

    def _elsewhere(self, op: AtOp) -> None:
        for nest in statements(op):
            self.statement(nest)

    def _copies(self, op: ForOp) -> int:
        """Copies that unrolling all loops in it, lanes apart, would make; those of starts do not count."""
        if not self.limit:
            return 1
        work = work_of(op) if is_start(op) else [child for child in work_of(op) if not is_start(child)]
        total = sum(self._copies(child) if isinstance(child, ForOp) else 1 for child in work)
        return total * (1 if self._kind(op) == "vectorized" else op.size)

    def _require_known(self, op: ForOp) -> None:
        if op.loop_kind in THREAD_KINDS and op.size > 1:
            rule = f"loop '{spelled(op.loop_name)}' is bound to {op.loop_kind}, which a CPU does not have"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; mark it parallel instead")

    def _kind(self, loop: ForOp) -> str:
        kind = loop.loop_kind
        in_lanes = "vectorized" in self.around and kind in ("vectorized", "parallel")
        if in_lanes or kind == "vthread" or (kind == "parallel" and "parallel" in self.around):
            return SERIAL
        return kind

    def _exceptions(self, op: ForOp, kind: str) -> Sequence[Sequence[IndexExpr]]:
        """Conditions of which one list holds in those copies of a loop that are written as its kind says after all."""
        return ()

    @contextmanager
    def _inside(self, op: ForOp, kind: str) -> Iterator[None]:
        """Know what holds in a loop that is written as `kind`."""
        if op.size == 1:
            yield
            return
        self.around.append(kind)
        yield
        self.around.pop()


class _GpuSettling(_Settling):
    """Walks the launches of a GPU: which values loops have decides whether lanes step evenly."""

    def __init__(self, func: FuncOp, transposes: bool) -> None:
        super().__init__(func)
        self.transposes = transposes
        """True where neighbouring threads can transpose what they write."""
        self.at = LoopValues()
        self.placements = placements_of(func)
        self.plans: dict[BlockOp, BlockPlan] = {}
        self.copied: list[ForOp] = []
        """The loops around that are unrolled."""
        self.alike = dict(loops_started(func))
        """Of each loop around the start of a reduction, that of the reduction: what steps evenly there does here."""

    def launch(self, nests: Sequence[Operation]) -> None:
        self.sizes = launch_sizes(nests)

    def _require_known(self, op: ForOp) -> None:
        if op.loop_kind == "parallel":
            rule = f"loop '{spelled(op.loop_name)}' is parallel, which a GPU does not have"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; bind it to blockIdx or threadIdx")

    def _kind(self, loop: ForOp) -> str:
        kind = loop.loop_kind
        if kind == "vectorized" and loop.size > 1 and not self._steps_evenly(self.alike.get(loop, loop)):
            return "unrolled"
        if kind == SERIAL and loop in self.alike and _is_in_product(self.alike[loop]):
            return "unrolled"  # registers of an instruction have no addresses
        return kind

    def _exceptions(self, op: ForOp, kind: str) -> Sequence[Sequence[IndexExpr]]:
        if op.loop_kind != "vectorized":
            return ()
        loop = self.alike.get(op, op)
        plans = [self._plan(block) for block in blocks_in(loop)]
        asked = {name for plan in plans for name in element_axes(plan) | predicate_axes(plan)}
        copied = [around for around in self.copied if around.loop_name in asked]
        if not copied or not self._may_be_vector(loop):
            return ()
        found: set[tuple[int, ...]] = set()
        for copy in product(*(range(around.size) for around in copied)):
            with ExitStack() as stack:
                for around, value in zip(copied, copy, strict=True):
                    stack.enter_context(self.at.valued(around.loop_name, value, (value, value)))
                if self._steps_evenly(loop):
                    found.add(copy)
        return holding_for(copied, found)

    def _steps_evenly(self, loop: ForOp) -> bool:
        """True where the lanes of a loop are neighbours, or one, in everything read or written below it.

        A vector that starts at no multiple of its size cannot be moved at once: then the lanes are copies.
        """
        if not self._may_be_vector(loop) or any(isinstance(op, ForOp) for op in loop.body.block.ops):
            return False
        with self.at.valued(loop.loop_name, None, (0, loop.size - 1)):
            return all(self._plan_steps_evenly(self._plan(b), loop.loop_name, loop.size) for b in blocks_in(loop))

    def _may_be_vector(self, loop: ForOp) -> bool:
        if loop.size in LANES:
            return True
        blocks = list(blocks_in(loop)) if loop.size == MOST_BYTES else []
        return bool(blocks) and all(_moves_bytes(block) for block in blocks)

    def _plan(self, block: BlockOp) -> BlockPlan:
        if block not in self.plans:
            self.plans[block] = BlockPlan(block, self.placements)
        return self.plans[block]

    def _plan_steps_evenly(self, plan: BlockPlan, name: str, lanes: int) -> bool:
        numbers = [e for op, es in plan.indices.items() if isinstance(op, IndexOp) for e in es]
        if name in plan.reduce_loops or any(name in e.axes() for e in numbers):
            return False
        asked = [c for op, cs in plan.indices.items() if isinstance(op, PredicateOp) for c in cs]
        if self.transposes and not (asked or plan.tests or plan.writes[1:]):
            (write,) = plan.writes
            if are_transposed(plan, write, name, lanes, self.at):
                return True
        apart = [c for c in (*plan.conditions, *plan.tests, *asked) if self._tells_apart(c, name, lanes)]
        if apart and not (set(apart) <= set(plan.conditions) and self._may_overshoot(plan)):
            return False
        size = min(4, lanes)
        for access in (*plan.loads.values(), *plan.writes):
            offset = self.at.fixed(access.offset)
            step = step_in_memory(offset, name, lanes, access.place.layout.swizzle)
            if step not in (0, 1):
                return False
            if step and gcd(offset.const, *(c for a, c in offset.terms if a != name)) % size:
                return False
        return True

    def _tells_apart(self, condition: IndexExpr, name: str, lanes: int) -> bool:
        """True where a condition may hold for some lanes and not for others."""
        same = same_for_lanes(self.at.fixed(condition), name, lanes)
        return name in same.axes() and not self._holds(condition)

    def _may_overshoot(self, plan: BlockPlan) -> bool:
        """True where lanes beyond an edge fill registers that nobody reads, from memory that is there."""
        ranges = ranges_of(plan.block.enclosing_loops) | self.at.ranges
        return plan.may_overshoot((c for c in plan.conditions if not self._holds(c)), ranges, self.at.fixed)

    def _holds(self, condition: IndexExpr) -> bool:
        fixed = self.at.fixed(condition)
        return all(a in self.at.ranges for a in fixed.axes()) and fixed.bounds(self.at.ranges)[0] >= 0

    @contextmanager
    def _inside(self, op: ForOp, kind: str) -> Iterator[None]:
        copied = kind == "unrolled" and op.size > 1
        if copied:
            self.copied.append(op)
        with super()._inside(op, kind), self.at.inside(op, self.sizes):
            yield
        if copied:
            self.copied.pop()

    def _elsewhere(self, op: AtOp) -> None:
        with self.at.at_iteration(op):
            super()._elsewhere(op)


def _moves_bytes(block: BlockOp) -> bool:
    """True for a block that fills shared memory with bytes: what a device copies by itself, or chooses from bytes."""
    buffers = [block.outputs[0], *(load.buffer for load in block.loads)]
    to_shared = ASYNCHRONOUS in block.notes or scope_of(block.outputs[0]) == "shared"
    return to_shared and all(buffer_element_bytes(buffer) == 1 for buffer in buffers)


def _is_in_product(loop: ForOp) -> bool:
    """True for the loops of a matrix instruction."""
    around: object = loop
    while isinstance(around, ForOp):
        if TENSORIZE in around.notes:
            return True
        around = around.parent_op()
    return False
