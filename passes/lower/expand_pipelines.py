"""Expand pipelines: copies into shared memory stand before their loop and in it, iterations ahead of what uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.index import IndexExpr, axis, constant
from ...dialects.kernel import (
    BULK_COPIES_SINCE,
    CommitOp,
    ProxyFenceOp,
    WaitOp,
    WarpGroupCommitOp,
    WarpGroupFenceOp,
    WarpGroupWaitOp,
)
from ...dialects.loop import (
    AllocOp,
    ArrivalsOp,
    AtOp,
    BarrierOp,
    BlockOp,
    ForOp,
    LoadOp,
    buffer_type,
    is_bound,
    loops_in,
    scope_of,
    statements,
)
from ...dialects.loop_notes import PIPELINE_BULK, PIPELINE_CLUSTER, PIPELINE_REGISTERS, PIPELINE_STAGES
from ...dialects.target import Target, target_of
from ..analysis.access import loops_around
from ..analysis.nest import block_names, buffer_names, fresh_buffer_name, fresh_name, functions_on_loops, new_loop
from ..analysis.placement import whole
from ._operands_ahead import OperandsAhead, levels_of
from ._product_waits import goes_on, is_of_warp_group, wait_for_products
from ._run_ahead import ASYNCHRONOUS, BEYOND, BULK, blocks_of, run_ahead
from ._spread_copies import spread, steps_of
from ._starts import starts_before
from ._steps import note_step, require_after
from .fill_tails import FillTails

ASYNC_COPIES_SINCE = 80
"""The first compute capability that copies to shared memory by itself (CUDA C++ Programming Guide)."""

Nest = ForOp | BlockOp


@dataclass(frozen=True)
class ExpandPipelines(ModulePass):
    """`for k in n annotated {pipeline_stages = 3} { copy(k) work(k) }`, on a device that copies asynchronously ->

    `copy(0) commit copy(1) commit for k in n { wait 1 barrier at k = k + 2 where (n - 3 - k >= 0) { copy(k) } commit
    work(k) }`, with copies that are annotated as asynchronous.

    Where the work is a loop of steps that are written out, copies by threads may be spread over these: `for k in n {
    wait 1 barrier for s in 16 { at k = k + 2 where (7 - s >= 0) { copy_of_step(k, s) } work(k, s) } commit }`.

    Copies that are annotated as `bulk` are the copy engine's from sm_90 on: `arrivals start k of 3 ... for k {
    arrivals k of 3 ... }` in the place of commits and waits. A product of a warp group goes on while the next one is
    begun: `for k { wait 1 proxy_fence barrier wgmma_fence product(k) wgmma_commit wgmma_wait 1 barrier at k = k + 2 {
    copy(k) } commit } wgmma_wait 0`, as what product k - 1 has read is filled again. Where there is other work beside
    them, each nest of products is waited for, and one `proxy_fence` before the first barrier serves all of them: before
    the loop where it copies in bulk alone.

    Where a step has several terms, operands are read a term ahead on CUDA: the wait and the barrier of an iteration
    stand in the last term of the one before, as the beginning of the next: `for k in n { at k = k + 2 { copy(k) }
    commit for s in 4 { for t in 4 { at k = k + 1 where (s - 3 >= 0, t - 3 >= 0) { wait 1 barrier read(k) } ... } } }`.

    On other devices, and for copies that are annotated so, the one ahead is split in two: a thread loads its elements
    to registers of its own before the work of an iteration, and stores them behind it. The allocations of the loop
    move before it, as its iterations share them.

    Requires: tails filled with zeros (`lw-fill-tails`). What ends before its extent copies nothing beyond that.
    """

    name = "lw-expand-pipelines"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, FillTails.name)
            expand_pipelines(func, target_of(op))


def expand_pipelines(func: FuncOp, target: Target) -> None:
    """Expand the pipelined loops of a function whose reductions are started, in place. A CPU runs them as they are."""
    if target.is_gpu:
        by_itself = target.kind == "cuda" and target.compute_capability >= ASYNC_COPIES_SINCE
        for loop in list(loops_in(func)):
            copies = run_ahead(loop) if loop.size > 1 else ()
            if copies:
                _in_one_launch(loop)
                _Pipeline(func, loop, copies, by_itself, target).expand()
        if target.kind == "cuda":
            wait_for_products(func)
    note_step(func, ExpandPipelines.name)


def _in_one_launch(loop: ForOp) -> None:
    """Put an outermost loop into one of a single iteration: what stands before it belongs to the same launch."""
    block = loop.parent_block()
    if block is not None and isinstance(block.parent_op(), FuncOp):
        around = new_loop(f"{loop.loop_name}_launch", 1)
        block.insert_op_before(around, loop)
        for nest in (*starts_before(loop), loop):
            block.detach_op(nest)
            around.body.block.add_op(nest)


class _Pipeline:
    """One loop, with what is copied asynchronously, and what through registers."""

    def __init__(self, func: FuncOp, loop: ForOp, copies: Sequence[Nest], by_itself: bool, target: Target) -> None:
        stages = loop.notes[PIPELINE_STAGES]
        assert isinstance(stages, IntegerAttr)
        self.func, self.loop, self.copies, self.target = func, loop, copies, target
        self.ahead = stages.value.data - 1
        by_engine = target.kind == "cuda" and target.compute_capability >= BULK_COPIES_SINCE
        self.bulk = [nest for nest in copies if by_engine and _is_bulk(nest)]
        for nest in self.bulk:
            _require_once(loop, nest)
        self.across = _across(loop) if self.bulk else ()
        """The axes of blocks that are a cluster, and share what they copy in bulk."""
        by_threads = [nest for nest in copies if nest not in self.bulk]
        self.by_itself = [nest for nest in by_threads if by_itself and _may_be_asynchronous(nest)]
        self.held = [nest for nest in by_threads if nest not in self.by_itself]
        self.names = block_names(func)
        work = [nest for nest in statements(loop) if nest not in copies]
        self.lags = target.kind == "cuda" and bool(work) and all(map(goes_on, work))
        """True where the work of an iteration is products of warp groups alone, which go on beside their threads."""
        self.shows = target.kind == "cuda" and any(is_of_warp_group(b) for nest in work for b in blocks_of(nest))
        """True where products of warp groups read what threads have copied, in the loop or before it."""

    def expand(self) -> None:
        loads: list[Operation] = []
        stores: list[Operation] = []
        registers: list[AllocOp] = []
        for nest in self.held:
            load, store = self._clone(nest), self._clone(nest)
            for op in (load, store):
                _unroll(op)
            for first, second, block in zip(blocks_of(load), blocks_of(store), blocks_of(nest), strict=True):
                registers.append(self._registers(block))
                _through(block, first, second, registers[-1].buffer, self._held_in(block))
            loads.append(load)
            stores.append(store)
        parent = self.loop.parent_block()
        assert parent is not None
        owned = [op for op in self.loop.body.block.ops if isinstance(op, AllocOp)]
        for alloc in owned:
            alloc.detach()  # type: ignore[no-untyped-call]
        stages, across = self.ahead + 1, self.across
        operands = self._operands(owned)
        start: list[Operation] = []
        if self.bulk:
            start.append(ArrivalsOp(self.loop.loop_name, stages, start=True, across=across))
        if self.shows and not self.lags:
            start.insert(0, ProxyFenceOp())
        own = operands.registers if operands is not None else []
        parent.insert_ops_before([*registers, *owned, *own, *start, *self._before()], self.loop)
        if not self._fill_steps():
            self._fill_loop(loads, stores)
        if operands is not None:
            self._turn(operands)
        for nest in self.copies:
            nest.detach()  # type: ignore[no-untyped-call]
            nest.erase()

    def _operands(self, owned: Sequence[AllocOp]) -> OperandsAhead | None:
        """Operands that the steps of an iteration read, where that is done a term ahead."""
        if self.target.kind != "cuda" or self.bulk or self.lags or self.shows or self.loop.ends is not None:
            return None
        levels = levels_of(self.loop, self.copies) if self.loop.size > self.ahead + 1 else ()
        if not levels:
            return None
        found = OperandsAhead(self.func, self.loop, levels, [alloc.buffer for alloc in owned])
        return found if found.reads else None

    def _turn(self, operands: OperandsAhead) -> None:
        """Begin each iteration in the last step of the one before, once that has read its operands."""
        body, steps, k = self.loop.body.block, operands.levels[0], axis(self.loop.loop_name)
        parent = self.loop.parent_block()
        assert parent is not None
        ops = list(body.ops)
        number = next(number for number, op in enumerate(ops) if op is steps or steps in op.walk())
        begin = [op for op in ops[:number] if isinstance(op, WaitOp | BarrierOp)]
        end = ops[number + 1 :]
        for op in (*begin, *end):
            op.detach()  # type: ignore[no-untyped-call]
        first = AtOp(self.loop.loop_name, constant(0), Region(Block(operands.first())))
        parent.insert_ops_before([*(op.clone() for op in begin), first], self.loop)
        stored = [op for op in end if isinstance(op, AtOp)]
        for op in stored:
            op.where = IndicesAttr((*op.conditions, *operands.last))
        commits = [op for op in end if op not in stored]
        turn = AtOp(self.loop.loop_name, k + 1, Region(Block([*commits, *begin, *operands.first()])), operands.last)
        inside = operands.levels[-1].body.block
        work = next(op for op in inside.ops if not isinstance(op, AtOp))
        inside.insert_ops_before([*operands.next(), *stored, turn], work)
        operands.take()

    def _before(self) -> list[Operation]:
        """The copies of the first iterations."""
        ops: list[Operation] = []
        for step in range(self.ahead):
            nests = [*map(self._by_engine, self.bulk), *map(self._asynchronous, self.by_itself)]
            nests += map(self._clone, self.held)
            ops.append(self._at(constant(step), nests))
            ops += self._commit()
        return ops

    def _fill_steps(self) -> bool:
        """Copy for a later iteration in the steps of this one, where threads begin all copies and do the work."""
        steps = None if self.bulk or self.held or self.lags or self.shows else steps_of(self.loop, self.copies)
        first = self.loop.body.block.first_op
        assert first is not None
        if steps is None or not spread(self.loop, steps, [*map(self._asynchronous, self.by_itself)], self.ahead):
            return False
        self.loop.body.block.insert_ops_before([WaitOp(self.ahead - 1), BarrierOp()], first)
        self.loop.body.block.add_ops(self._commit())
        return True

    def _fill_loop(self, loads: list[Operation], stores: list[Operation]) -> None:
        """Put around the work of an iteration what is copied for a later one."""
        body = self.loop.body.block
        fetched = [*map(self._by_engine, self.bulk), *map(self._asynchronous, self.by_itself), *loads]
        wait: list[Operation] = [ArrivalsOp(self.loop.loop_name, self.ahead + 1)] if self.bulk else []
        wait += [WaitOp(self.ahead - 1)] if self.by_itself else []
        ahead = [BarrierOp(cluster=bool(self.across)), self._later(fetched), *self._commit()]
        first = body.first_op
        assert first is not None
        if self.lags:
            seen = [ProxyFenceOp(), BarrierOp()] if self.by_itself or self.held else []
            body.insert_ops_before([*wait, *seen, WarpGroupFenceOp()], first)
            body.add_ops([WarpGroupCommitOp(), WarpGroupWaitOp(1), *ahead])
            parent = self.loop.parent_block()
            assert parent is not None
            parent.insert_op_after(WarpGroupWaitOp(0), self.loop)
        else:
            seen = [ProxyFenceOp()] if self.shows and (self.by_itself or self.held) else []
            body.insert_ops_before([*wait, *seen, *ahead], first)
        if stores:
            body.add_op(self._later(stores))

    def _later(self, nests: Sequence[Operation]) -> AtOp:
        k = axis(self.loop.loop_name)
        return self._at(k + self.ahead, nests, [self.loop.size - 1 - self.ahead - k])

    def _at(self, iteration: IndexExpr, nests: Sequence[Operation], where: Sequence[IndexExpr] = ()) -> AtOp:
        """Nests for another iteration, where the loop comes to it."""
        ends = self.loop.ends.data if self.loop.ends is not None else ()
        reached = [c.substitute({self.loop.loop_name: iteration}) for c in ends]
        return AtOp(self.loop.loop_name, iteration, Region(Block(nests)), [*where, *reached])

    def _commit(self) -> list[Operation]:
        return [CommitOp()] if self.by_itself else []

    def _clone(self, nest: Nest) -> Nest:
        """A copy of a nest, whose blocks have names of their own."""
        clone = nest.clone()
        for block in blocks_of(clone):
            number = next(n for n in range(len(self.names) + 1) if f"{block.block_name}${n}" not in self.names)
            block.label = StringAttr(f"{block.block_name}${number}")
            self.names.add(block.block_name)
        return clone

    def _by_engine(self, nest: Nest) -> Nest:
        clone = self._clone(nest)
        for block in blocks_of(clone):
            _note(block, BULK, UnitAttr())
        return clone

    def _asynchronous(self, nest: Nest) -> Nest:
        clone = self._clone(nest)
        for block in blocks_of(clone):
            _note(block, ASYNCHRONOUS, UnitAttr())
        return clone

    # -- through registers --------------------------------------------------------------------------------------------

    def _held_in(self, block: BlockOp) -> list[ForOp]:
        """The loops whose iterations hold an element each: virtual threads around the pipeline, and those inside."""
        loops = block.enclosing_loops
        depth = loops.index(self.loop)
        named = {name for e in block.bindings.data for name in e.axes()}
        around = [x for x in loops[:depth] if x.loop_kind == "vthread" and x.loop_name in named]
        found = [x for x in (*around, *loops[depth + 1 :]) if not is_bound(x) and x.size > 1]
        return sorted(found, key=lambda x: x.loop_kind == "vectorized")

    def _registers(self, block: BlockOp) -> AllocOp:
        shape = tuple(x.size for x in self._held_in(block))
        name = fresh_buffer_name(f"{block.block_name}_next", buffer_names(self.func))
        target = block.outputs[0].type
        assert isinstance(target, MemRefType)
        return AllocOp(name, buffer_type(target.element_type, shape, "local"), layout=whole(shape))


def _may_be_asynchronous(nest: Nest) -> bool:
    """True for copies from global memory, which alone the device reads by itself, unless registers are asked for."""
    from_global = all(scope_of(load.buffer) == "global" for block in blocks_of(nest) for load in block.loads)
    return from_global and not _through_registers(nest)


def _is_bulk(nest: Nest) -> bool:
    return isinstance(nest, ForOp) and all(PIPELINE_BULK in block.notes for block in blocks_of(nest))


def _across(loop: ForOp) -> tuple[str, ...]:
    """The axes of several blocks of a cluster that share boxes; PassFailedException where they end apart."""
    note = loop.notes.get(PIPELINE_CLUSTER)
    axes = note.data.split() if isinstance(note, StringAttr) else []
    found = {each.loop_kind for each in loops_around(loop) if each.size > 1}
    across = tuple(axis for axis in axes if axis in found)
    if across and loop.ends is not None:
        rule = f"loop '{loop.loop_name}' ends where data or tiles say, and blocks of a cluster wait in it"
        raise PassFailedException(f"lw-expand-pipelines: {rule}: pipeline it without cluster")
    return across


def _require_once(loop: ForOp, nest: Nest) -> None:
    """PassFailedException where a loop of bulk copies is run several times, as the phases of its barriers are counted
    from its first iteration on.
    """
    around = loop.parent_op()
    while isinstance(around, ForOp):
        if around.size > 1 and not is_bound(around):
            name = blocks_of(nest)[0].block_name
            rule = f"loop '{loop.loop_name}' copies '{name}' in bulk, so that loop '{around.loop_name}' around it"
            raise PassFailedException(f"lw-expand-pipelines: {rule} must be bound to blocks or threads")
        around = around.parent_op()


def _through_registers(nest: Nest) -> bool:
    return any(PIPELINE_REGISTERS in block.notes for block in blocks_of(nest))


def _note(block: BlockOp, key: str, value: Attribute) -> None:
    block.annotations = DictionaryAttr({**block.notes, key: value})


def _unroll(nest: Operation) -> None:
    """Unroll all serial loops: registers have no addresses."""
    for loop in [nest, *loops_in(nest)] if isinstance(nest, ForOp) else ():
        if isinstance(loop, ForOp) and loop.loop_kind == "serial":
            loop.kind = StringAttr("unrolled")


def _through(block: BlockOp, load: BlockOp, store: BlockOp, registers: SSAValue, loops: Sequence[ForOp]) -> None:
    """Make of two clones of a copy one that loads to registers, and one that stores from there."""
    beyond = _beyond(block)
    if beyond:
        _note(load, BEYOND, IndicesAttr(tuple(beyond)))
    at = IndicesAttr(tuple(_iterators(load, loops)))
    load.operands = [registers]
    load.writes = ArrayAttr([at])
    _iterators(store, loops)
    (source,) = store.loads
    new = LoadOp(registers, at.data)
    body = store.body.block
    body.insert_op_before(new, source)
    source.result.replace_all_uses_with(new.result)
    body.erase_op(source)


def _iterators(block: BlockOp, loops: Sequence[ForOp]) -> list[IndexExpr]:
    """Give a block an iterator for each of the loops."""
    names: list[str] = []
    for loop in loops:
        names.append(fresh_name(loop.loop_name, {a.name for a in block.axes}))
        block.iterators = AxesAttr((*block.axes, Axis(names[-1], loop.size)))
        block.rebind((*block.bindings.data, axis(loop.loop_name)), block.conditions)
    return [axis(name) for name in names]


def _beyond(block: BlockOp) -> Iterable[IndexExpr]:
    """The predicates that keep a copy inside of the buffer that it fills, beyond which nobody reads."""
    bound = block.bound
    edges: set[IndexExpr] = set()
    target = block.outputs[0].type
    assert isinstance(target, MemRefType)
    for write, extent in zip(block.write_indices[0], target.get_shape(), strict=True):
        at = write.substitute(bound)
        edges |= {at, extent - 1 - at}
    return [c for c in block.conditions if c in edges]
