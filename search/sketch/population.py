"""Populations of candidates as integer matrices: drawn within the limits, changed a little, crossed, carried over.

A row holds, for each hole, a position in its choices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ..features.native import Picked, place_of
from .changes import Choices
from .formula import Formulas
from .hole import Columns, Derived, Hole, KnownColumns, Limit

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

WEIGHTS: Mapping[str, float] = {"tile": 1.0, "threads": 1.0, "vector": 0.7, "unroll": 0.5, "stages": 0.5, "parts": 0.7}
"""Weight of changes by a hole's kind; tiles matter most (the auto-schedulers' mutators weigh them with 0.9)."""
_ENUMERATED = 4096
"""Holes with up to so many combinations are written out rather than drawn from. A choice: a table of some 100 KB."""
_FEWEST = 512
"""Rows that are drawn at a time, at least. A choice: a call for fewer takes no less."""
_BATCHES = 6
"""Times that rows are drawn where a limit refuses most of them. A choice: each is as large as the share of legal rows
so far asks for; what is still missing comes by `_WALK`."""
_WALK = 16
"""Steps of random changes from legal rows that make up for what was not drawn. A choice: a row has some ten holes, each
changed once or twice."""


@dataclass(frozen=True)
class Group:
    """Holes that limits tie together, by position, and those limits: each anchor of a workload has its own."""

    members: tuple[int, ...]
    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Population:
    """Space of a sketch's rows: its holes, the numbers that follow from them, and its limits."""

    holes: tuple[Hole, ...]
    derived: tuple[Derived, ...]
    limits: tuple[Limit, ...]
    formulas: Formulas = field(default_factory=Formulas, compare=False, repr=False)
    """Those of limits and estimates of such populations."""

    @property
    def _numbers(self) -> tuple[Hole | Derived, ...]:
        return (*self.holes, *self.derived)

    @cached_property
    def sizes(self) -> Rows:
        """The number of choices of each hole, `(d,)`."""
        return np.array([len(h.choices) for h in self.holes], dtype=np.int64)

    @property
    def default(self) -> Rows:
        """The row of the holes' defaults, `(d,)`."""
        return np.array([h.choices.index(h.default) for h in self.holes], dtype=np.int64)

    def columns(self, rows: Rows) -> dict[str, npt.NDArray[np.int64]]:
        """The values of holes for each row, and of derived numbers once they are asked for."""
        return _Columns({h.name: self._values[i].take(rows[:, i]) for i, h in enumerate(self.holes)}, self.derived)

    def picked(self, rows: Rows, places: Mapping[str, int] | None = None) -> Picked:
        """The values of holes as programs pick them; rows are of those that are at some `places` in them, or of all."""
        own = self._places
        known = {n: (place, own[n]) for n, place in places.items()} if places else self._own_places
        return Picked(rows, self._choices, known, known_table=self._table)

    def all_columns(self, rows: Rows) -> dict[str, npt.NDArray[np.int64]]:
        """The values of holes and derived numbers for each row."""
        columns = self.columns(rows)
        for number in self.derived:
            columns[number.name]
        return columns

    def legal(self, rows: Rows) -> Mask:
        """Return the mask of rows that keep all limits."""
        return self._keeping(rows, self.limits, self._places)

    def _keeping(self, rows: Rows, asked_of: Sequence[Limit], places: Mapping[str, int]) -> Mask:
        """Return the mask of rows that keep limits; each of these is asked about what the ones before leave of them.

        Rows are of the holes that are at some `places` in them; others have their defaults.
        """
        if asked_of and (formula := self.formulas.of_limits(asked_of, self._numbers, len(rows))) is not None:
            picked = self.picked(rows, places) if formula.columns <= places.keys() else _Asked(self, rows, places)
            return np.asarray(formula(picked, len(rows)) != 0)
        rows = self._around_default(rows, [self._places[name] for name in places])
        left, asked, columns = np.arange(len(rows)), len(rows), self.columns(rows)
        for limit in asked_of:
            if not len(left):
                break
            if len(left) < asked:
                asked, columns = len(left), self.columns(rows[left])
            left = left[np.broadcast_to(limit(columns), left.shape)]
        mask = np.zeros(len(rows), dtype=bool)
        mask[left] = True
        return mask

    @property
    def every(self) -> Rows:
        """All rows, legal or not, in order: for few holes of few choices."""
        return _every(self.sizes)

    def with_default(self, row: Rows) -> Population:
        """The same population with the values of a row `(d,)` as the defaults of holes and derived numbers."""
        holes = tuple(replace(h, default=h.choices[i]) for h, i in zip(self.holes, row, strict=True))
        chosen = self.columns(row[None])
        derived = tuple(replace(number, default=int(chosen[number.name][0])) for number in self.derived)
        return Population(holes, derived, self.limits, self.formulas)

    # -- groups of holes ----------------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> list[Group]:
        """The holes in as many parts as can be drawn independently of each other."""
        leader = list(range(len(self.holes)))
        read = [(limit, self._read_by(limit)) for limit in self.limits]
        for _, used in read:
            for member in used[1:]:
                old, new = leader[member], leader[used[0]]
                leader = [new if one == old else one for one in leader]
        found = []
        for first in sorted(set(leader)):
            members = tuple(i for i, one in enumerate(leader) if one == first)
            found.append(Group(members, tuple(limit for limit, used in read if used and used[0] in members)))
        return found

    def _read_by(self, limit: Limit) -> list[int]:
        """The positions of the holes that a limit reads; all of them where it does not say by asking for names."""
        names = {h.name: i for i, h in enumerate(self.holes)}
        functions = {number.name: number.function for number in self.derived}
        found: set[int] = set()
        waiting: list[Callable[[Columns], object]] = [limit]
        while waiting:
            record = _Recorder(self.all_columns(self.default[None]))
            waiting.pop()(record)
            found |= {names[n] for n in record.asked if n in names}
            waiting += [functions.pop(n) for n in record.asked if n in functions]
        return sorted(found) or list(range(len(self.holes)))

    # -- drawing ------------------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Random rows `(n, d)` that keep all limits; none where none was found."""
        rows = np.empty((n, len(self.holes)), dtype=np.int64)
        for number, group in enumerate(self.groups):
            found = self._drawn(rng, number, group, n)
            if not len(found):
                return rows[:0]
            rows[:, group.members] = found
        return rows

    def _drawn(self, rng: np.random.Generator, number: int, group: Group, n: int) -> Rows:
        """Random values of a group's holes `(n, k)` that keep its limits."""
        if number in self._written_out:
            every = self._written_out[number]
            return every[rng.integers(len(every), size=n)] if len(every) else every
        drawn_of = self._drawn_of(group, n)
        if drawn_of is None:
            found = self._tried(rng, group, n)
            return found[:n] if len(found) >= n else self._walked(rng, found, group, n)
        known = self.formulas.drawn
        found = known.get(rng, drawn_of, lambda: self._tried(rng, group, n))
        if len(found) >= n:
            return found[:n]
        return known.get(rng, (drawn_of, self.holes, group.members), lambda: self._walked(rng, found, group, n))

    def _drawn_of(self, group: Group, n: int) -> Hashable | None:
        """A key of `n` rows of a group that are drawn by one generator; None where nobody knows what they depend on."""
        formula = self.formulas.of_limits(group.limits, self._numbers, max(_FEWEST, n)) if group.limits else None
        holes = [self.holes[member] for member in group.members]
        if formula is None or not formula.columns <= {hole.name for hole in holes}:
            return None
        return formula.text, tuple((hole.name, hole.choices) for hole in holes), n

    def _tried(self, rng: np.random.Generator, group: Group, n: int) -> Rows:
        """Random values of a group's holes, of which those are left that keep its limits: `n` or more, or too few."""
        members = list(group.members)
        found = np.empty((0, len(members)), dtype=np.int64)
        places = {self.holes[member].name: place for place, member in enumerate(members)}
        batch = max(_FEWEST, n)
        for _ in range(_BATCHES if group.limits else 1):
            rows = _drawn_below(rng, batch, self.sizes[members])
            found = np.concatenate([found, rows.compress(self._keeping(rows, group.limits, places), axis=0)])
            if len(found) >= n:
                break
            batch = int(np.clip(1.2 * n * batch / max(1, len(found)), _FEWEST, 4 * n + _FEWEST))
        return found

    def _walked(self, rng: np.random.Generator, found: Rows, group: Group, n: int) -> Rows:
        """More rows from few: each a random walk within the limits, from one that was drawn or from the default."""
        members = list(group.members)
        default = self.default[None]
        if self._keeping(default, group.limits, self._places)[0]:
            found = np.concatenate([found, default[:, members]])
        if not len(found):
            return found
        walkers = self._around_default(found[np.arange(n) % len(found)], members)
        moving = np.arange(len(found) if len(found) < n else n, n)
        for _ in range(_WALK):
            moved = self.mutate(rng, walkers.take(moving, axis=0), members)
            kept = np.flatnonzero(self._keeping(moved, group.limits, self._places))
            walkers[moving.take(kept)] = moved.take(kept, axis=0)
        return walkers[rng.permutation(n)][:, members]

    def _around_default(self, part: Rows, members: Sequence[int]) -> Rows:
        """Rows of the defaults but for the holes of `part`, which are some `members`."""
        if len(members) == len(self.holes):
            return part
        rows = np.repeat(self.default[None], len(part), axis=0)
        rows[:, members] = part
        return rows

    @cached_property
    def _written_out(self) -> dict[int, Rows]:
        """Return the legal values of the groups that are small enough, `(n, k)` each, by the group's number."""
        found = {}
        for number, group in enumerate(self.groups):
            members = list(group.members)
            if np.prod(self.sizes[members].astype(float)) <= _ENUMERATED:
                every = _every(self.sizes[members])
                around = self._around_default(every, members)
                found[number] = every[self._keeping(around, group.limits, self._places)]
        return found

    # -- changing -----------------------------------------------------------------------------------------------------

    def mutate(self, rng: np.random.Generator, rows: Rows, members: Sequence[int] | None = None) -> Rows:
        """Each row with one or two decisions moved, to a neighbour or anywhere, or a factor moved between two tiles."""
        rows = np.array(rows, order="C")
        shares = self._shares(None if members is None else tuple(members))
        if len(rows) and len(shares):
            self._changes.change(rng, rows, shares)
        return rows

    def _shares(self, members: tuple[int, ...] | None) -> npt.NDArray[np.float64]:
        """For each hole the chance that a change is in it or one before it, or in one of some; none without choices."""
        if members not in self._known_shares:
            weights = self._weights
            if members is not None:
                weights = weights * np.isin(np.arange(len(self.holes)), members)
            shares = np.cumsum(weights / weights.sum()) if weights.any() else weights[:0]
            self._known_shares[members] = shares / shares[-1:]
        return self._known_shares[members]

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        """Rows that take each axis, with all its tiles, from `a` or from `b`; half of them each group of holes."""
        by_axis = (rng.random((len(a), self._units.max(initial=0) + 1)) < 0.5)[:, self._units]
        by_group = (rng.random((len(a), self._group_of.max(initial=0) + 1)) < 0.5)[:, self._group_of]
        mask = np.where((rng.random(len(a)) < 0.5)[:, None] & (len(self.groups) > 1), by_group, by_axis)
        return np.where(mask, a, b)

    def adopt(self, rng: np.random.Generator, other: Population, rows: Rows) -> Rows:
        """Rows of another sketch as rows of this one: holes of the same name keep their values, the rest is drawn."""
        made = self.sample(rng, len(rows))
        rows = rows[: len(made)]
        theirs = {h.name: i for i, h in enumerate(other.holes)}
        for position, hole in enumerate(self.holes):
            if hole.name not in theirs:
                continue
            values = other._logs[theirs[hole.name], rows[:, theirs[hole.name]]]
            made[:, position] = np.argmin(np.abs(self._logs[position][None] - values[:, None]), axis=1)
        return made

    # -- what is derived once -----------------------------------------------------------------------------------------

    @cached_property
    def _values(self) -> list[npt.NDArray[np.int64]]:
        return [np.asarray(h.choices, dtype=np.int64) for h in self.holes]

    @cached_property
    def _choices(self) -> npt.NDArray[np.float64]:
        """The choices, `(d, most choices)`, as programs take them; 0 beyond the last."""
        choices = np.zeros((len(self.holes), int(self.sizes.max(initial=1))))
        for i, values in enumerate(self._values):
            choices[i, : len(values)] = values
        return choices

    @cached_property
    def _places(self) -> dict[str, int]:
        """The position of each hole by its name."""
        return {hole.name: i for i, hole in enumerate(self.holes)}

    @cached_property
    def _table(self) -> int:
        return place_of(self._choices)

    @cached_property
    def _own_places(self) -> dict[str, tuple[int, int]]:
        """For each hole its position in rows of all, twice: where programs pick it, and whose choices."""
        return {name: (place, place) for name, place in self._places.items()}

    @cached_property
    def _logs(self) -> npt.NDArray[np.float64]:
        """The logarithms of the choices, `(d, most choices)`, infinite beyond the last."""
        logs = np.full((len(self.holes), int(self.sizes.max(initial=1))), np.inf)
        for i, values in enumerate(self._values):
            logs[i, : len(values)] = np.log2(np.maximum(values, 0.5))
        return logs

    @cached_property
    def _weights(self) -> npt.NDArray[np.float64]:
        """Probability with which each hole changes; 0 where there is nothing to choose."""
        return np.array([WEIGHTS.get(h.kind, 1.0) * (len(h.choices) > 1) for h in self.holes])

    @cached_property
    def _partners(self) -> Rows:
        """The other tiles of each hole's axis, `(d, most)`, filled up with -1."""
        found = [
            [j for j, other in enumerate(self.holes) if j != i and hole.axis and other.axis == hole.axis]
            for i, hole in enumerate(self.holes)
        ]
        partners = np.full((len(found), max([1, *map(len, found)])), -1, dtype=np.int64)
        for i, others in enumerate(found):
            partners[i, : len(others)] = others
        return partners

    @cached_property
    def _known_shares(self) -> dict[tuple[int, ...] | None, npt.NDArray[np.float64]]:
        """Those of `_shares`."""
        return {}

    @cached_property
    def _changes(self) -> Choices:
        return Choices(self.sizes, self._logs, self._partners)

    @cached_property
    def _units(self) -> Rows:
        """A number for each hole, the same for tiles of one axis."""
        labels = [h.axis or h.name for h in self.holes]
        return np.array([labels.index(label) for label in labels], dtype=np.int64)

    @cached_property
    def _group_of(self) -> Rows:
        numbers = np.zeros(len(self.holes), dtype=np.int64)
        for number, group in enumerate(self.groups):
            numbers[list(group.members)] = number
        return numbers


def _drawn_below(rng: np.random.Generator, count: int, sizes: Rows) -> Rows:
    """Random numbers below each of some sizes, `(count, k)`."""
    several = np.flatnonzero(sizes > 1)
    drawn = _below(rng, sizes[several], (count, len(several)))
    if len(several) == len(sizes):
        return drawn
    found = np.zeros((count, len(sizes)), dtype=np.int64)
    found[:, several] = drawn
    return found


def _below(rng: np.random.Generator, sizes: Rows, shape: tuple[int, ...]) -> Rows:
    """Random numbers below sizes of at least 2, by one product each.

    They are those that `integers` gives for as many bounds, in 40% of its time, but where that draws again, as it does
    for fewer than one of 10^8, so that all are as likely.
    """
    found = np.asarray(rng.integers(0, 1 << 32, size=shape, dtype=np.uint32) * sizes)
    found >>= 32
    return found


def _every(sizes: Rows) -> Rows:
    """The positions of all combinations of choices `(product of sizes, d)`, the last hole's the fastest."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, sizes), indexing="ij")], axis=1)


class _Columns(KnownColumns):
    """Columns of holes, to which derived numbers are added when they are first asked for."""

    def __init__(self, holes: Mapping[str, npt.NDArray[np.int64]], derived: Sequence[Derived]) -> None:
        super().__init__(holes)
        self._derived = derived

    def __missing__(self, name: str) -> npt.NDArray[np.int64]:
        number = next((each for each in self._derived if each.name == name), None)
        if number is None:
            raise KeyError(name)
        found = self[name] = number.function(self)
        return found


class _Asked(dict[str, npt.NDArray[np.int64]]):
    """Columns of holes, each made when it is asked for, of rows of the holes that are at some `places` in them.

    Others, which a limit may ask for where it does not at the defaults, have these.
    """

    def __init__(self, population: Population, rows: Rows, places: Mapping[str, int]) -> None:
        super().__init__()
        self._population = population
        self._rows = rows
        self._at = places

    def __missing__(self, name: str) -> npt.NDArray[np.int64]:
        place = self._population._places[name]
        if name not in self._at:
            return np.full(len(self._rows), self._population.holes[place].default, dtype=np.int64)
        return self._population._values[place].take(self._rows[:, self._at[name]])


class _Recorder(dict[str, npt.NDArray[np.int64]]):
    """Columns that remember which of them were asked for."""

    def __init__(self, columns: Mapping[str, npt.NDArray[np.int64]]) -> None:
        super().__init__(columns)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        self.asked.add(name)
        return super().__getitem__(name)
