"""Extend a block to a multiple of a factor, a sum of products with zeros, so that tiles divide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, MemRefType, ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.attributes import AxesAttr, Axis
from ...dialects.index import axis
from ...dialects.loop import AllocOp, BlockOp, ForOp, LoadOp, blocks_in, buffer_shape, buffer_type, scope_of
from ..analysis.access import writers
from ..analysis.argument_marks import packing_of
from ..analysis.layout import parse_layout
from ..analysis.matrix_product import before_rounding, load_of_factor
from ..analysis.nest import buffer_name, find_block, find_loop, function_of, functions, only_child
from ..analysis.summed_product import summed_product
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes, ceil_div, product
from ..primitive import Primitive
from ._inlining import TRAPPING
from ._staging import legal_steps, redirect_load, values_taken

TRIED = 16
"""The factor that is offered to searches for legal steps: the rows of most matrix instructions."""


@dataclass(frozen=True)
class Plan:
    """The block, its loop and iterator, the new extents of both, the loads to mask, and the dimension of each result,
    if any.
    """

    block: BlockOp
    loop: ForOp
    iterator: Axis
    trips: int
    extent: int
    loads: tuple[LoadOp, ...]
    dimensions: tuple[int, ...]


@dataclass(frozen=True)
class Pad(Primitive[Plan]):
    """`for i in 20 { block c (i in 20) { C[i] += A[i] * B } }` with `loop=i factor=16` ->

    `for i in 32 { block c (i in 32) { C[i] += A[i] where (19 - i >= 0) * B } }` with C of 32

    Terms beyond the end are zero, results beyond it are read by nobody. Loads that come to be beyond the end of what
    they read, or of what is written there, are zero, as padding is: of a packed argument, and of a buffer that this
    step has lengthened. Masks move into copies of the factors (`cache_read` with a layout), so that the block itself
    has no predicate, which a matrix instruction requires. A loop that several iterators were fused to ends in a part of
    the outermost one's last: of 16 images of 49 pixels, 784, which become 832, are 17 images.

    Requires: a block without a predicate; a loop that is an iterator of it, or that several were fused to, around
    nothing else; for a reduce loop, an iterator, a sum of products of two loads, which both move with it; for another
    one, results that are no arguments (`cache_write` before), written there at the iterator, and no division of
    integers, which zeros would stop. An extent that is a multiple stays.
    """

    name = "lw-pad"
    block: str
    loop: str
    factor: int

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        loop = find_loop(self, block, self.loop)
        if self.factor < 1:
            raise self.error(f"factor must be at least 1, got {self.factor}", at=loop)
        iterator, each = self._iterator(block, loop)
        trips = -(-loop.size // self.factor) * self.factor
        extent = -(-trips // each)
        loads = self._factors(block) if iterator.reduce else block.loads
        moving = tuple(x for x in loads if any(iterator.name in e.axes() for e in x.indices.data))
        if iterator.reduce:
            if len(moving) < len(loads):
                raise self.error(f"'{self.loop}' is padded with zeros, so both factors must move with it", at=block)
            beyond = tuple(load for load in moving if not is_zero_beyond(load, iterator, extent))
            if len(beyond) < len(moving) and isinstance(block.yielded[0].owner, arith.MuliOp):
                beyond = tuple(load for load in beyond if not _is_there(load, iterator, extent))
            return Plan(block, loop, iterator, trips, extent, beyond, ())
        self._require_harmless(block, moving)
        beyond = tuple(load for load in moving if _is_whole(load) or not _is_there(load, iterator, extent))
        dimensions = tuple(self._dimension(block, iterator, number) for number in range(len(block.outputs)))
        return Plan(block, loop, iterator, trips, extent, beyond, dimensions)

    def _iterator(self, block: BlockOp, loop: ForOp) -> tuple[Axis, int]:
        """The iterator that a loop moves, or the outermost that it was fused of, and iterations for each of its
        values.
        """
        found = _digits(block, loop)
        if found is None:
            raise self.error(f"loop '{self.loop}' must be an iterator of '{self.block}': pad first", at=loop)
        if block.conditions:
            raise self.error(f"'{self.block}' must have no predicate", at=block)
        inner: object = loop
        while isinstance(inner, ForOp):
            if inner.loop_kind != "serial" or inner.notes:
                raise self.error(f"loop '{inner.loop_name}' must be serial and carry no annotation", at=inner)
            inner = only_child(inner)
        if inner is not block:
            raise self.error(f"loop '{self.loop}' must hold '{self.block}' alone", at=loop)
        return found

    def _factors(self, block: BlockOp) -> tuple[LoadOp, ...]:
        if (term := summed_product(block)) is None:
            raise self.error(f"'{self.block}' must be a sum of products", at=block)
        loads = [load_of_factor(before_rounding(value)) for value in term.operands]
        if any(x is None for x in loads) or len(loads) != len(block.loads):
            raise self.error(f"'{self.block}' must add up products of two loads", at=block)
        return tuple(x for x in loads if x is not None)

    def _require_harmless(self, block: BlockOp, moving: Sequence[LoadOp]) -> None:
        """Refuse what stops at zeros, and places that are read."""
        if any(op.name in TRAPPING for op in block.body.block.ops):
            raise self.error(f"'{self.block}' divides integers, which may be by the zeros beyond the end", at=block)
        if any(load.positions for load in moving):
            raise self.error(f"'{self.block}' must read where its iterators say, not where data does", at=block)

    def _dimension(self, block: BlockOp, iterator: Axis, number: int) -> int:
        buffer, write = block.outputs[number], block.write_indices[number]
        if not isinstance(buffer.owner, AllocOp) or buffer.owner.alignment is not None:
            rule = "gets longer, so it must be no argument and not aligned yet: cache_write before"
            raise self.error(f"'{buffer_name(buffer)}' {rule}", at=block)
        if len(writers(buffer)) > 1:
            raise self.error(f"'{self.block}' must be the only block that writes '{buffer_name(buffer)}'", at=block)
        found = [d for d, e in enumerate(write) if iterator.name in e.axes()]
        if len(found) != 1 or write[found[0]].as_axis() != iterator.name:
            raise self.error(f"'{buffer_name(buffer)}' must be written at '{iterator.name}' in one dimension", at=block)
        return found[0]

    def rewrite(self, plan: Plan) -> None:
        inside = plan.iterator.extent - 1 - axis(plan.iterator.name)
        for load in plan.loads:
            redirect_load(load, load.buffer, load.indices.data, (*load.conditions, *([inside] * self._grows(plan))))
        axes = tuple(Axis(a.name, plan.extent, a.reduce) if a == plan.iterator else a for a in plan.block.axes)
        plan.block.iterators = AxesAttr(axes)
        plan.loop.extent = IntAttr(plan.trips)
        for output, dimension in zip(plan.block.outputs, plan.dimensions, strict=False):
            _lengthen(output, dimension, plan.extent)

    def _grows(self, plan: Plan) -> bool:
        return plan.extent > plan.iterator.extent

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage, loop, factor = nest.stage(self.block), nest.loop(self.block, self.loop), sizes.of(self.factor)
        iterator, *inner = [i for i in stage.iterators if loop.name in i.bound.names]
        loop.extent = ceil_div(loop.extent, factor) * factor
        iterator.extent = ceil_div(loop.extent, product([i.extent for i in inner]))
        if not iterator.is_reduce:
            for write in stage.writes:
                dimension = next(d for d, e in enumerate(write.indices) if e.as_name == iterator.name)
                write.buffer.shape[dimension] = iterator.extent

    def describe(self) -> str:
        return f"Extend loop {self.loop} of {self.block} to a multiple of {self.factor}, with zeros."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Pad, ...]:
        return legal_steps(cls._offered(module_op), module_op)

    @classmethod
    def _offered(cls, module: ModuleOp) -> Iterator[Pad]:
        for func in functions(module):
            for block in blocks_in(func):
                yield from (cls(block.block_name, x.loop_name, TRIED) for x in block.enclosing_loops)


def _digits(block: BlockOp, loop: ForOp) -> tuple[Axis, int] | None:
    """The outermost of the iterators that are digits of a loop, and the iterations of each; None where it has none."""
    moved = [a for a in block.axes if loop.loop_name in block.bound[a.name].axes()]
    step = 1
    for place, iterator in enumerate(reversed(moved)):
        is_outermost = place == len(moved) - 1
        if iterator.reduce and len(moved) > 1:
            return None
        digit = axis(loop.loop_name) // step
        if block.bound[iterator.name] != (digit if is_outermost else digit % iterator.extent):
            return None
        if is_outermost:
            return (iterator, step) if iterator.extent * step == loop.size else None
        step *= iterator.extent
    return None


def is_zero_beyond(load: LoadOp, iterator: Axis, extent: int) -> bool:
    """True where a load is known to find zeros beyond an iterator's end: padding of what it reads, which is there."""
    if _ends_before(load, iterator, extent):
        return False
    return _in_packing(load, iterator) or _in_masked(load, iterator)


def _in_packing(load: LoadOp, iterator: Axis) -> bool:
    """True for an argument that is packed along an iterator, whose elements beyond the end are the padding's."""
    buffer, owner = load.buffer, load.parent_op()
    assert isinstance(owner, BlockOp)
    packing = packing_of(function_of(owner), buffer.index) if isinstance(buffer, BlockArgument) else None
    if packing is None or packing.extents.get(iterator.name) != iterator.extent:
        return False
    places = parse_layout(packing.layout, packing.extents).forward()
    pairs = zip(places, load.indices.data, strict=True)
    return all(place == index for place, index in pairs if iterator.name in {*place.axes(), *index.axes()})


def _in_masked(load: LoadOp, iterator: Axis) -> bool:
    """True for a buffer whose only writer moves elements to where the iterator points, under a mask that ends there."""
    found = writers(load.buffer)
    moved = found[0].yielded[0].owner if len(found) == 1 and not found[0].is_reduction else None
    if not isinstance(moved, LoadOp) or len(found[0].outputs) != 1:
        return False
    write = found[0].write_indices[0]
    at = [d for d, e in enumerate(load.indices.data) if iterator.name in e.axes()]
    if len(at) != 1 or load.indices.data[at[0]].as_axis() != iterator.name:
        return False
    name = write[at[0]].as_axis()
    return name is not None and iterator.extent - 1 - axis(name) in moved.conditions


def _is_whole(load: LoadOp) -> bool:
    """True for a load of an argument that is not packed, in which what is beyond an iterator's end is no padding."""
    buffer, owner = load.buffer, load.parent_op()
    assert isinstance(owner, BlockOp)
    return isinstance(buffer, BlockArgument) and packing_of(function_of(owner), buffer.index) is None


def _is_there(load: LoadOp, iterator: Axis, extent: int) -> bool:
    """True where a load, of a block whose iterator gets longer, finds a value at each: of an argument within its shape,
    of another buffer where a block has written one.

    Places that a layout adds to round up an extent (`i/2`, `i%2` of five) are within the shape, and nobody writes them.
    """
    if _ends_before(load, iterator, extent):
        return False
    return isinstance(load.buffer, BlockArgument) or any(
        _is_written(load, iterator, extent, writer) for writer in writers(load.buffer)
    )


def _is_written(load: LoadOp, iterator: Axis, extent: int, writer: BlockOp) -> bool:
    """True where a block writes what a load reads: all up to the last of it, or the same places of longer iterators."""
    write = writer.write_indices[list(writer.outputs).index(load.buffer)]
    loops = {loop.loop_name: (0, loop.size - 1) for loop in writer.enclosing_loops}
    written = {a.name: min(a.extent - 1, writer.bound[a.name].bounds(loops)[1]) for a in writer.axes}
    read = _ranges(load, iterator, extent)
    at = {name for e in write for name in e.axes()}
    if values_taken(writer, at) < prod(written[name] + 1 for name in at):
        return False
    if write == load.indices.data:
        return all(written[name] >= read[name][1] for name in at)
    dimensions = zip(write, load.indices.data, buffer_shape(load.buffer), strict=True)
    pairs = [(place.as_axis(), index) for place, index, size in dimensions if size > 1]
    names = [name for name, _ in pairs if name is not None]
    if len(set(names)) < len(pairs):
        return False
    return all(name is not None and index.bounds(read)[1] <= written[name] for name, index in pairs)


def _ends_before(load: LoadOp, iterator: Axis, extent: int) -> bool:
    """True where a load, of a block whose iterator gets longer, may be beyond the end of its buffer."""
    ranges = _ranges(load, iterator, extent)
    return any(e.bounds(ranges)[1] >= n for e, n in zip(load.indices.data, buffer_shape(load.buffer), strict=True))


def _ranges(load: LoadOp, iterator: Axis, extent: int) -> dict[str, tuple[int, int]]:
    """First and last of each iterator of a load's block, of which one has another extent."""
    owner = load.parent_op()
    assert isinstance(owner, BlockOp)
    return {a.name: (0, (extent if a == iterator else a.extent) - 1) for a in owner.axes}


def _lengthen(buffer: SSAValue, dimension: int, extent: int) -> None:
    """Give a buffer another extent in one dimension."""
    assert isinstance(buffer.type, MemRefType)
    shape = list(buffer_shape(buffer))
    shape[dimension] = extent
    kind = buffer_type(buffer.type.element_type, shape, scope_of(buffer))
    Rewriter.replace_value_with_new_type(buffer, kind)
