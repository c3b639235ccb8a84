"""Kept part of each buffer where it lives: `passes.analysis.placement` for all candidates at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...dialects.loop_notes import PIPELINE_STAGES
from .digits import kept_indices
from .index import Cap, Extents, Index, SizedInterval, interval_of, moves, name_of, union
from .nest import Buffer, Loop, Nest, Stage
from .sizes import Size, is_one, less, maximum, minimum, negated, where


def kept_part(nest: Nest, buffer: Buffer, owner: Loop | None) -> Buffer:
    """The part of a buffer that one iteration of `owner` needs; on a GPU, threads share what is in scope shared."""
    shape = buffer.kept or _shape(nest, buffer, owner)
    return Buffer(buffer.name, shape, buffer.element_bytes, buffer.scope, False, buffer.align)


def _shape(nest: Nest, buffer: Buffer, owner: Loop | None) -> list[Size]:
    """The extents that `passes.analysis.placement` gives a buffer."""
    gpu = nest.target.is_gpu
    together = gpu and buffer.scope == "shared"
    owner = _outside_of_lanes(owner)
    stages = [s for s in nest.root.stages() if any(a.buffer is buffer for a in s.accesses)]
    own = _own_threads(owner, stages) if gpu and buffer.scope == "local" else {}
    boxes: list[SizedInterval | None] = [None] * len(buffer.shape)
    places: list[list[tuple[Index, dict[str, Size]]]] = [[] for _ in buffer.shape]
    for stage in stages:
        outer, inner = _ranges(stage, owner, together)
        outer |= own
        inner = {name: extent for name, extent in inner.items() if name not in own}
        capped = _narrowed(inner, outer, stage.caps) if together and stage.caps else None
        for indices in [a.indices for a in stage.accesses if a.buffer is buffer]:
            for d, index in enumerate(indices):
                place = index.substitute(stage.bound)
                places[d].append((place, inner))
                part, known = _reached(place, inner, outer, stage, capped), boxes[d]
                boxes[d] = part if known is None else union(known, part, outer)
    shape = [_bounded(box, extent) for box, extent in zip(boxes, buffer.shape, strict=True)]
    if gpu and buffer.scope == "local":
        shape = [kept_indices(extent, uses) for extent, uses in zip(shape, places, strict=True)]
    for writer in nest.writers(buffer):
        if gpu and PIPELINE_STAGES in writer.notes:  # the first dimension is the stage of the pipeline
            shape[0] = buffer.shape[0]
    return shape


def _reached(
    place: Index, inner: dict[str, Size], outer: dict[str, Size], stage: Stage, capped: dict[str, Size] | None
) -> SizedInterval:
    """The elements that an index of a stage reaches; where loops are `capped`, the smallest bound of them."""
    part = interval_of(place, inner, outer)
    if capped is None:
        return part
    return _smallest(part, (interval_of(place, inner, outer, stage.caps), interval_of(place, capped, outer)))


def _ranges(stage: Stage, owner: Loop | None, together: bool) -> tuple[dict[str, Size], dict[str, Size]]:
    """The extents of the loops up to `owner`, and inside; those of threads are inside where they work `together`."""
    loops = stage.loops
    depth = loops.index(owner) + 1 if owner is not None else 0
    outer = {x.name: x.extent for x in loops[:depth]}
    inner = {x.name: x.extent for x in loops[depth:]}
    if together:
        inner |= {x.name: x.extent for x in loops[:depth] if x.shares_a_block}
    return {name: extent for name, extent in outer.items() if name not in inner}, inner


def _smallest(part: SizedInterval, others: Iterable[SizedInterval]) -> SizedInterval:
    """The interval, or a smaller one: the threads that fill it may be more than the elements, held by a predicate."""
    for other in others:
        smaller = less(other.extent, part.extent)
        low = (
            other.low.times_where(smaller) + part.low.times_where(negated(smaller))
            if other.low != part.low
            else part.low
        )
        part = SizedInterval(low, minimum(part.extent, other.extent))
    return part


def _narrowed(inner: Extents, outer: Extents, caps: Sequence[Cap]) -> dict[str, Size]:
    """The extents of loops where the caps hold: `4 * i + j <= 7` leaves 2 iterations to `i`."""
    found, everywhere = dict(inner), {**outer, **inner}
    for cap in caps:
        if any(isinstance(c, int | float) and c <= 0 for _, c in cap.expr.terms):
            continue
        is_blocked: Size = 0
        narrow: list[tuple[str, Size, Size]] = []
        for atom, c in cap.expr.terms:
            name, same = name_of(atom, everywhere)
            if name in found:
                narrow.append((name, c, same))
            else:
                same = 0
            is_blocked = maximum(is_blocked, moves(Index(((atom, c),)), everywhere) * negated(same))
        for name, c, same in narrow:
            most = minimum(found[name], maximum(0, cap.most // maximum(c, 1)) + 1)
            found[name] = where(negated(is_blocked) * same * less(0, c), most, found[name])
    return found


def _outside_of_lanes(owner: Loop | None) -> Loop | None:
    """The loop itself, or the one around it where its iterations are lanes: each lane holds an element of its own."""
    found, loop = owner, owner
    while loop is not None:
        if loop.kind == "vectorized" and not is_one(loop.extent):
            found = loop.parent
        loop = loop.parent
    return found if found is not None and found.parent is not None else None


def _own_threads(owner: Loop | None, stages: Sequence[Stage]) -> dict[str, Size]:
    """The threads below a buffer's loop that all stages are told apart by: each has registers for its part alone."""
    found: list[dict[str, Size]] = []
    for stage in stages:
        loops = stage.loops
        inside = loops[loops.index(owner) + 1 :] if owner is not None else loops
        found.append({x.name: x.extent for x in inside if x.kind.startswith("threadIdx")})
    names = set(found[0]).intersection(*found[1:]) if found else set()
    return {name: maximum(found[0][name], *(f[name] for f in found[1:])) for name in sorted(names)}


def _bounded(box: SizedInterval | None, size: Size) -> Size:
    """The extent of a box, which may reach over the edge by a tail, or the dimension where that is much smaller."""
    if box is None:
        return size
    return where(less(2 * size + 64, box.extent), size, box.extent)
