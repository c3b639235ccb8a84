"""Operands of a pipelined product in slices, read from shared memory into registers a term ahead, across fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import (
    SERIAL,
    AllocOp,
    AtOp,
    BlockOp,
    ForOp,
    LoadOp,
    blocks_in,
    buffer_type,
    loops_in,
    statements,
)
from ...dialects.te import YieldOp
from ..analysis.access import loops_around
from ..analysis.matrix_product import TENSORIZE
from ..analysis.nest import block_names, buffer_names, fresh_buffer_name, fresh_name
from ..analysis.placement import whole
from ._run_ahead import BEYOND
from ._spread_copies import are_written_out, is_of_a_sum

SETS = 2
"""Sets of registers: one is read while the other one is filled."""


@dataclass(frozen=True)
class _Read:
    """A load of a block, its level of steps, and the loops whose iterations have an element of it each."""

    block: BlockOp
    load: LoadOp
    level: ForOp
    loops: tuple[ForOp, ...]


def levels_of(loop: ForOp, copies: Sequence[ForOp | BlockOp]) -> tuple[ForOp, ...]:
    """The steps that are all the work of a pipelined loop, and the terms of each; none where there are no such two.

    Both are written out, and even in number, as two sets of registers take turns. On an H200 49 products in slices take
    0.977 of the time so (0.89 to 1.07), while eight in tiles without terms in a step took 1.008 (0.99 to 1.03), and two
    of four blocks on a multiprocessor 1.11 and 1.16: NVRTC 13.0 computes each of their addresses anew.
    """
    work = [nest for nest in statements(loop) if nest not in copies]
    while len(work) == 1 and isinstance(work[0], ForOp) and work[0].loop_kind == SERIAL and work[0].size == 1:
        work = statements(work[0])
    steps = work[0] if len(work) == 1 else None
    if not isinstance(steps, ForOp) or steps.loop_kind != SERIAL or steps.ends is not None:
        return ()
    inside = list(loops_in(steps))
    sums = [each for each in inside if is_of_a_sum(each)]
    if len(sums) != 1 or any(TENSORIZE in each.notes for each in inside) or not are_written_out(steps):
        return ()
    (terms,) = sums
    if terms.parent_op() is not steps or terms.loop_kind != "unrolled":
        return ()
    return (steps, terms) if steps.size % SETS == terms.size % SETS == 0 else ()


class OperandsAhead:
    """Operands that the steps of a pipelined loop read of buffers that it fills, in two sets of registers.

    Before the work of a step's last term what all terms of the next step share is read, and before that of each term
    what the next one reads alone. In the last term of an iteration that is of the next iteration, behind its barrier.
    Fills stay as they are for all who read them, and are there:

    - what a thread reads of a fill stands before the next fill's barrier, as the last term's operands are in registers.
      Copies into its place begin in the next iteration, behind that barrier;
    - that barrier follows the wait for the next fill's copies, which are committed by then;
    - the last iteration waits and reads in vain: of a stage that holds an older fill, as there are more iterations than
      stages.
    """

    def __init__(self, func: FuncOp, loop: ForOp, levels: Sequence[ForOp], filled: Sequence[SSAValue]) -> None:
        self.func, self.loop, self.levels = func, loop, levels
        self.reads = [
            _read(block, load, loop, levels)
            for block in blocks_in(levels[0])
            for load in block.loads
            if load.buffer in filled
        ]
        self.names = block_names(func) | buffer_names(func)
        self.registers = [self._registers(read) for read in self.reads]

    @property
    def last(self) -> list[IndexExpr]:
        """The conditions of an iteration's last step."""
        return [axis(level.loop_name) - (level.size - 1) for level in self.levels]

    def first(self) -> list[Operation]:
        """Nests that read the operands of an iteration's first step."""
        return self._nests(self.levels, {level.loop_name: constant(0) for level in self.levels})

    def next(self) -> list[Operation]:
        """Nests that read the operands of the step behind each one but the last."""
        found: list[Operation] = []
        for number, level in enumerate(self.levels):
            step, inner = axis(level.loop_name), self.levels[number + 1 :]
            nests = self._nests(self.levels[number:], {each.loop_name: constant(0) for each in inner})
            where = [level.size - 2 - step, *(axis(each.loop_name) - (each.size - 1) for each in inner)]
            found.append(AtOp(level.loop_name, step + 1, Region(Block(nests)), where))
        return found

    def take(self) -> None:
        """Have the steps take their operands from registers."""
        for read, alloc in zip(self.reads, self.registers, strict=True):
            at = self._iterators(read.block, read, axis(read.level.loop_name))
            new = LoadOp(alloc.buffer, at)
            body = read.block.body.block
            body.insert_op_before(new, read.load)
            read.load.result.replace_all_uses_with(new.result)
            body.erase_op(read.load)

    def _registers(self, read: _Read) -> AllocOp:
        shape = (SETS, *(loop.size for loop in read.loops))
        type_ = read.load.buffer.type
        assert isinstance(type_, MemRefType)
        owner = read.load.buffer.owner
        assert isinstance(owner, AllocOp)
        name = fresh_buffer_name(f"{owner.label.data}_ahead", self.names)
        self.names.add(name)
        return AllocOp(name, buffer_type(type_.element_type, shape, "local"), layout=whole(shape))

    def _iterators(self, block: BlockOp, read: _Read, step: IndexExpr) -> list[IndexExpr]:
        """Give a block an iterator for the set of a step, and for each of the loops."""
        found: list[IndexExpr] = []
        for name, extent, value in [
            (f"{read.level.loop_name}_set", SETS, step % SETS),
            *((loop.loop_name, loop.size, axis(loop.loop_name)) for loop in read.loops),
        ]:
            fresh = fresh_name(name, {a.name for a in block.axes})
            reduce = block.is_reduction and not found
            block.iterators = AxesAttr((*block.axes, Axis(fresh, extent, reduce)))
            block.rebind((*block.bindings.data, value), block.conditions)
            found.append(axis(fresh))
        return found

    def _nests(self, levels: Sequence[ForOp], at: Mapping[str, IndexExpr]) -> list[Operation]:
        """Nests for the reads of some levels, where these are at other steps than around."""
        pairs = zip(self.reads, self.registers, strict=True)
        return [self._nest(read, alloc.buffer, at) for read, alloc in pairs if read.level in levels]

    def _nest(self, read: _Read, registers: SSAValue, at: Mapping[str, IndexExpr]) -> Operation:
        """Read what one load reads in a step, into its set."""
        block, loops = read.block, read.block.enclosing_loops
        inside = loops[loops.index(self.loop) + 1 :]
        at = {**at, **{x.loop_name: constant(0) for x in inside if x.size == 1}}
        known = {x.loop_name for x in (self.loop, *loops_around(self.loop), *read.loops, *self.levels)}
        used = {name for e in read.load.indices.data for name in e.axes()}
        kept = [(a, e.substitute(at)) for a, e in zip(block.axes, block.bindings.data, strict=True) if a.name in used]
        where = [c.substitute(at) for c in block.conditions if c.axes() <= known]
        load = LoadOp(read.load.buffer, read.load.indices.data)
        new = BlockOp(
            self._name(block),
            [Axis(a.name, a.extent) for a, _ in kept],
            [e for _, e in kept],
            [registers],
            [()],
            Region(Block([load, YieldOp.create(operands=[load.result])])),
            where=where,
            annotations={BEYOND: IndicesAttr(tuple(where))} if where else None,
        )
        step = at.get(read.level.loop_name, axis(read.level.loop_name))
        new.writes = type(new.writes)([IndicesAttr(tuple(self._iterators(new, read, step)))])
        nest: Operation = new
        for loop in reversed(read.loops):
            if loop.loop_kind != "vthread":
                nest = ForOp(loop.loop_name, loop.size, Region(Block([nest])), loop.loop_kind)
        return nest

    def _name(self, block: BlockOp) -> str:
        name = fresh_name(f"{block.block_name}$ahead", self.names)
        self.names.add(name)
        return name


def _read(block: BlockOp, load: LoadOp, loop: ForOp, levels: Sequence[ForOp]) -> _Read:
    """A load in steps, with the virtual threads around and the loops of a step on which it depends what it reads."""
    bound, loops = block.bound, block.enclosing_loops
    level = [each for each in levels if each in loops][-1]
    named = {name for e in load.indices.data for name in e.substitute(bound).axes()}
    found = [x for x in loops[: loops.index(loop)] if x.loop_kind == "vthread"] + list(loops[loops.index(level) + 1 :])
    moving = [x for x in found if x.loop_name in named and x.size > 1]
    return _Read(block, load, level, tuple(sorted(moving, key=lambda x: x.loop_kind == "vectorized")))
