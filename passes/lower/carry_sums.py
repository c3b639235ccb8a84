"""Carry sums weighted by a softmax: products add to the running sum, whose maximum exponentials are relative to."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import e as EULER
from math import inf, log2

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.index import IndexExpr, axis
from ...dialects.loop import SERIAL, AllocOp, BlockOp, ForOp, LoadOp, blocks_in, scope_of
from ...dialects.target import target_of
from ...dialects.te import YieldOp
from ..analysis.access import is_argument, readers, writers
from ..analysis.nest import block_names, buffer_name, buffer_names, fresh_buffer_name, fresh_name, functions_on_loops
from ..analysis.running_softmax import approximate, guarded, is_approximate, joins_parts, number
from ._block_plan import reduce_loops
from ._shared_carries import carried_once
from ._starts import STARTS
from ._steps import note_step, require_after
from .end_loops import EndLoops

_LOG2_E = log2(EULER)


@dataclass(frozen=True)
class CarrySums(ModulePass):
    """`for k { m[k] = max of block k; p[k] = exp(x[k] - m[k]); s[k] = sum p[k]; c[k] = sum p[k] v[k];
    (run, sum, max) joined with (c[k], s[k], m[k]) }` ->

    `for k { M = max(max, m[k]); a[k] = exp(max - M); max = M; p[k] = exp(x[k] - M); run *= a[k]; run += sum p[k] v[k];
    s[k] = sum p[k]; sum = sum * a[k] + s[k] }`, on a GPU, where that is all in registers of a thread.

    The running sums are scaled once, and products add to them: as exponentials are relative to the maximum of all
    blocks so far, what they weigh needs no scale. Approximate ones become powers of 2, of a multiply-add each, which
    has the positive scale of terms that nothing else is computed from.

    Requires: loops that end as they will (`lw-end-loops`), by conditions on the join.
    """

    name = "lw-carry-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).is_gpu
        for func in functions_on_loops(op):
            require_after(func, self.name, EndLoops.name)
            carry_sums(func, gpu)


def carry_sums(func: FuncOp, gpu: bool) -> None:
    """Let products add to running sums in place, where a loop joins what they give; a CPU's stay as they are."""
    if gpu:
        for block in list(blocks_in(func)):
            found = _find(block)
            if found is not None:
                _Carried(func, found).rewrite()
    note_step(func, CarrySums.name)


@dataclass(frozen=True)
class _Join:
    """A reduction over `loop` that joins what `product`, `total` and `largest` give block by block of terms.

    Its nest and those of the product and of exponentials, which are relative to the largest term, are in the loop.
    """

    block: BlockOp
    loop: ForOp
    nest: Operation
    product: BlockOp
    start: BlockOp
    product_nest: Operation
    exponential: BlockOp
    exponential_nest: Operation
    columns: tuple[str, ...]

    @property
    def part(self) -> LoadOp:
        return self.block.loads[0]

    @property
    def total(self) -> LoadOp:
        return self.block.loads[1]

    @property
    def largest(self) -> LoadOp:
        return self.block.loads[2]


def _find(block: BlockOp) -> _Join | None:
    """Return the join that a block is, with the blocks that it joins what they give; None where it is another one."""
    if block.has_init or block.conditions or not joins_parts(block):
        return None
    loops, reduced = block.enclosing_loops, reduce_loops(block)
    loop = next((x for x in loops if x.loop_name in reduced), None)
    columns = carried_once(block)
    if loop is None or loop.loop_kind != SERIAL or len(reduced) > 1 or columns is None:
        return None
    part, total, largest = block.loads
    buffers = [part.buffer, total.buffer, largest.buffer, *block.outputs]
    if any(is_argument(buffer) or scope_of(buffer) != "local" for buffer in buffers):
        return None
    parts, relative = _sums(part.buffer), [b for b in readers(largest.buffer) if b is not block]
    plain = all(e.as_axis() is not None for e in block.write_indices[0])
    told = {e.as_axis() for e in part.indices.data}
    others = {n for e in block.write_indices[0] for n in e.axes()} - told
    around = {x.loop_name for x in loops[: loops.index(loop)]}
    plain = plain and all(block.bound[name].axes() <= around for name in others)
    if parts is None or len(relative) != 1 or not plain or readers(part.buffer) != [block]:
        return None
    relative_to, (product, start) = relative[0], parts
    nests = [_nest_in(loop, each) for each in (relative_to, product, block, *writers(largest.buffer))]
    exponentials, products, nest, *before = inside = [each for each in nests if each is not None]
    if len(inside) < len(nests) or not _is_relative(relative_to, largest.buffer):
        return None
    ordered = [*((each, exponentials) for each in before), (exponentials, products), (products, nest)]
    if not all(a.is_before_in_block(b) for a, b in ordered):
        return None
    return _Join(block, loop, nest, product, start, products, relative_to, exponentials, columns)


def _sums(buffer: SSAValue) -> tuple[BlockOp, BlockOp] | None:
    """The reduction that alone writes a buffer, and the block that starts it; None where there is no such."""
    found = writers(buffer)
    start = next((block for block in found if STARTS in block.notes), None)
    added = [block for block in found if block is not start]
    if start is None or len(added) != 1 or start.notes[STARTS] != StringAttr(added[0].block_name):
        return None
    return (added[0], start) if added[0].combiner.data == "add" and not added[0].conditions else None


def _nest_in(loop: ForOp, op: Operation) -> Operation | None:
    """The operation directly in a loop that another one is, or is in; None where it is not in the loop."""
    around: Operation | None = op
    while around is not None and around.parent_op() is not loop:
        around = around.parent_op()
    return around


def _is_relative(block: BlockOp, largest: SSAValue) -> bool:
    """True for a block whose value is one exponential, of something less the guarded maximum of its row."""
    loads = [load for load in block.loads if load.buffer is largest]
    return len(loads) == 1 and _distance(loads[0]) is not None


def _distance(load: LoadOp) -> tuple[arith.SubfOp, math.ExpOp] | None:
    """The difference between something and a guarded maximum, and its exponential; None for another use of it."""
    uses = list(dict.fromkeys(use.operation for use in load.result.uses))
    guard = next((op for op in uses if isinstance(op, arith.SelectOp)), None)
    if guard is None or not all(isinstance(op, arith.SelectOp | arith.CmpfOp) for op in uses):
        return None
    taken = [use.operation for use in guard.results[0].uses]
    if len(taken) != 1 or not isinstance(taken[0], arith.SubfOp) or taken[0].rhs is not guard.results[0]:
        return None
    raised = [use.operation for use in taken[0].result.uses]
    if len(raised) != 1 or not isinstance(raised[0], math.ExpOp):
        return None
    return taken[0], raised[0]


@dataclass(frozen=True)
class _Scale:
    """A positive number that terms are multiplied by; `other` is a number that may be chosen instead of the product."""

    value: float
    product: arith.MulfOp
    unscaled: SSAValue
    constant: arith.ConstantOp
    other: arith.ConstantOp | None


def _scale_of(found: _Join, distance: arith.SubfOp) -> _Scale | None:
    """The scale of terms that nothing but their maximum and their exponentials are computed from; None for another."""
    load = distance.lhs.owner
    if not isinstance(load, LoadOp) or is_argument(load.buffer) or len(writers(load.buffer)) != 1:
        return None
    (block,) = writers(load.buffer)
    others = [reader for reader in readers(load.buffer) if reader is not found.exponential]
    if block.is_reduction or len(block.outputs) != 1 or not all(_is_maximum(each, found) for each in others):
        return None
    last = block.yielded[0].owner
    other: arith.ConstantOp | None = None
    if isinstance(last, arith.SelectOp) and isinstance(last.rhs.owner, arith.ConstantOp):
        other, last = last.rhs.owner, last.lhs.owner
        if other.result.uses.get_length() != 1:
            return None
    if not isinstance(last, arith.MulfOp) or not isinstance(last.rhs.owner, arith.ConstantOp):
        return None
    value = last.rhs.owner.value
    if not isinstance(value, FloatAttr) or not 0 < value.value.data < inf or last.result.uses.get_length() != 1:
        return None
    return _Scale(value.value.data, last, last.lhs, last.rhs.owner, other)


def _is_maximum(block: BlockOp, found: _Join) -> bool:
    """True for a block that takes the maximum of what it loads, of which the largest term of a block is computed."""
    used = {reader for buffer in block.outputs for reader in readers(buffer)}
    largest = set(writers(found.largest.buffer))
    plain = len(block.loads) == 1 and block.yielded == (block.loads[0].result,)
    return block.combiner.data == "max" and plain and (block in largest or (used <= largest and len(used) == 1))


class _Carried:
    """The rewrite of one loop: new blocks, and what the old ones write and are relative to."""

    def __init__(self, func: FuncOp, found: _Join) -> None:
        self.found = found
        self.names, self.buffers = block_names(func), buffer_names(func)
        kind = found.largest.buffer.type
        assert isinstance(kind, MemRefType) and isinstance(kind.element_type, AnyFloat)
        self.element = kind.element_type
        guard = _distance(next(x for x in found.exponential.loads if x.buffer is found.largest.buffer))
        assert guard is not None
        self.distance, self.raised = guard
        self.nearly = is_approximate(self.raised)
        self.scale = _scale_of(found, self.distance) if self.nearly else None

    def rewrite(self) -> None:
        found = self.found
        if self.scale is not None:
            self._leave_out_scale(self.scale)
        factor, reference = self._like_largest("factor"), self._like_largest("reference")
        rows = self._nest(self._rescaled(factor, reference), found.columns)
        _insert_before(rows, found.exponential_nest)
        self._raise_relative(reference)
        _insert_before(self._nest(self._scaled(factor), ()), found.product_nest)
        self._add_to_running()
        _insert_before(self._nest(self._summed(factor), found.columns), found.nest)
        name = found.block.block_name
        self._drop(found.nest)
        scaled = next(b for b in blocks_in(found.loop) if b.block_name == self.scaled_name)
        scaled.label = StringAttr(name)
        part = found.part.buffer.owner
        assert isinstance(part, AllocOp)
        part.detach()  # type: ignore[no-untyped-call]
        part.erase()

    # -- buffers and names --------------------------------------------------------------------------------------------

    def _like_largest(self, ending: str) -> SSAValue:
        """A new buffer of one element for each row, as the maximum has one."""
        old = self.found.largest.buffer.owner
        assert isinstance(old, AllocOp)
        alloc = old.clone()
        name = fresh_buffer_name(f"{buffer_name(old.buffer)}_{ending}", self.buffers)
        self.buffers.add(name)
        alloc.label, alloc.buffer.name_hint = StringAttr(name), name
        block = old.parent_block()
        assert block is not None
        block.insert_op_after(alloc, old)
        return alloc.buffer

    def _name(self, ending: str) -> str:
        name = fresh_name(f"{self.found.block.block_name}_{ending}", self.names)
        self.names.add(name)
        return name

    # -- new blocks ---------------------------------------------------------------------------------------------------

    def _nest(self, block: BlockOp, dropped: Sequence[str]) -> Operation:
        """A block in loops like those of the join, but for those over columns, which it does not need."""
        loops = self.found.block.enclosing_loops
        within: Operation = block
        for loop in reversed(loops[loops.index(self.found.loop) + 1 :]):
            if loop.loop_name not in dropped:
                within = ForOp(loop.loop_name, loop.size, Region(Block([within])), loop.loop_kind)
        return within

    def _block(
        self, label: str, ops: Sequence[Operation], writes: Sequence[tuple[SSAValue, Sequence[IndexExpr], SSAValue]]
    ) -> BlockOp:
        """A block of the iterators of the join that it needs."""
        old = self.found.block
        indices = [e for _, each, _ in writes for e in each]
        indices += [e for op in ops if isinstance(op, LoadOp) for e in op.indices.data]
        used = {name for e in indices for name in e.axes()}
        kept = [(a, e) for a, e in zip(old.axes, old.bindings.data, strict=True) if a.name in used]
        body = Region(Block([*ops, YieldOp.create(operands=[value for *_, value in writes])]))
        return BlockOp(
            label,
            [Axis(a.name, a.extent) for a, _ in kept],
            [e for _, e in kept],
            [buffer for buffer, *_ in writes],
            [at for _, at, _ in writes],
            body,
        )

    def _rescaled(self, factor: SSAValue, reference: SSAValue) -> BlockOp:
        """The block that takes a new maximum, what exponentials are relative to, and the factor of older sums."""
        found, row = self.found, self.found.largest.indices.data
        running, at = found.block.outputs[2], found.block.write_indices[2]
        old, here = LoadOp(running, at), LoadOp(found.largest.buffer, row)
        largest: list[Operation] = [here]
        if self.scale is not None:
            largest += [times := number(self.element, self.scale.value), arith.MulfOp(here.result, times.result)]
        both = arith.MaximumfOp(old.result, largest[-1].results[0])
        guard = guarded(both.result, self.element)
        relative = guard[-1].results[0]
        less = arith.SubfOp(old.result, relative)
        shrunk = math.ExpOp(less.result)
        ops: list[Operation] = [old, *largest, both, *guard, less, shrunk]
        if self.nearly:
            approximate(shrunk)
            ops += [scale := number(self.element, -_LOG2_E), power := arith.MulfOp(relative, scale.result)]
            relative = power.result
        written = [(factor, row, shrunk.result), (reference, row, relative), (running, at, both.result)]
        return self._block(self._name("factor"), ops, written)

    def _scaled(self, factor: SSAValue) -> BlockOp:
        """The block that scales the running weighted sum."""
        found = self.found
        running, at = found.block.outputs[0], found.block.write_indices[0]
        old, scale = LoadOp(running, at), LoadOp(factor, found.largest.indices.data)
        new = arith.MulfOp(old.result, scale.result)
        self.scaled_name = self._name("scaled")
        return self._block(self.scaled_name, [old, scale, new], [(running, at, new.result)])

    def _summed(self, factor: SSAValue) -> BlockOp:
        """The block that scales the running sum, and adds that of the block of terms."""
        found = self.found
        running, at = found.block.outputs[1], found.block.write_indices[1]
        loads = [
            LoadOp(running, at),
            LoadOp(factor, found.largest.indices.data),
            LoadOp(found.total.buffer, found.total.indices.data),
        ]
        old = arith.MulfOp(loads[0].result, loads[1].result)
        new = arith.AddfOp(old.result, loads[2].result)
        return self._block(self._name("sum"), [*loads, old, new], [(running, at, new.result)])

    # -- old blocks ---------------------------------------------------------------------------------------------------

    def _raise_relative(self, reference: SSAValue) -> None:
        """Take exponentials relative to the running maximum; approximate ones as powers of 2 of a multiply-add."""
        load = next(x for x in self.found.exponential.loads if x.buffer is self.found.largest.buffer)
        relative = LoadOp(reference, load.indices.data)
        _insert_before(relative, load)
        new: Operation = arith.SubfOp(self.distance.lhs, relative.result)
        if self.nearly:
            scale = number(self.element, _LOG2_E * (self.scale.value if self.scale is not None else 1.0))
            _insert_before(scale, self.distance)
            new = math.FmaOp(self.distance.lhs, scale.result, relative.result)
        _insert_before(new, self.distance)
        power = math.Exp2Op if self.nearly else math.ExpOp
        raised = power(new.results[0], self.raised.fastmath)
        _insert_before(raised, self.raised)
        self.raised.result.replace_all_uses_with(raised.result)
        body = self.found.exponential.body.block
        for op in reversed(list(body.ops)):
            if op.results and not any(result.uses.get_length() for result in op.results):
                op.detach()  # type: ignore[no-untyped-call]
                op.erase()

    def _leave_out_scale(self, scale: _Scale) -> None:
        """Leave terms as they were before they were scaled; where another one is chosen, have it be scaled later."""
        product, other = scale.product, scale.other
        if other is not None:
            value = other.value
            assert isinstance(value, FloatAttr)
            new = number(self.element, value.value.data / scale.value)
            _insert_before(new, other)
            other.result.replace_all_uses_with(new.result)
        product.result.replace_all_uses_with(scale.unscaled)
        for op in (product, scale.constant, *([other] if other is not None else [])):
            if not any(result.uses.get_length() for result in op.results):
                op.detach()  # type: ignore[no-untyped-call]
                op.erase()

    def _add_to_running(self) -> None:
        """Let the product add to the running sum, which is not started again."""
        found, block = self.found, self.found.product
        parts = zip(found.part.indices.data, block.write_indices[0], strict=True)
        given = {name: write for e, write in parts if (name := e.as_axis()) is not None}
        given |= self._of_loops_around({n for e in found.block.write_indices[0] for n in e.axes()} - given.keys())
        at = IndicesAttr(tuple(e.substitute(given) for e in found.block.write_indices[0]))
        kept = {name for e in at.data for name in e.axes()}
        over = {name for e in block.write_indices[0] for name in e.axes()} - kept
        block.iterators = AxesAttr(tuple(Axis(a.name, a.extent, a.reduce or a.name in over) for a in block.axes))
        block.writes = type(block.writes)([at])
        block.operands[0] = found.block.outputs[0]
        nest: Operation = found.start
        while isinstance(around := nest.parent_op(), ForOp) and len(list(around.body.block.ops)) == 1:
            nest = around
        self._drop(nest)

    def _of_loops_around(self, names: AbstractSet[str]) -> dict[str, IndexExpr]:
        """Give the product iterators of the join that are of loops around both, which its parts of sums do not tell."""
        block, join = self.found.product, self.found.block
        extents, given = {a.name: a.extent for a in join.axes}, dict[str, IndexExpr]()
        for name in sorted(names):
            fresh = fresh_name(name, {a.name for a in block.axes})
            given[name] = axis(fresh)
            block.iterators = AxesAttr((*block.axes, Axis(fresh, extents[name])))
            block.bindings = IndicesAttr((*block.bindings.data, join.bound[name]))
        return given

    def _drop(self, nest: Operation) -> None:
        nest.detach()  # type: ignore[no-untyped-call]
        nest.erase()


def _insert_before(op: Operation, place: Operation) -> None:
    block = place.parent_block()
    assert block is not None
    block.insert_op_before(op, place)
