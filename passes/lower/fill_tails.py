"""Fill tails with zeros: what is beyond the terms of a sum of products is zero in shared memory, and is added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, scope_of
from ...dialects.loop_notes import PIPELINE_BULK, PIPELINE_REGISTERS
from ...dialects.target import target_of
from ..analysis.access import consumers, shared_loops, shares_a_block, writers
from ..analysis.copies import is_copy
from ..analysis.matrix_product import TENSORIZE
from ..analysis.nest import fresh_name, functions_on_loops, loops_reduced, ranges_of
from ..analysis.summed_product import summed_product
from ._steps import note_step, require_after
from .carry_sums import CarrySums

_SLOWER = {PIPELINE_BULK, PIPELINE_REGISTERS}
"""Copies that stay: boxes, which the copy engine fills with zeros by itself, and those through registers,
where each zero is an instruction: dense 128x3384 to 640 and 728x3904 to 69 take 1.04 times as long so (an H200)."""


@dataclass(frozen=True)
class FillTails(ModulePass):
    """`for k in 4 { copy (a = k * 16 + t) where (59 - k * 16 - t >= 0) { load %x[a] } for s in 16 { sum where (59 - k *
    16 - s >= 0) } }` -> `... copy (a = k * 16 + t) { load %x[a] where (59 - a >= 0) } for s in 16 { sum }`

    A sum of products whose factors are copied to shared memory adds up zeros beyond its terms: each step that is
    written out would otherwise ask for the end of the terms, and wait for what it reads behind the branch. Both factors
    are zero there, as infinity times zero is not, and nothing else reads the copies.

    Requires: sums carried as they will be (`lw-carry-sums`). On a GPU; sums of matrix units, bulk copies and what goes
    through registers stay.
    """

    name = "lw-fill-tails"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, CarrySums.name)
            fill_tails(func, target_of(op).is_gpu)


def fill_tails(func: FuncOp, gpu: bool) -> None:
    """Fill with zeros what sums of products read beyond their terms, in place; on a GPU alone."""
    for block in list(blocks_in(func)) if gpu else ():
        if _is_sum_of_products(block):
            tails = [c for c in block.conditions if c.axes() & loops_reduced(block)]
            found = [[_read(block, load, c) for load in block.loads] for c in tails]
            reads = [read for each in found for read in each if read is not None]
            if tails and len(reads) == 2 * len(tails) and _are_for_the_sum(found, reads):
                for read in reads:
                    read.fill()
                block.rebind(block.bindings.data, [c for c in block.conditions if c not in tails])
    note_step(func, FillTails.name)


def _are_for_the_sum(found: Sequence[Sequence[_Read | None]], reads: Sequence[_Read]) -> bool:
    """True where zeros may be in all copies: nothing else reads these, and two factors of one copy end alike."""
    for first, second in found:
        assert first is not None and second is not None
        if first.copy is second.copy and (first.iterator, first.end) != (second.iterator, second.end):
            return False
    return all(_is_only_for(read.taker, read.copy) and read.is_whole(reads) for read in reads)


def _is_only_for(taker: BlockOp, copy: BlockOp) -> bool:
    """True where a block alone reads a copy, by way of registers or not."""
    found = [block for block in consumers(copy) if block is not taker]
    held = all(scope_of(out) == "local" for block in found for out in block.outputs)
    return held and all(consumers(block) and _is_only_for(taker, block) for block in found)


def _is_sum_of_products(block: BlockOp) -> bool:
    """True for a sum, in registers, of products of two elements that are read as they are."""
    product = summed_product(block)
    if not isinstance(product, arith.MulfOp) or len(block.loads) != 2 or scope_of(block.outputs[0]) != "local":
        return False
    if not block.conditions or any(TENSORIZE in loop.notes for loop in block.enclosing_loops):
        return False
    return {product.lhs, product.rhs} == {load.result for load in block.loads}


@dataclass(frozen=True)
class _Read:
    """A factor of a sum under a condition, by the copies that it comes through: `end - index >= 0` of a dimension."""

    taker: BlockOp
    copy: BlockOp
    held: tuple[tuple[BlockOp, IndexExpr], ...]
    """Copies to registers, and the condition of each."""
    iterator: str
    end: IndexExpr

    @property
    def ends(self) -> tuple[IndexExpr, IndexExpr]:
        """The last index of the sum, and that of the factor, which is further away where the sum is of a part."""
        extent = next(a.extent for a in self.copy.axes if a.name == self.iterator)
        return self.end, constant(extent - 1)

    def is_whole(self, reads: Sequence[_Read]) -> bool:
        """True where nothing else keeps the copy from writing what is read: only other edges, and ends of its loops."""
        bound = self.copy.bound
        moved = {end - bound[read.iterator] for read in reads if read.copy is self.copy for end in read.ends}
        moved |= {a.extent - 1 - bound[a.name] for a in self.copy.axes if a.name != self.iterator}
        own = set(bound[self.iterator].axes())
        around = {loop.loop_name for loop in shared_loops(self.taker, self.copy) if not shares_a_block(loop)}
        return not any(c.axes() & own and c.axes() & around for c in self.copy.conditions if c not in moved)

    def fill(self) -> None:
        """Copy zeros where the condition fails, and to registers what is there."""
        end, last = self.ends
        self._fill_behind(end, True)
        self._fill_behind(last, end.bounds(ranges_of(self.copy.enclosing_loops))[1] > last.const)
        for block, own in self.held:
            block.rebind(block.bindings.data, [c for c in block.conditions if c != own])

    def _fill_behind(self, end: IndexExpr, asks: bool) -> None:
        """Copy zeros behind an index, where the copy did nothing, or what is there; `asks` where that is to be told."""
        copy, bound = self.copy, self.copy.bound
        (load,) = copy.loads
        condition, known = end - bound[self.iterator], [c.substitute(bound) for c in load.conditions]
        if asks and condition not in known:
            at: dict[str, IndexExpr] = {}
            for loop in copy.enclosing_loops:
                if loop.loop_name in end.axes() and loop.loop_name not in at:
                    name = fresh_name(loop.loop_name, {a.name for a in copy.axes})
                    copy.iterators = AxesAttr((*copy.axes, Axis(name, loop.size)))
                    copy.bindings = IndicesAttr((*copy.bindings.data, axis(loop.loop_name)))
                    at[loop.loop_name] = axis(name)
            load.where = IndicesAttr((*load.conditions, end.substitute(at) - axis(self.iterator)))
        copy.rebind(copy.bindings.data, [c for c in copy.conditions if c != condition])


def _read(block: BlockOp, load: LoadOp, condition: IndexExpr) -> _Read | None:
    """A factor that is read from shared memory, by way of registers or not; None where no zeros can be there."""
    bound = block.bound
    indices = [e.substitute(bound) for e in load.indices.data]
    held: list[tuple[BlockOp, IndexExpr]] = []
    while scope_of(load.buffer) == "local" and (fragment := _copy_of(load)) is not None:
        (source,) = fragment.loads
        axes = [str(e.as_axis()) for e in fragment.write_indices[0]]
        at = dict(zip(axes, indices, strict=True))
        if not set().union(*(e.axes() for e in source.indices.data)) <= at.keys() | _fixed(fragment):
            return None
        own = dict(fragment.bound)
        ends = [condition + e - own[name] for name, e in at.items() if name in own]
        held += [(fragment, c) for c in ends if c in fragment.conditions]
        indices = [e.substitute({**own, **at}) for e in source.indices.data]
        load = source
    copy = _copy_of(load) if scope_of(load.buffer) == "shared" else None
    if copy is None or not _SLOWER.isdisjoint(copy.notes) or any(scope_of(x.buffer) != "global" for x in copy.loads):
        return None
    around = {loop.loop_name for loop in shared_loops(block, copy) if not shares_a_block(loop)}
    ranges = ranges_of(block.enclosing_loops)
    alloc = load.buffer.owner
    assert isinstance(alloc, AllocOp) and alloc.layout is not None
    kept = zip(copy.write_indices[0], indices, alloc.layout.lows, alloc.layout.extents, strict=True)
    for write, index, low, extent in kept:
        end, name = (condition + index).simplify(ranges), write.as_axis()
        if name is None or not end.axes() <= around or not index.axes() & condition.axes():
            continue
        least, most = (index - low).simplify(ranges).bounds(ranges)
        inside = ranges_of(copy.enclosing_loops)
        covered = (copy.bound[name] - low).simplify(inside).bounds(inside)
        if least >= 0 and most < extent and covered[0] <= 0 and covered[1] >= extent - 1:
            return _Read(block, copy, tuple(held), name, end)
    return None


def _copy_of(load: LoadOp) -> BlockOp | None:
    """The one block that writes what is read, where it is a copy of elements at its own iterators."""
    found = writers(load.buffer)
    if len(found) != 1 or not is_copy(found[0]):
        return None
    (copy,) = found
    plain = all(e.as_axis() is not None for e in copy.write_indices[0])
    return copy if plain and not copy.loads[0].positions else None


def _fixed(block: BlockOp) -> set[str]:
    """The iterators of a block that it does not write at, as the stage of a pipeline."""
    written = {str(e.as_axis()) for e in block.write_indices[0]}
    return {a.name for a in block.axes} - written
