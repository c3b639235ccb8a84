"""Movement of accesses through their buffers while loops run: steps, reaches, footprints.

All of it follows from values of index expressions at a few places (a loop at 1, at its end, others at 0), never from
their form, which differs between the IR of one candidate and the expressions for a population.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from typing import Any

from ...passes.parametric.index import Index
from ...passes.parametric.nest import Access, Loop, Stage
from ...passes.parametric.sizes import Size, absolute, is_one, less, maximum, minimum, product, total, where


class StageMovement:
    """Ranges and steps of a stage's iterators while one of its loops runs; computed once for each."""

    def __init__(self, stage: Stage, loops: Sequence[Loop]) -> None:
        self.stage = stage
        self.loops = list(loops)
        self._bound = {a.name: a.bound for a in stage.iterators}
        self._start = {n: e.at({}) for n, e in self._bound.items()}
        self._places: dict[tuple[str, int], dict[str, Size]] = {}

    def at(self, loop: Loop, key: int, value: Size) -> dict[str, Size]:
        """The iterators where `loop` has the value `value`, and all others 0; `key` names the value."""
        places = self._places.get((loop.name, key))
        if places is None:
            moved = {n: e.at({loop.name: value}) for n, e in self._bound.items() if loop.name in e.names}
            places = self._places[loop.name, key] = self._start | moved
        return places

    def names(self, index: Index) -> frozenset[str]:
        """The loops that an index over iterators may change with."""
        return frozenset().union(*(self._bound[n].names for n in index.names))

    @property
    def start(self) -> dict[str, Size]:
        """The iterators where all loops are 0."""
        return self._start


_END = -1
"""Key of the last iteration among the places of a loop that are kept, as 1 is of the second."""


class Movement:
    """One access of a stage: by how much each dimension, and the address, changes with each loop."""

    def __init__(self, of: StageMovement, access: Access) -> None:
        self.of = of
        self.access = access
        self.strides = access.buffer.strides
        self.shape = access.buffer.shape
        self._start = [e.at(of.start) for e in access.indices]
        self._names = [of.names(e) for e in access.indices]
        self._moved: dict[str, Size] = {}
        self.known: dict[Callable[..., Size], Size] = {}
        """Results of functions marked `once` for the access."""
        self._reach: dict[str, list[Size]] = {loop.name: self._reach_of(loop) for loop in of.loops}
        self._step: dict[tuple[str, int], Size] = {}

    @property
    def element_bytes(self) -> int:
        return self.access.buffer.element_bytes

    def _changes(self, loop: Loop, key: int, value: Size) -> list[Size]:
        place = self.of.at(loop, key, value)
        return [
            e.at(place) - s if loop.name in names else 0
            for e, s, names in zip(self.access.indices, self._start, self._names, strict=True)
        ]

    def _reach_of(self, loop: Loop) -> list[Size]:
        """The furthest each dimension gets from its start while a loop runs: exact for expressions linear in it.

        Where an index wraps around, it is what the first step says, up to the extent of the dimension.
        """
        if is_one(loop.extent) or not any(loop.name in names for names in self._names):
            return [0] * len(self.shape)
        last = loop.extent - 1
        ends = self._changes(loop, _END, last)
        firsts = self._changes(loop, 1, 1)
        return [
            maximum(absolute(end), minimum(absolute(first) * last, extent - 1)) if not _both_zero(end, first) else 0
            for end, first, extent in zip(ends, firsts, self.shape, strict=True)
        ]

    def address_step(self, loop: Loop, distance: int = 1) -> Size:
        """By how many elements the address changes when a loop goes from 0 to `distance`; 0 where it ends before."""
        key = (loop.name, distance)
        if key not in self._step:
            if isinstance(loop.extent, int) and loop.extent <= distance:
                self._step[key] = 0
            else:
                changes = self._changes(loop, distance, distance)
                step = absolute(total([c * s for c, s in zip(changes, self.strides, strict=True)]))
                self._step[key] = step * less(distance, loop.extent)
        return self._step[key]

    def reach(self, loop: Loop) -> list[Size]:
        """Distance that each dimension moves while a loop runs, in elements of the dimension."""
        return self._reach[loop.name]

    def moved(self, loop: Loop) -> Size:
        """1 where the access moves with a loop at all, else 0."""
        found = self._moved.get(loop.name)
        if found is None:
            found = self._moved[loop.name] = minimum(1, total(self._reach[loop.name]))
        return found

    def different(self, loop: Loop) -> Size:
        """The iterations of a loop in which the access is at another place: its extent or 1."""
        moved = self.moved(loop)
        return 1 + moved * (loop.extent - 1)


def _both_zero(a: Size, b: Size) -> bool:
    return isinstance(a, int | float) and a == 0 and isinstance(b, int | float) and b == 0


class Footprint:
    """Footprint of an access while a set of loops runs; grown loop by loop."""

    def __init__(self, movement: Movement) -> None:
        self._movement = movement
        self._spans: list[Size] = [1] * len(movement.shape)
        self._different: Size = 1
        self._elements: Size | None = None

    def grow(self, loop: Loop) -> None:
        """Let one more loop run."""
        reach = self._movement.reach(loop)
        self._spans = [s + r for s, r in zip(self._spans, reach, strict=True)]
        self._different = self._different * self._movement.different(loop)
        self._elements = None

    @property
    def spans(self) -> list[Size]:
        """The extent of the touched box in each dimension."""
        return [minimum(s, e) for s, e in zip(self._spans, self._movement.shape, strict=True)]

    @property
    def elements(self) -> Size:
        """Elements touched: those of the box, and no more than there are iterations that move the access."""
        if self._elements is None:
            self._elements = minimum(product(self.spans), self._different)
        return self._elements

    @property
    def size_bytes(self) -> Size:
        """Bytes touched."""
        return self.elements * self._movement.element_bytes

    @property
    def run(self) -> Size:
        """Elements that lie side by side: along the last dimension, and the one before where that is whole."""
        spans, shape = self.spans, self._movement.shape
        if not spans:
            return 1
        run = spans[-1]
        if len(spans) > 1:
            run = run * where(less(spans[-1], shape[-1]), 1, spans[-2])
        return minimum(run, self.elements)

    def lines(self, line_bytes: int) -> Size:
        """Cache lines touched, about: each run of neighbours begins one, and fills more."""
        run_bytes = self.run * self._movement.element_bytes
        return self.elements / self.run * (1 + (run_bytes - 1) // line_bytes)


OfAccess = Callable[[Any, Movement], Size]


def once(function: OfAccess) -> OfAccess:
    """The function of a stage's view and of one of its accesses, computed once for each."""

    def asked(view: Any, movement: Movement) -> Size:
        found = movement.known.get(function)
        if found is None:
            found = movement.known[function] = function(view, movement)
        return found

    return update_wrapper(asked, function)


def footprint(movement: Movement, loops: Iterable[Loop]) -> Footprint:
    """Return the footprint of an access while `loops` run and all others stand still."""
    found = Footprint(movement)
    for loop in loops:
        found.grow(loop)
    return found
