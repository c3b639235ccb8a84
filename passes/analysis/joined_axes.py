"""Axes that blocks walk all their buffers along as if they were one, and what these become once they are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from ...dialects.index import ZERO, IndexExpr
from ...dialects.index import axis as axis_expr
from .nest import fresh_name


class Walk(NamedTuple):
    """One access: its buffer, and for each dimension the iterator that it is just, if any, and all that it is of."""

    buffer: str
    plain: tuple[str | None, ...]
    used: tuple[frozenset[str], ...]
    writes: bool


class Walker(NamedTuple):
    """A block: its iterators with their extents, those that reduce, and its accesses."""

    axes: tuple[tuple[str, int], ...]
    reduce: frozenset[str]
    walks: tuple[Walk, ...]


@dataclass
class JoinedAxes:
    """The iterators of each block that become one, and the first of the dimensions of each buffer that do."""

    count: int
    blocks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, int] = field(default_factory=dict)

    def axes(self, block: str, walker: Walker) -> list[tuple[str, int]]:
        """The iterators of a block afterwards, with their extents: one for those joined, none of one iteration."""
        sizes, joined = dict(walker.axes), self.blocks[block]
        total = prod(sizes[name] for name in joined)
        kept: list[tuple[str, int]] = []
        for name, extent in walker.axes:
            if name == joined[0]:
                kept.append((self.name(block, walker), total))
            elif name not in joined and extent > 1:
                kept.append((name, extent))
        return kept

    def name(self, block: str, walker: Walker) -> str:
        """The iterator that those of a block become."""
        joined = self.blocks[block]
        return fresh_name("_".join(joined), [name for name, _ in walker.axes if name not in joined])

    def values(self, block: str, walker: Walker) -> dict[str, IndexExpr]:
        """The iterators of a block over those it has afterwards."""
        sizes, joined, below = dict(walker.axes), self.blocks[block], 1
        found = {name: ZERO for name, extent in walker.axes if extent == 1}
        whole = axis_expr(self.name(block, walker))
        for name in reversed(joined):
            digit = whole // below
            found[name] = digit if name == joined[0] else digit % sizes[name]
            below *= sizes[name]
        return found

    def kept(self, buffer: str, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """The dimensions of a buffer, each as those before that it is of; none of one element, but for a last one."""
        first, groups = self.buffers.get(buffer, -1), list[tuple[int, ...]]()
        for d, extent in enumerate(shape):
            if d == first:
                groups.append(tuple(range(first, first + self.count)))
            elif extent > 1 and not (first >= 0 and first <= d < first + self.count):
                groups.append((d,))
        return groups or [(0,)] * bool(shape)


def join_axes(
    walkers: Mapping[str, Walker], shapes: Mapping[str, Sequence[int]], block: str, axes: Sequence[str]
) -> JoinedAxes | str:
    """Find all that iterators of a block becoming one changes; a sentence where they cannot."""
    joined = JoinedAxes(len(axes))
    waiting = [(block, tuple(axes))]
    while waiting:
        name, these = waiting.pop()
        if name in joined.blocks:
            continue  # where it is to become one of other iterators, it does not walk the buffer as it should
        if fault := _fault(name, walkers[name], these):
            return fault
        joined.blocks[name] = these
        for walk in walkers[name].walks:
            first = _walked(walk, dict(walkers[name].axes), shapes[walk.buffer], these)
            if first is not None and walk.buffer not in joined.buffers:
                joined.buffers[walk.buffer] = first
                waiting += _beside(walkers, walk.buffer, first, len(these))
            elif first is None and walk.writes and frozenset().union(*walk.used) & set(these):
                return f"'{name}' must write '{walk.buffer}' along {', '.join(these)}, all of neighbouring dimensions"
    return _other_walk(joined, walkers, shapes) or joined


def _fault(name: str, walker: Walker, axes: tuple[str, ...]) -> str:
    """A sentence where iterators of a block are not such as may become one; empty for none."""
    names = [axis for axis, extent in walker.axes if extent > 1]
    if axes[0] not in names or axes != tuple(names[names.index(axes[0]) :][: len(axes)]):
        return f"{', '.join(axes)} must be iterators of '{name}' of several iterations, one after the other"
    if walker.reduce & set(axes):
        return f"{', '.join(axes)} of '{name}' must not be reduced over"
    return ""


def _beside(walkers: Mapping[str, Walker], buffer: str, first: int, count: int) -> list[tuple[str, tuple[str, ...]]]:
    """The blocks that use a buffer, with the iterators that they walk dimensions of it along, where these are plain."""
    found = []
    for name, walker in walkers.items():
        for walk in walker.walks:
            plain = tuple(n for n in walk.plain[first : first + count] if n is not None)
            if walk.buffer == buffer and len(plain) == count:
                found.append((name, plain))
    return found


def _walked(walk: Walk, sizes: Mapping[str, int], shape: Sequence[int], axes: tuple[str, ...]) -> int | None:
    """The first of neighbouring dimensions that an access walks as a whole along the axes; None for no such."""
    if axes[0] not in walk.plain:
        return None
    first = walk.plain.index(axes[0])
    places = range(first, first + len(axes))
    others = [used for d, used in enumerate(walk.used) if d not in places]
    if walk.plain[first : first + len(axes)] != axes or frozenset().union(*others) & set(axes):
        return None
    return first if all(shape[d] == sizes[axis] for d, axis in zip(places, axes, strict=True)) else None


def _other_walk(joined: JoinedAxes, walkers: Mapping[str, Walker], shapes: Mapping[str, Sequence[int]]) -> str:
    """A sentence where a block accesses a buffer that changes in another way; empty for none."""
    for name, walker in walkers.items():
        for walk in walker.walks:
            if walk.buffer not in joined.buffers:
                continue
            these = joined.blocks.get(name)
            if (
                these is None
                or _walked(walk, dict(walker.axes), shapes[walk.buffer], these) != joined.buffers[walk.buffer]
            ):
                return f"'{name}' must walk all of '{walk.buffer}' along the same dimensions"
    return ""
