"""Nests that copy boxes of an array to shared memory, written as bulk copies, which one thread begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.buffers import CHUNK_BYTES, SWIZZLES
from ...dialects.element import element_bytes
from ...dialects.index import ZERO, IndexExpr, Ranges, axis, constant
from ...dialects.loop import BlockOp, ForOp, blocks_in
from ...dialects.pixel_walk import Walk
from ..analysis.nest import only_child, ranges_of
from ..analysis.placement import Placement, whole
from ..analysis.walks import find_walk
from ._addresses import Addresses
from ._block_plan import Access, BlockPlan
from ._matrix_product import rounding_of
from ._run_ahead import BULK

NO_BLOCKS: Mapping[str, int] = {}
LARGE_BYTES, ASKED = 16 << 20, 2
"""Bytes of an array that the second-level cache is not to keep, and the blocks that ask for its elements at most: two
that are neighbours do so together."""


@dataclass(frozen=True)
class _Boxes:
    """Boxes that a nest copies: one for each iteration of its loops `around`, those of a box are within.

    With a `walk` a box is pixels and channels, from a `place` that is one of the walk's, moved by `taps`: those of its
    loop over `pixels` where it is at `pixel`. Its `ends` are predicates that it keeps beside the array's.
    """

    source: Access
    target: Access
    around: tuple[ForOp, ...]
    place: tuple[IndexExpr, ...]
    box: tuple[int, ...]
    offset: IndexExpr
    span: int
    rounds: bool
    walk: Walk | None = None
    taps: tuple[IndexExpr, ...] = ()
    pixels: str = ""
    ends: tuple[IndexExpr, ...] = ()
    pixel: IndexExpr = ZERO

    @property
    def element_bytes(self) -> int:
        kind = self.target.buffer.type
        assert isinstance(kind, MemRefType)
        return element_bytes(kind.element_type)

    @property
    def bytes(self) -> int:
        """Bytes of all boxes."""
        return prod(loop.size for loop in self.around) * prod(self.box) * self.element_bytes


def is_bulk(nest: Operation) -> bool:
    """True for a nest that is to be copied by the copy engine."""
    return isinstance(nest, ForOp) and all(BULK in block.notes for block in blocks_in(nest))


class BulkWriter:
    """Writes the nests of a function that are bulk copies."""

    def __init__(self, at: Addresses, buffers: Mapping[SSAValue, SSAValue], plans: Mapping[BlockOp, BlockPlan]) -> None:
        self.at, self.buffers, self.plans = at, buffers, plans

    def bytes_of(self, nest: ForOp) -> int:
        """Bytes that a nest copies; PassFailedException where it is no copy of boxes."""
        return self._boxes(nest).bytes

    def write(
        self, nest: ForOp, barrier: tuple[SSAValue, SSAValue], blocks: Mapping[str, int] = NO_BLOCKS, times: int = 0
    ) -> None:
        """Write the copies of a nest, whose bytes a barrier counts; all blocks of a launch make them so many `times`.

        Of `blocks` of a cluster on each axis, those that want the same boxes each ask for a share of them for all.
        """
        found, across = _shares(self._boxes(nest), blocks)
        once = _is_asked_once(found, times)
        for values in _iterations(found.around):
            values[found.pixels] = found.pixel
            place = [self.at.scalar(self.at.fixed(each.substitute(values))) for each in found.place]
            taps = [self.at.scalar(self.at.fixed(each.substitute(values))) for each in found.taps]
            offset = self.at.fixed(found.offset.substitute(values))
            target = self.at.scalar(IndexExpr(offset.terms, 0))
            self.at.here.block.add_op(
                kernel.BulkCopyOp(
                    self.buffers[found.source.buffer],
                    place,
                    found.source.place.shape,
                    found.box,
                    found.span,
                    (self.buffers[found.target.buffer], target, offset.const),
                    barrier,
                    found.rounds,
                    across,
                    found.walk,
                    taps,
                    once,
                )
            )

    def _boxes(self, nest: ForOp) -> _Boxes:
        loops = list(_chain(nest))
        block = only_child(loops[-1])
        assert isinstance(block, BlockOp)
        plan = self.plans[block]
        (source,) = plan.loads.values()
        ranges = {**self.at.ranges, **ranges_of(loops)}
        simpler = replace(source, indices=tuple(e.simplify(ranges) for e in source.indices))
        found = _in_boxes(simpler, plan.writes[0], loops)
        walked = _in_walk(plan, loops, ranges) if found.around else None
        if walked is not None and prod(walked.box) > prod(found.box):
            found = walked
        why = _problem(found, plan)
        if why is not None:
            rule = f"block '{plan.name}' is no copy of boxes, as the copy engine makes them: {why}"
            raise PassFailedException(f"lw-write-kernel: {rule}; pipeline it without bulk")
        return found


def _shares(found: _Boxes, blocks: Mapping[str, int]) -> tuple[_Boxes, tuple[str, ...]]:
    """The share of boxes that a block asks for, along their outermost dimension, and the axes along which all get it.

    PassFailedException where boxes have no such shares.
    """
    apart = {name for e in (*found.place, found.offset) for name in e.axes()}
    axes = tuple(axis for axis, count in blocks.items() if count > 1 and axis not in apart)
    if not axes:
        return found, ()
    place, number, count = list(found.place), ZERO, 1
    for name in axes:
        number, count = number + axis(name) * count, count * blocks[name]
    d = next((d for d, n in enumerate(found.box) if n > 1), 0)
    rows = found.box[d] // count
    elements = rows * prod(found.box[d + 1 :])
    if found.box[d] % count or elements * found.element_bytes % _atom_bytes(found):
        rule = f"{count} blocks of a cluster have no equal shares of a box of {list(found.box)}"
        raise PassFailedException(f"lw-write-kernel: {rule} of '{found.source.place.name}'; pipeline without cluster")
    pixel = number * rows if found.walk is not None else ZERO
    if found.walk is None:
        place[d] = place[d] + number * rows
    box = (*found.box[:d], rows, *found.box[d + 1 :])
    offset = found.offset + number * elements
    return replace(found, place=tuple(place), box=box, offset=offset, pixel=pixel), axes


def _is_asked_once(found: _Boxes, times: int) -> bool:
    """True for a large array that is asked for about once, so that nothing is gained by keeping it in the cache."""
    array = prod(found.source.place.shape) * found.element_bytes
    return array >= LARGE_BYTES and found.walk is None and 0 < times * found.bytes <= ASKED * array


def _atom_bytes(found: _Boxes) -> int:
    """Bytes that boxes start at multiples of in shared memory."""
    return max(kernel.ATOM_ROWS * (found.span or CHUNK_BYTES), SWIZZLES[0])


def _chain(nest: ForOp) -> Iterator[ForOp]:
    inner: Operation | None = nest
    while isinstance(inner, ForOp):
        yield inner
        inner = only_child(inner)


def _iterations(loops: Sequence[ForOp]) -> Iterator[dict[str, IndexExpr]]:
    for values in product(*(range(loop.size) for loop in loops)):
        yield {loop.loop_name: constant(n) for loop, n in zip(loops, values, strict=True)}


def _in_boxes(source: Access, target: Access, loops: Sequence[ForOp]) -> _Boxes:
    """Find the innermost loops that are a box: each along a dimension of its own, in order, dense in shared memory."""
    box, inside, step = [1] * len(source.indices), dict[str, IndexExpr](), 1
    around = list(loops)
    last = len(source.indices)
    while around:
        loop = around[-1]
        along = [d for d, e in enumerate(source.indices) if loop.loop_name in e.axes()]
        if loop.size > 1:
            if len(along) != 1 or along[0] >= last or not _steps_by(source.indices[along[0]], loop, 1):
                break
            if not _steps_by(target.offset, loop, step):
                break
            (last,) = along
            box[last] = loop.size
            step *= loop.size
        inside[loop.loop_name] = ZERO
        around.pop()
    place = tuple(e.substitute(inside) for e in source.indices)
    rounds = bool(rounding_of(target.buffer))
    offset = target.offset.substitute(inside)
    return _Boxes(source, target, tuple(around), place, tuple(box), offset, _span(target), rounds)


def _span(target: Access) -> int:
    """Bytes of the rows that chunks are swizzled in; 0 for none."""
    swizzle = target.place.layout.swizzle
    return swizzle.chunks * CHUNK_BYTES if swizzle is not None else 0


def _in_walk(plan: BlockPlan, loops: Sequence[ForOp], ranges: Ranges) -> _Boxes | None:
    """Find the innermost loops that are pixels and channels of a walk over images; None where there are no such.

    A row of one pixel is no walk, as a tile of a matrix is none.
    """
    (source,), target, block = plan.loads.values(), plan.writes[0], plan.block
    several = [loop for loop in loops if loop.size > 1]
    if len(several) < 2:
        return None
    *around, pixels, channels = several
    counting = [a.name for a in block.axes if pixels.loop_name in block.bound[a.name].axes()]
    if len(counting) != 1 or not _steps_by(block.bound[counting[0]], pixels, 1):
        return None
    found = find_walk(block, counting[0])
    if found is None or not _steps_by(target.offset, channels, 1):
        return None
    if not _steps_by(target.offset, pixels, channels.size):
        return None
    *at, channel = (e.substitute(block.bound).simplify(ranges) for e in (*found.taps, *found.place))
    if not _steps_by(channel, channels, 1) or any(channels.loop_name in e.axes() for e in at):
        return None
    inside = {loop.loop_name: ZERO for loop in loops if loop not in around}
    offset = target.offset.substitute(inside)
    del inside[pixels.loop_name]
    begin = tuple(e.substitute(inside) for e in (*at, channel))
    taps, place = begin[: len(found.taps)], begin[len(found.taps) :]
    box, rounds = (pixels.size, channels.size), bool(rounding_of(target.buffer))
    ends = tuple(e.substitute(block.bound) for e in found.ends)
    walked = (found.walk, taps, pixels.loop_name, ends)
    return _Boxes(source, target, tuple(around), place, box, offset, _span(target), rounds, *walked)


def _steps_by(expr: IndexExpr, loop: ForOp, step: int) -> bool:
    return expr.is_linear_in(loop.loop_name) and expr.coefficient(loop.loop_name) == step


def _within(source: Access) -> set[IndexExpr]:
    """The predicates that an element is one of the array: the copy engine writes zeros for others."""
    pairs = zip(source.indices, source.place.shape, strict=True)
    return {within for e, extent in pairs for within in (e, extent - 1 - e)}


def _problem(found: _Boxes, plan: BlockPlan) -> str | None:
    """Say why boxes cannot be copied by the copy engine; None where they can."""
    place: Placement = found.source.place
    (source,) = plan.loads.values()
    if plan.conditions or not set(source.where) <= _within(source).union(found.ends):
        return "it has a predicate other than those of the array's ends, so split by factors that divide the extents"
    if not place.is_argument and place.layout != whole(place.shape):
        return f"'{place.name}' is not kept whole"
    if any(loop.loop_kind not in ("serial", "unrolled") for loop in found.around):
        return "its loops must be serial, threads have no part in it"
    numbers = (place.shape, found.box, found.element_bytes, found.span)
    why = kernel.walk_problem(found.walk, *numbers) if found.walk is not None else kernel.box_problem(*numbers)
    if why is not None:
        return f"of '{place.name}', {why}"
    atom = _atom_bytes(found)
    step = [c for _, c in found.offset.terms] + [found.offset.const]
    if any(c * found.element_bytes % atom for c in step):
        return f"its boxes start at no multiple of {atom} bytes of '{found.target.place.name}'"
    return None
