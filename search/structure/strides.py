"""Strides of the accesses of a block along each loop: which loops run through memory together, which make lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType

from ...dialects.element import element_bytes
from ...dialects.index import IndexExpr, Mod, axis, flatten
from ...dialects.loop import BlockOp, ForOp, buffer_shape
from ...dialects.strides import row_major
from ...dialects.target import Target
from ...dialects.te import IndexOp, PredicateOp
from ...passes.analysis.lane_distances import lane_distances
from ...passes.analysis.nest import ranges_of

WIDEST_STRIDE = 4
"""Elements between neighbouring lanes that whole vectors and shuffles still load; beyond, lanes are gathered. With 2
and 8 none of 58 default schedules changes (Zen 3); it is what `backends/llvm/memory.py` shuffles."""


@dataclass(frozen=True)
class Access:
    """The flat position that a load or a write of a block is at, over its loops."""

    offset: IndexExpr
    is_write: bool

    def step(self, loop: str) -> int | None:
        """Elements from one iteration of `loop` to the next; None where that is not always the same."""
        return self.offset.coefficient(loop) if self.offset.is_linear_in(loop) else None


def accesses(block: BlockOp) -> list[Access]:
    """Return the accesses of a block: writes, then loads."""
    bound = block.bound
    written = zip(block.outputs, block.write_indices, strict=True)
    sites = [(buffer_shape(buffer), tuple(at), True) for buffer, at in written]
    sites += [(buffer_shape(load.buffer), load.indices.data, False) for load in block.loads]
    flat = [(flatten([e.substitute(bound) for e in at], row_major(shape)), is_write) for shape, at, is_write in sites]
    return [Access(_without_remainders(block, offset), is_write) for offset, is_write in flat]


def _without_remainders(block: BlockOp, offset: IndexExpr) -> IndexExpr:
    """A position without remainders of loops that do not reach the divisor, as `j mod 9` of a loop of 9."""
    if not any(isinstance(atom, Mod) for atom, _ in offset.terms):
        return offset
    ranges = ranges_of(block.enclosing_loops)
    return offset.simplify(ranges) if offset.axes() <= ranges.keys() else offset


def in_rows(block: BlockOp, loop: str) -> bool:
    """True where all that the block loads and writes is contiguous along `loop`, or stays where it is."""
    return all(access.step(loop) in (0, 1) for access in accesses(block))


def nearly_in_rows(block: BlockOp, loop: str) -> bool:
    """True where vectors along `loop` are written whole, and loaded whole or with every few elements picked."""
    allowed = {True: (1,), False: range(-WIDEST_STRIDE, WIDEST_STRIDE + 1)}
    return all(access.step(loop) in allowed[access.is_write] for access in accesses(block))


def lanes_apart(access: Access, loop: str, lanes: int) -> tuple[int, ...] | None:
    """Distances of lanes along `loop` from the first, vectors beginning at multiples; None where they change."""
    return lane_distances(access.offset, loop, axis(loop) * lanes, lanes)


def run_together(block: BlockOp, loops: Sequence[ForOp]) -> int:
    """Count the last `loops` that may be one loop along which every access moves evenly, or not at all."""
    found = accesses(block)
    tested = _tested(block)
    count = 1 if loops else 0
    inner = next((i for i in range(len(loops) - 1, -1, -1) if loops[i].size > 1), None)
    if inner is None or loops[inner].loop_name in tested:
        return count
    count = len(loops) - inner
    for position in range(inner - 1, -1, -1):
        outer, below = loops[position], loops[inner]
        if outer.size > 1:
            if outer.loop_name in tested or not all(_even(access, outer, below) for access in found):
                return count
            inner = position
        count = len(loops) - position
    return count


def _even(access: Access, outer: ForOp, inner: ForOp) -> bool:
    far, near = access.step(outer.loop_name), access.step(inner.loop_name)
    return far is not None and near is not None and far == near * inner.size


def _tested(block: BlockOp) -> set[str]:
    """The loops that decide what is computed or whether: predicates, padding, positions as values."""
    bound = block.bound
    exprs = [*block.conditions]
    for op in block.body.block.ops:
        if isinstance(op, IndexOp):
            exprs.append(op.value.substitute(bound))
        elif isinstance(op, PredicateOp):
            exprs += [e.substitute(bound) for e in op.where.data]
    exprs += [e.substitute(bound) for load in block.loads for e in load.conditions]
    return {name for e in exprs for name in e.axes()}


def output_bytes(block: BlockOp) -> int:
    """Bytes of an element of the block's output."""
    output = block.outputs[0].type
    assert isinstance(output, MemRefType)
    return element_bytes(output.element_type)


def lanes_of_block(block: BlockOp, target: Target) -> int:
    """Elements of the block's output that fill a vector register."""
    return max(1, target.vector_bytes // output_bytes(block))


def positions(block: BlockOp) -> list[IndexExpr]:
    """Return the flat positions that a block writes at, then those that it loads from, over its iterators.

    A load through a reshape, at the quotients and remainders of a position, is at that position.
    """
    written = [(buffer, tuple(at)) for buffer, at in zip(block.outputs, block.write_indices, strict=True)]
    sites = [*written, *((load.buffer, load.indices.data) for load in block.loads)]
    return [position_in(block, buffer_shape(buffer), at) for buffer, at in sites]


def position_in(block: BlockOp, shape: Sequence[int], indices: Sequence[IndexExpr]) -> IndexExpr:
    """Return the flat position of indices over a block's iterators in a buffer of this shape."""
    ranges = {a.name: (0, a.extent - 1) for a in block.axes}
    return flatten(indices, row_major(shape)).simplify(ranges)


def moves_in_rows(block: BlockOp, last: str) -> bool:
    """True where all that the block reads and writes is contiguous along `last`, an axis, or does not move with it."""
    return all(at.is_linear_in(last) and at.coefficient(last) in (0, 1) for at in positions(block))
