"""The interpreter of launches: the threads of some blocks side by side in NumPy arrays, in lockstep.

A value is an array over threads, or one number where all threads have the same; a branch is a mask; a barrier ends a
period, in which no thread may touch what another one writes (`races`). As many blocks as fit run at once, then the
next ones. What is no plain function of its operands is a handler in `HANDLERS`: it takes the program of the threads and
the operation, and gives a step. A step finds the threads that run in `program.threads.on` and memory in the slots of
buffers; asynchronous writes begin by `Shared.take_off` and end by `Shared.land`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IntAttr, MemRefType, UnitAttr, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from .. import kernel
from ..element import element_bytes
from ..intrinsics import ROW_BYTES
from . import matrices
from .async_copies import AsyncCopies
from .bulk_copies import BulkCopies
from .group_products import GroupProducts
from .kernel_functions import Array, dtype_of, function_of
from .kernel_program import Handler, Program, Step, constant_value, nothing
from .located import located
from .loop import InterpretationError
from .thread_memory import Access, Argument, Registers, Shared, block_memory, written_state
from .threads import Threads, Unknown

MOST_THREADS = 16384
"""Threads that run side by side, unless a single block has more."""
MOST_BYTES = 1 << 27
"""Of registers and shared memory of the blocks that run side by side, unless a single block has more."""


class ThreadProgram(Program):
    """The steps of a launch, on the values of the function around it."""

    def __init__(self, around: Program, op: kernel.LaunchOp) -> None:
        super().__init__(HANDLERS, _computed)
        self.values = around.values
        self.around = around
        self.threads = Threads(op, op.grid_size, op.block_size)
        self.copies = AsyncCopies(self.threads)
        self.group_products = GroupProducts(self.threads)
        self.bulk_copies = BulkCopies(self.threads)
        self.vectors: list[tuple[int, int]] = []
        """Slots of vectors from around the launch, there and here."""
        self.buffers: list[tuple[SSAValue, int, int]] = []
        """Buffers from around the launch, with their slots there and here."""
        self.op = op
        self.held_bytes = 1
        """Registers and shared memory of a block of threads."""
        self._blocks: set[Block] = set()

    def block(self, block: Block) -> list[Step]:
        self._blocks.add(block)
        return super().block(block)

    def slot(self, value: SSAValue) -> int:
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = self.new_slot() if self._is_inside(value) else self._slot_around(value)
        return found

    def _slot_around(self, value: SSAValue) -> int:
        """The place of a value from around the launch; vectors and buffers look otherwise here than there."""
        outside = self.around.slot(value)
        if isinstance(value.type, MemRefType):
            self.buffers.append((value, outside, self.new_slot()))
            return self.buffers[-1][2]
        if isinstance(value.type, VectorType):
            self.vectors.append((outside, self.new_slot()))
            return self.vectors[-1][1]
        return outside

    def _is_inside(self, value: SSAValue) -> bool:
        """True for what an operation of the launch defines, all of which come before those that use it."""
        owner = value.owner
        return (owner if isinstance(owner, Block) else owner.parent) in self._blocks


def launch(around: Program, op: kernel.LaunchOp) -> Step:
    """Make a launch ready."""
    program = ThreadProgram(around, op)
    steps = program.block(op.body.block)
    blocks, threads = prod(op.grid_size), program.threads
    at_once = max(1, min(MOST_THREADS // threads.per_block, MOST_BYTES // program.held_bytes))

    def step(values: list[Any]) -> None:
        for outside, inside in program.vectors:
            values[inside] = values[outside][:, None]
        threads.start(0, min(at_once, blocks))
        across = _across(program, values)
        threads.across = list(across)
        for first in range(0, blocks, at_once):
            threads.start(first, min(at_once, blocks - first))
            program.copies.start()
            program.group_products.start()
            program.bulk_copies.start()
            for each in steps:
                each(values)
            program.group_products.require_waited_for(op)
            threads.finish_blocks()
        for memory in across:
            memory.shadow.end_launch()

    return step


def _across(program: ThreadProgram, values: list[Any]) -> Sequence[Shared]:
    """Give the threads the buffers of the function; returns those that the launch writes to."""
    written = {value for value, _, _ in program.buffers if _is_written_in(value, program.op)}
    found: list[Shared] = []
    for value, outside, inside in program.buffers:
        array, label = values[outside], value.name_hint or "?"
        state = program.around.states.get(value)
        if state is None:
            state = program.around.states[value] = written_state(array.size, _is_written_before(value))
        if value in written or not state.all():
            found.append(Shared(program.threads, label, array, state))
            values[inside] = found[-1]
        else:
            values[inside] = Argument(program.threads, label, array)
    return found


def _is_written_before(buffer: SSAValue) -> bool:
    """True for inputs, and where something outside of launches writes a buffer."""
    if isinstance(buffer, BlockArgument):
        func = buffer.block.parent_op()
        marks = func.arg_attrs.data if isinstance(func, FuncOp) and func.arg_attrs is not None else ()
        if not marks or not isinstance(marks[buffer.index].data.get("lw.output"), UnitAttr):
            return True
    return _is_written_in(buffer, None)


def _is_written_in(buffer: SSAValue, launch: Operation | None) -> bool:
    """True where an operation in a launch writes a buffer; in none of them for None."""
    operations = (use.operation for use in buffer.uses)
    return any(not _only_reads(op, buffer) and _launch_of(op) is launch for op in operations)


def _only_reads(op: Operation, buffer: SSAValue) -> bool:
    if isinstance(op, kernel.AsyncCopyOp | kernel.BulkCopyOp):
        return op.target is not buffer
    return isinstance(op, kernel.LoadOp | kernel.GatherOp | kernel.PrefetchOp)


def _launch_of(op: Operation) -> Operation | None:
    around: Operation | None = op
    while around is not None and not isinstance(around, kernel.LaunchOp):
        around = around.parent_op()
    return around


def _scope(buffer: MemRefType[Attribute]) -> str:
    return str(getattr(buffer.memory_space, "data", "global"))


# -- memory -----------------------------------------------------------------------------------------------------------


def _access(program: ThreadProgram, op: Operation, value: SSAValue) -> Access:
    """The elements that a load or a store touches; one by gather or scatter has an index for each lane instead."""
    offset, stride, align = (_number(op, name) for name in ("offset", "stride", "align"))
    return Access(program.threads.number(op), program.slot(value), value.type, offset, stride, align)


def _number(op: Operation, name: str) -> int:
    data = op.properties.get(name)
    return 0 if data is None else cast(IntAttr, data).data


def _load(program: ThreadProgram, op: kernel.LoadOp | kernel.GatherOp) -> Step:
    buffer, index, *masks = program.slots(op.operands)
    access, into, threads = _access(program, op, op.value), program.slot(op.value), program.threads
    on = _lanes_on(program, op, index, masks)

    def step(values: list[Any]) -> None:
        values[into] = values[buffer].load(
            access, values[index], on(values) if threads.unknown or masks else threads.on
        )

    return step


def _store(program: ThreadProgram, op: kernel.StoreOp | kernel.ScatterOp) -> Step:
    value, buffer, index, *masks = program.slots(op.operands)
    access, threads = _access(program, op, op.value), program.threads
    on = _lanes_on(program, op, index, masks)

    def step(values: list[Any]) -> None:
        lanes = on(values) if threads.unknown or masks else threads.on
        values[buffer].store(access, values[index], lanes, values[value])

    return step


def _lanes_on(
    program: ThreadProgram, op: Operation, index: int, masks: Sequence[int]
) -> Callable[[list[Any]], Array | None]:
    """The lanes that an access touches, whose index and mask are known."""
    threads = program.threads

    def on(values: list[Any]) -> Array | None:
        if threads.unknown:
            threads.require_known(index, op, "an address")
            for mask in masks:
                threads.require_known(mask, op, "a mask")
        return threads.both(values[masks[0]]) if masks else threads.on

    return on


def _alloc(program: ThreadProgram, op: kernel.AllocOp) -> Step:
    buffer = cast("MemRefType[Attribute]", op.buffer.type)
    into, threads, label = program.slot(op.buffer), program.threads, op.label.data
    size, element, scope = prod(buffer.get_shape()), buffer.element_type, _scope(buffer)
    program.held_bytes += size * element_bytes(element) * (threads.per_block if scope == "local" else 1)

    def local(values: list[Any]) -> None:
        values[into] = Registers(threads, label, size, element)

    def shared(values: list[Any]) -> None:
        values[into] = threads.shared[op] = block_memory(threads, label, size, element)

    if scope not in ("local", "shared"):
        raise InterpretationError(f"a launch allocates in scope local or shared: {located(op)}")
    return local if scope == "local" else shared


def _async_copy(program: ThreadProgram, op: kernel.AsyncCopyOp) -> Step:
    source, source_index, target, target_index, *condition = program.slots(op.operands)
    threads, lanes = program.threads, op.lanes.data
    kind = kernel.vector_of(cast("MemRefType[Attribute]", op.source.type).element_type, lanes)
    number = threads.number(op)
    copied_slot = program.new_slot()
    read = Access(number, copied_slot, kind, op.source_offset.data, 1, op.size_bytes)
    write = Access(number, copied_slot, kind, op.target_offset.data, 1, op.size_bytes)
    known = {source_index: "an address", target_index: "an address", copied_slot: "what is copied"}
    known |= dict.fromkeys(condition, "a condition")

    def require_known() -> None:
        for slot, what in known.items():
            threads.require_known(slot, op, what)

    def step(values: list[Any]) -> None:
        if threads.unknown:
            require_known()
        there = threads.both(values[condition[0]]) if condition else threads.on
        copied = values[source].load(read, values[source_index], there)
        if threads.unknown:
            require_known()
        memory: Shared = values[target]
        elements, by, on = memory.take_off(write, values[target_index], threads.on)
        copied = copied.reshape(-1) if on is None else copied[on]
        program.copies.issue(memory, number, elements, by, copied)

    return step


def _commit(program: ThreadProgram, op: Operation) -> Step:
    return lambda values: program.copies.commit()


def _wait(program: ThreadProgram, op: kernel.WaitOp) -> Step:
    return lambda values: program.copies.wait(op.pending.data)


# -- threads ----------------------------------------------------------------------------------------------------------


def _thread(program: ThreadProgram, op: kernel.ThreadOp) -> Step:
    into, axis = program.slot(op.result), op.axis.data

    def step(values: list[Any]) -> None:
        values[into] = program.threads.place(axis)

    return step


def _barrier(program: ThreadProgram, op: Operation) -> Step:
    return lambda values: program.threads.wait_for_each_other(op)


def _shuffle(program: ThreadProgram, op: kernel.ShuffleOp) -> Step:
    source, into, distance = program.slot(op.value), program.slot(op.result), op.distance.data
    threads = program.threads

    def step(values: list[Any]) -> None:
        values[into] = threads.exchanged(op, values[source], distance)
        if threads.unknown:
            _pass_on(threads, (source,), into, lambda lanes: threads.exchanged(op, lanes, distance))

    return step


# -- matrices of a warp -----------------------------------------------------------------------------------------------


def _fragment_load(program: ThreadProgram, op: kernel.FragmentLoadOp) -> Step:
    buffer, index = program.slots(op.operands)
    element = cast("MemRefType[Attribute]", op.buffer.type).element_type
    row = kernel.vector_of(element, ROW_BYTES // element_bytes(element))
    slot, into, threads = program.new_slot(), program.slot(op.value), program.threads
    access = Access(threads.number(op), slot, row, op.offset.data, 1, ROW_BYTES)

    def step(values: list[Any]) -> None:
        threads.require_whole_warps(op)
        found = values[buffer].load(access, values[index], threads.on)
        threads.require_known(slot, op, "a matrix")
        rows = np.broadcast_to(found, (len(found), threads.n))
        values[into] = matrices.registers(rows, op.matrices, op.turned is not None)

    return step


def _matrix_product(program: ThreadProgram, op: kernel.MatrixProductOp) -> Step:
    a, b, sums, index = program.slots(op.operands)
    threads, intrinsic = program.threads, op.meaning()
    element, slot = cast("MemRefType[Attribute]", op.sums.type).element_type, program.new_slot()
    accesses = [Access(threads.number(op), slot, element, place) for place in op.offsets]

    def step(values: list[Any]) -> None:
        threads.require_whole_warps(op)
        held = []
        for access in accesses:
            held.append(np.broadcast_to(values[sums].load(access, values[index], threads.on), threads.n))
            threads.require_known(slot, op, "a sum")
        found = matrices.product(intrinsic, values[a], values[b], np.stack(held))
        for access, value in zip(accesses, found, strict=True):
            values[sums].store(access, values[index], threads.on, value)

    return step


# -- products of warp groups, and bulk copies -------------------------------------------------------------------------


def _group_product(program: ThreadProgram, op: kernel.WarpGroupProductOp) -> Step:
    threads, intrinsic, number = program.threads, op.meaning(), program.threads.number(op)
    threads.watches_products = True
    sums, index = program.slots((op.sums, op.index))
    factors: list[tuple[int, int, Array, int, int]] = []
    for name, buffer, at, offset, matrix in op.factors():
        size = intrinsic.fragment(name).bytes
        rows, steps = (intrinsic.extents[x] for x in intrinsic.axes(name))
        places = np.array([[matrix.place(row, k, size) for k in range(steps)] for row in range(rows)]) + offset
        factors.append((program.slot(buffer), program.slot(at), places, matrix.span, size))

    def step(values: list[Any]) -> None:
        first = program.group_products.leaders(op)
        taken = []
        for buffer, at, places, span, size in factors:
            start = np.broadcast_to(values[at], threads.n)[first]
            elements = matrices.swizzled(start[:, None, None] + places, span, size)
            taken.append((values[buffer], elements, values[buffer].read_in_product(number, elements, first)))
        (_, _, a), (_, _, b) = taken
        rows = [int(values[index]) + place for place in op.sum_places]
        values[sums].add_product(number, rows, lambda held: matrices.group_product(intrinsic, a, b, held))
        reads = [(memory, number, elements, first) for memory, elements, _ in taken]
        program.group_products.begin(reads, values[sums], rows)

    return step


def _group_fence(program: ThreadProgram, op: Operation) -> Step:
    def step(values: list[Any]) -> None:
        program.group_products.leaders(op)
        for value in values:
            if isinstance(value, Registers):
                value.unfenced.clear()

    return step


def _group_commit(program: ThreadProgram, op: Operation) -> Step:
    def step(values: list[Any]) -> None:
        program.group_products.leaders(op)
        program.group_products.commit()

    return step


def _group_wait(program: ThreadProgram, op: kernel.WarpGroupWaitOp) -> Step:
    def step(values: list[Any]) -> None:
        program.group_products.leaders(op)
        program.group_products.wait(op.pending.data)

    return step


def _proxy_fence(program: ThreadProgram, op: Operation) -> Step:
    def step(values: list[Any]) -> None:
        for memory in program.threads.shared.values():
            assert isinstance(memory, Shared)
            memory.show(program.threads.on)

    return step


def _bulk_copy(program: ThreadProgram, op: kernel.BulkCopyOp) -> Step:
    source, *place = program.slots((op.source, *op.place))
    target, at, barrier, which = program.slots((op.target, op.target_index, op.barrier, op.barrier_index))
    threads, number = program.threads, program.threads.number(op)
    size = element_bytes(cast("MemRefType[Attribute]", op.source.type).element_type)
    box = np.indices(op.box_extents).reshape(len(op.box_extents), -1)

    def step(values: list[Any]) -> None:
        by = threads.alone(op)
        here = [np.broadcast_to(values[each], threads.n)[by] for each in place]
        inside, flat = np.ones((len(by), box.shape[1]), np.bool_), np.zeros((len(by), box.shape[1]), np.int64)
        for start, along, extent in zip(here, box, op.extents, strict=True):
            element = start[:, None] + along
            inside &= (element >= 0) & (element < extent)
            flat = flat * extent + np.clip(element, 0, extent - 1)
        read = np.repeat(by, box.shape[1]).reshape(flat.shape)
        copied = np.zeros(flat.shape, values[source].array.dtype)
        copied[inside] = values[source].read_in_bulk(number, flat[inside], read[inside])
        first = np.broadcast_to(values[at], threads.n)[by] + op.target_offset.data
        elements = matrices.swizzled(first[:, None] + np.arange(box.shape[1]), op.swizzle.data, size)
        index = np.broadcast_to(values[which], threads.n)[by]
        landing = values[target].take_off_in_bulk(number, elements, by)
        program.bulk_copies.begin(values[barrier], index, by, values[target], landing, copied, op.size_bytes)

    return step


def _barrier_init(program: ThreadProgram, op: kernel.BarrierInitOp) -> Step:
    barrier, which = program.slots((op.barrier, op.index))

    def step(values: list[Any]) -> None:
        by = program.threads.alone(op)
        index = np.broadcast_to(values[which], program.threads.n)[by]
        program.bulk_copies.start_barriers(values[barrier], index, by, op.number.data)

    return step


def _barrier_expect(program: ThreadProgram, op: kernel.BarrierExpectOp) -> Step:
    barrier, which = program.slots((op.barrier, op.index))

    def step(values: list[Any]) -> None:
        by = program.threads.alone(op)
        index = np.broadcast_to(values[which], program.threads.n)[by]
        program.bulk_copies.expect(op, values[barrier], index, by, op.number.data)

    return step


def _barrier_await(program: ThreadProgram, op: kernel.BarrierAwaitOp) -> Step:
    barrier, which, parity = program.slots((op.barrier, op.index, op.parity))

    def step(values: list[Any]) -> None:
        if program.threads.on is not None:
            program.threads.require_together(op, program.threads.of_block, program.threads.n_blocks, "a block")
        program.bulk_copies.await_phase(op, values[barrier], values[which], values[parity])

    return step


# -- values -----------------------------------------------------------------------------------------------------------


def _constant(program: ThreadProgram, op: arith.ConstantOp) -> None:
    found = constant_value(op)
    program.values[program.slot(op.result)] = found[:, None] if np.ndim(found) else found


def _lanes(program: ThreadProgram, op: kernel.LanesOp) -> None:
    kind = op.result.type
    program.values[program.slot(op.result)] = np.arange(kernel.lanes_of(kind), dtype=dtype_of(kind))[:, None]


def _mask(program: ThreadProgram, op: kernel.MaskOp) -> Step:
    lanes, is_vector = kernel.lanes_of(op.result.type), isinstance(op.result.type, VectorType)
    ahead: Any = (np.arange(lanes) * op.step.data)[:, None] if is_vector else 0
    return _computed_by(program, op, lambda start: start + ahead >= 0, lambda start: _in_lanes(start, lanes))


def _broadcast(program: ThreadProgram, op: vector.BroadcastOp) -> Step:
    lanes = kernel.lanes_of(op.results[0].type)
    return _computed_by(program, op, lambda value: _in_lanes(value, lanes), lambda value: _in_lanes(value, lanes))


def _in_lanes(value: Any, lanes: int) -> Array:
    """A scalar in each lane of a vector."""
    return np.asarray(value).reshape(1, -1).repeat(lanes, 0)


def _computed(program: ThreadProgram, op: Operation) -> Step:
    """Compute a function of the operands' values, and which lanes of the result are known."""
    function = function_of(op)
    passed_on: Callable[..., Any] = _either
    if isinstance(op, vector.ShuffleOp | vector.ExtractOp | vector.InsertOp):
        passed_on = function
    elif isinstance(op, vector.ReductionOp):
        passed_on = _any_lane
    return _computed_by(program, op, function, passed_on)


def _computed_by(
    program: ThreadProgram, op: Operation, function: Callable[..., Any], passed_on: Callable[..., Any]
) -> Step:
    """A step by a function of values, and one of which lanes of them are unknown."""
    given = op.operands
    operands, into, threads = program.slots(given), program.slot(op.results[0]), program.threads
    chooses = isinstance(op, kernel.SelectOp | arith.SelectOp)
    known = [_known(kernel.lanes_of(operand.type)) for operand in given]

    def step(values: list[Any]) -> None:
        values[into] = function(*[values[operand] for operand in operands])
        if threads.unknown:
            note = partial(_chosen_lanes, values[operands[0]]) if chooses else passed_on
            _pass_on(threads, operands, into, note, known)

    return step


@cache
def _known(lanes: int) -> Any:
    """Say of a value of so many lanes that all of them are known."""
    return _in_lanes(np.False_, lanes) if lanes > 1 else np.False_


def _pass_on(
    threads: Threads, operands: Sequence[int], into: int, lanes: Callable[..., Any], known: Sequence[Any] = ()
) -> None:
    """Keep in mind which lanes of a result are unknown; `known` stand for operands that are known in all of theirs."""
    unknown = threads.unknown
    found = [unknown.get(operand) for operand in operands]
    read = next((each.read for each in found if each is not None), None)
    if read is None:
        unknown.pop(into, None)
        return
    masks = [known[n] if each is None else each.lanes for n, each in enumerate(found)]
    unknown[into] = Unknown(np.asarray(lanes(*masks)), read)


def _either(*lanes: Any) -> Any:
    return reduce(np.logical_or, lanes)


def _any_lane(lanes: Array, *first: Any) -> Any:
    return _either(lanes.any(axis=0), *first)


def _chosen_lanes(holds: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    return condition | np.where(holds, then, otherwise)


# -- control ----------------------------------------------------------------------------------------------------------


def _for(program: ThreadProgram, op: scf.ForOp) -> Step:
    low, high, stride = program.slots(op.operands)
    body, threads = op.body.block, program.threads
    counter, steps = program.slot(body.args[0]), program.block(body)

    def step(values: list[Any]) -> None:
        for slot in (low, high, stride) if threads.unknown else ():
            threads.require_known(slot, op, "the end of a loop")
        first, last, by = values[low], values[high], values[stride]
        if np.ndim(first) or np.ndim(last) or np.ndim(by):
            apart(values, first, last, by)
            return
        for value in range(int(first), int(last), int(by)):
            values[counter] = np.int64(value)
            for each in steps:
                each(values)

    def apart(values: list[Any], value: Any, last: Any, by: Any) -> None:
        while True:
            on = threads.both(np.broadcast_to(value < last, threads.n))
            if on is None or not on.any():
                return
            values[counter] = value
            if np.count_nonzero(on) == threads.count_on():
                for each in steps:
                    each(values)
            else:
                with threads.only(on, op):
                    for each in steps:
                        each(values)
            value = value + by

    return step


def _if(program: ThreadProgram, op: scf.IfOp) -> Step:
    condition, threads = program.slot(op.cond), program.threads
    then, otherwise = ([step for block in region.blocks for step in program.block(block)] for region in op.regions)

    def step(values: list[Any]) -> None:
        if threads.unknown:
            threads.require_known(condition, op, "a branch")
        holds = values[condition]
        if np.ndim(holds) == 0:
            for each in then if holds else otherwise:
                each(values)
            return
        run(values, then, holds)
        if otherwise:
            run(values, otherwise, ~holds)

    def run(values: list[Any], steps: Sequence[Step], holds: Array) -> None:
        on = threads.both(holds)
        assert on is not None
        count = np.count_nonzero(on)
        if count == threads.count_on():
            for each in steps:
                each(values)
        elif count:
            with threads.only(on, op):
                for each in steps:
                    each(values)

    return step


HANDLERS: Mapping[type[Operation], Handler] = {
    arith.ConstantOp: _constant,
    kernel.AllocOp: _alloc,
    kernel.LoadOp: _load,
    kernel.StoreOp: _store,
    kernel.GatherOp: _load,
    kernel.ScatterOp: _store,
    kernel.AsyncCopyOp: _async_copy,
    kernel.CommitOp: _commit,
    kernel.WaitOp: _wait,
    kernel.BarrierOp: _barrier,
    kernel.ShuffleOp: _shuffle,
    kernel.FragmentLoadOp: _fragment_load,
    kernel.MatrixProductOp: _matrix_product,
    kernel.WarpGroupProductOp: _group_product,
    kernel.WarpGroupFenceOp: _group_fence,
    kernel.WarpGroupCommitOp: _group_commit,
    kernel.WarpGroupWaitOp: _group_wait,
    kernel.ProxyFenceOp: _proxy_fence,
    kernel.BulkCopyOp: _bulk_copy,
    kernel.BarrierInitOp: _barrier_init,
    kernel.BarrierExpectOp: _barrier_expect,
    kernel.BarrierAwaitOp: _barrier_await,
    kernel.ThreadOp: _thread,
    kernel.LanesOp: _lanes,
    kernel.MaskOp: _mask,
    kernel.PrefetchOp: nothing,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: nothing,
    vector.BroadcastOp: _broadcast,
}
"""The operations of a launch that are no plain functions of their operands."""
