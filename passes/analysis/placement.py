"""Placement of buffers: the loop each is allocated in, and a layout of just the region one iteration needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import NamedTuple

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects.buffers import CHUNK_BYTES, SWIZZLES
from ...dialects.element import element_bytes
from ...dialects.index import ZERO, Div, IndexExpr, Ranges, atom_axes, flatten
from ...dialects.interpret.loop import owning_loops
from ...dialects.layout import Layout, Swizzle
from ...dialects.loop import AllocOp, BlockOp, ForOp, blocks_in, buffer_shape, scope_of
from ...dialects.loop_notes import PIPELINE_BULK, PIPELINE_STAGES
from ...dialects.strides import row_major
from .nest import ranges_of
from .regions import Interval, interval_of, union


@dataclass(frozen=True)
class Placement:
    """A buffer's home: the loop each iteration of which has its own (None: the function), and its layout there."""

    name: str
    scope: str
    owner: ForOp | None
    is_argument: bool
    shape: tuple[int, ...]
    layout: Layout

    @property
    def extents(self) -> tuple[int, ...]:
        return self.layout.extents

    @property
    def one_size(self) -> int:
        """Elements from the first to the last of one copy."""
        return self.layout.one_size

    @property
    def size(self) -> int:
        """Elements from the first to the last."""
        return self.layout.size

    def offset(self, indices: Sequence[IndexExpr]) -> IndexExpr:
        """The flat position of an element, whose indices are expressions over the loops."""
        return flatten(indices, self.layout.strides) if self.is_argument else self.layout.offset(indices)


def whole(shape: tuple[int, ...]) -> Layout:
    """A dense buffer, all of which is kept."""
    return Layout((ZERO,) * len(shape), shape, tuple(row_major(shape)))


def place_arguments(func: FuncOp) -> dict[SSAValue, Placement]:
    """Return the placement of a function's arguments: in the caller's memory, as wholes."""
    found: dict[SSAValue, Placement] = {}
    for argument in func.body.block.args:
        shape = buffer_shape(argument)
        found[argument] = Placement(argument.name_hint or "", "global", None, True, shape, whole(shape))
    return found


def place_buffers(func: FuncOp, gpu: bool = False) -> dict[SSAValue, Placement]:
    """Lay out every buffer of a function on loops; on a GPU, threads share what is in scope shared."""
    placements = place_arguments(func)
    owners = owning_loops(func)
    uses = _uses(func, set(owners))
    for buffer, owner in owners.items():
        placements[buffer] = _place(buffer, _outside_of_lanes(owner), uses[buffer], gpu)
    return placements


def _outside_of_lanes(owner: ForOp | None) -> ForOp | None:
    """The loop itself, or the one around it where its iterations are lanes: each lane holds an element of its own."""
    found: ForOp | None = owner
    loop: object = owner
    while isinstance(loop, ForOp):
        around = loop.parent_op()
        if loop.loop_kind == "vectorized" and loop.size > 1:
            found = around if isinstance(around, ForOp) else None
        loop = around
    return found


Use = tuple[BlockOp, tuple[IndexExpr, ...]]
"""A block that touches a buffer, and at which indices, over its iterators."""


def _uses(func: FuncOp, buffers: set[SSAValue]) -> dict[SSAValue, list[Use]]:
    uses: dict[SSAValue, list[Use]] = {b: [] for b in buffers}
    for block in blocks_in(func):
        for output, write in zip(block.outputs, block.write_indices, strict=True):
            if output in uses:
                uses[output].append((block, write))
        for load in block.loads:
            if load.buffer in uses:
                uses[load.buffer].append((block, load.indices.data))
    return uses


def _place(buffer: SSAValue, owner: ForOp | None, uses: Sequence[Use], gpu: bool) -> Placement:
    alloc = buffer.owner
    assert isinstance(alloc, AllocOp)
    shape, scope = buffer_shape(buffer), scope_of(buffer)
    local, shared = gpu and scope == "local", gpu and scope == "shared"
    own = _own_threads(owner, [block for block, _ in uses]) if local else {}
    around = [_ranges_around(block, owner, shared, own) for block, _ in uses]
    kept = [_bounded(box, n) for box, n in zip(_boxes(uses, around, shared), shape, strict=True)]
    if gpu and any(runs_ahead(block, buffer) for block, _ in uses):
        kept[0] = Interval(ZERO, shape[0])
    if gpu and any(_is_read_in_bulk(block, buffer) for block, _ in uses):
        kept = [Interval(ZERO, extent) for extent in shape]
    extents = tuple(box.extent for box in kept)
    lows = tuple(box.low for box in kept)
    digits = _Digits(extents)
    if local:
        places = [[e - low for e, low in zip(_over_loops(*use), lows, strict=True)] for use in uses]
        digits = _digits(places, extents, [{**outer, **inner} for outer, inner in around])
    steps = digits.steps if own or max(digits.steps, default=1) > 1 else ()
    extents = digits.extents
    copies = _virtual(owner, _moved_by(uses, around)) if local else ()
    swizzle = _swizzle(buffer, extents[-1]) if shared and alloc.alignment is None else None
    strides = tuple(row_major(extents, alloc.alignment))
    layout = Layout(lows, extents, strides, steps, copies, digits.periods, digits.kept, swizzle)
    return Placement(alloc.label.data, scope, owner, False, shape, layout)


def _boxes(uses: Sequence[Use], around: Sequence[tuple[Ranges, Ranges]], shared: bool) -> Sequence[Interval | None]:
    """For each dimension what all uses touch while a buffer lives; None where that is not to be told."""
    boxes: list[Interval | None] | None = None
    for (block, indices), (outer, inner) in zip(uses, around, strict=True):
        parts = _touched(block, indices, outer, inner, shared)
        if boxes is None:
            boxes = [*parts]
        else:
            boxes = [box and union(box, part, outer) for box, part in zip(boxes, parts, strict=True)]
    return boxes or ()


def _over_loops(block: BlockOp, indices: Sequence[IndexExpr]) -> list[IndexExpr]:
    bound = block.bound
    return [e.substitute(bound) for e in indices]


def _moved_by(uses: Sequence[Use], around: Sequence[tuple[Ranges, Ranges]]) -> set[str]:
    """The loops on which it depends what is touched."""
    found: set[str] = set()
    for (block, indices), (outer, inner) in zip(uses, around, strict=True):
        everywhere = {**outer, **inner}
        found |= {name for e in _over_loops(block, indices) for name in e.simplify(everywhere).axes()}
    return found


def _ranges_around(block: BlockOp, owner: ForOp | None, shared: bool, own: Ranges) -> tuple[Ranges, Ranges]:
    """The ranges of the loops around a block that have one value while a buffer lives, and of those that run then.

    All threads of a block run while a shared buffer does; `own` are those of which each has a buffer.
    """
    loops = block.enclosing_loops
    depth = loops.index(owner) + 1 if owner is not None else 0
    outer, inner = ranges_of(loops[:depth]), ranges_of(loops[depth:])
    if shared:
        inner |= ranges_of(x for x in loops[:depth] if x.loop_kind.startswith(("threadIdx", "vthread")))
        outer = {name: r for name, r in outer.items() if name not in inner}
    return {**outer, **own}, {name: r for name, r in inner.items() if name not in own}


def _touched(
    block: BlockOp, indices: Sequence[IndexExpr], outer: Ranges, inner: Ranges, shared: bool
) -> list[Interval]:
    """For each dimension what a block touches while the `inner` loops run.

    The threads that fill shared memory together may be more than there are elements: a predicate holds some back.
    """
    everywhere = {**outer, **inner}
    once = {name: ZERO for name, (_, last) in everywhere.items() if last == 0}
    tails = [e.substitute(once) for e in block.conditions]
    caps = {IndexExpr(tuple((a, -c) for a, c in e.terms), 0): e.const for e in tails}
    narrowed = _narrowed(inner, tails)
    found = []
    for plain in _over_loops(block, indices):
        at = plain.simplify(everywhere)
        part = interval_of(at, inner)
        if shared:
            capped = interval_of(plain.substitute(once), inner, caps)
            part = min(part, capped, interval_of(at, narrowed), key=lambda p: p.extent)
        found.append(part)
    return found


def runs_ahead(block: BlockOp, buffer: SSAValue) -> bool:
    """True for a copy that `pipeline` has marked: the first dimension of its buffer are the stages."""
    return buffer in block.outputs and PIPELINE_STAGES in block.notes


def _is_read_in_bulk(block: BlockOp, buffer: SSAValue) -> bool:
    """True for a copy by the copy engine from this buffer: it writes zeros for what lies beyond the array's shape."""
    return PIPELINE_BULK in block.notes and any(load.buffer is buffer for load in block.loads)


def _narrowed(ranges: Ranges, conditions: Sequence[IndexExpr]) -> dict[str, tuple[int, int]]:
    """The ranges of loops where the conditions hold: `7 - 4 * i - j >= 0` leaves 0 and 1 to `i`."""
    found = dict(ranges)
    for condition in conditions:
        if any(c >= 0 or ranges.get(a, (-1, 0))[0] < 0 for a, c in condition.terms if isinstance(a, str)):
            continue
        if all(isinstance(a, str) for a, _ in condition.terms):
            for a, c in condition.terms:
                assert isinstance(a, str)
                found[a] = (found[a][0], min(found[a][1], max(0, condition.const // -c)))
    return found


def _own_threads(owner: ForOp | None, blocks: Sequence[BlockOp]) -> Ranges:
    """The threads below a buffer's loop that all `blocks` are told apart by: each has registers for its part alone."""
    found: list[dict[str, tuple[int, int]]] = []
    for block in blocks:
        loops = block.enclosing_loops
        inner = loops[loops.index(owner) + 1 :] if owner is not None else loops
        found.append(ranges_of([x for x in inner if x.loop_kind.startswith("threadIdx")]))
    names = set(found[0]).intersection(*found[1:]) if found else set()
    return {name: (0, max(ranges[name][1] for ranges in found)) for name in sorted(names)}


class _Digits(NamedTuple):
    """Indices that are kept of each dimension: how many, every which, and of which periods how many of the first."""

    extents: tuple[int, ...]
    steps: tuple[int, ...] = ()
    periods: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


def _digits(places: Sequence[Sequence[IndexExpr]], extents: Sequence[int], ranges: Sequence[Ranges]) -> _Digits:
    """Find the indices that are touched at all, counted from the first element kept, by all uses of a buffer."""
    steps = _steps(places)
    every = tuple((n - 1) // step + 1 for n, step in zip(extents, steps, strict=True))
    gaps = _gaps(places, steps, every, ranges)
    if all(period == 1 for period, _ in gaps):
        return _Digits(every, steps)
    found = tuple(-(-n // period) * kept for n, (period, kept) in zip(every, gaps, strict=True))
    return _Digits(found, steps, tuple(period for period, _ in gaps), tuple(kept for _, kept in gaps))


def _steps(places: Sequence[Sequence[IndexExpr]]) -> tuple[int, ...]:
    """For each dimension the largest step that all indices are multiples of, counted from the first element kept."""
    return tuple(
        gcd(*(n for e in of_one for n in (e.const, *(c for _, c in e.terms)))) or 1
        for of_one in zip(*places, strict=True)
    )


def _gaps(
    places: Sequence[Sequence[IndexExpr]], steps: Sequence[int], extents: Sequence[int], ranges: Sequence[Ranges]
) -> list[tuple[int, int]]:
    """For each dimension a period, and how many of its first steps are touched at all; 1 and 1 where there is none.

    Between them are the elements of other threads, as of a digit in the middle of an index.
    """
    found = []
    for d, (step, extent) in enumerate(zip(steps, extents, strict=True)):
        own = [(of_one[d] // step, known) for of_one, known in zip(places, ranges, strict=True)]
        periods = {abs(c) for e, _ in own for _, c in e.terms if abs(c) > 1}
        kept = {period: _kept(own, period) for period in sorted(periods)}
        best = min(kept, key=lambda period: -(-extent // period) * kept[period], default=1)
        smaller = best > 1 and kept[best] < best and -(-extent // best) * kept[best] < extent
        found.append((best, kept[best]) if smaller else (1, 1))
    return found


def _kept(places: Sequence[tuple[IndexExpr, Ranges]], period: int) -> int:
    """Number of the first elements of each period that are touched; the period where that is not to be told."""
    most = 0
    for expr, ranges in places:
        known = all(atom_axes(atom) <= ranges.keys() and c > 0 for atom, c in expr.terms)
        if not known or expr.const < 0 or any(IndexExpr(((a, 1),), 0).bounds(ranges)[0] < 0 for a, _ in expr.terms):
            return period
        rest = IndexExpr(tuple(t for t in expr.terms if t[1] % period), expr.const % period)
        most = max(most, rest.bounds(ranges)[1])
    return min(most + 1, period)


def _swizzle(buffer: SSAValue, row: int) -> Swizzle | None:
    """The order of the chunks in rows of so many elements, within the most bytes that divide one; None as they are."""
    alloc = buffer.owner
    assert isinstance(alloc, AllocOp) and isinstance(buffer.type, MemRefType)
    size = element_bytes(buffer.type.element_type)
    span = next((n for n in SWIZZLES if n <= alloc.swizzle_bytes and row * size % n == 0), 0)
    if not span:
        return None
    return Swizzle(CHUNK_BYTES // size, max(row, SWIZZLES[0] // size), span // CHUNK_BYTES)


def _virtual(owner: ForOp | None, moved: set[str]) -> tuple[tuple[str, int], ...]:
    """The virtual threads around a buffer that touch different elements of it."""
    copies = []
    loop: object = owner
    while isinstance(loop, ForOp):
        if loop.loop_kind == "vthread" and loop.loop_name in moved:
            copies.append((loop.loop_name, loop.size))
        loop = loop.parent_op()
    return tuple(reversed(copies))


def _bounded(box: Interval | None, size: int) -> Interval:
    """The box, which may reach over the buffer's edge by a tail, or the whole dimension where that is much smaller."""
    if box is None or box.extent > 2 * size + 64:
        return Interval(ZERO, size)
    return box


def in_bounds(
    offset: IndexExpr, indices: Sequence[IndexExpr], place: Placement, ranges: Ranges, known: frozenset[IndexExpr]
) -> bool:
    """True where an element, by its flat position or index by index, is always inside of the buffer.

    `known` are conditions that hold there.
    """
    lowest, highest = bounds_together(offset, ranges)
    if lowest >= 0 and highest < place.size:
        return True
    if not known or not place.is_argument:
        return False
    for expr, extent in zip(indices, place.shape, strict=True):
        lowest, highest = expr.bounds(ranges)
        if (lowest < 0 and expr not in known) or (highest >= extent and extent - 1 - expr not in known):
            return False
    return True


def bounds_together(expr: IndexExpr, ranges: Ranges) -> tuple[int, int]:
    """Inclusive bounds over `ranges`, in which a quotient and one that is taken from it go together.

    `(b * 80 + t) floordiv 50 - (b * 8) floordiv 5`, a place in a tile of fused axes, does not grow with b.
    """
    terms = dict(expr.terms)
    lowest = highest = 0
    for taken, c in expr.terms:
        if not isinstance(taken, Div) or c >= 0:
            continue
        whole = next((a for a, k in terms.items() if isinstance(a, Div) and k == -c), None)
        if whole is not None:
            del terms[taken], terms[whole]
            nearest, farthest = _distance(taken, whole, ranges)
            lowest, highest = lowest - c * nearest, highest - c * farthest
    first, last = IndexExpr(tuple(terms.items()), expr.const).bounds(ranges)
    return lowest + first, highest + last


def _distance(a: Div, b: Div, ranges: Ranges) -> tuple[int, int]:
    """Inclusive bounds of `b - a`."""
    divisor = lcm(a.divisor, b.divisor)
    start, end = a.expr * (divisor // a.divisor), b.expr * (divisor // b.divisor)
    nearest, farthest = (end - start).bounds(ranges)
    # What is divided in `a` is `start mod step`, and so many steps more, above a multiple of the divisor.
    step = gcd(divisor, *(c for _, c in start.terms))
    lowest = start.const % step
    return (lowest + nearest) // divisor, (lowest + divisor - step + farthest) // divisor
