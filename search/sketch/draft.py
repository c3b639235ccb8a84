"""A draft: a sketch on its way, which rules write steps to, with what they ask of the loop nest meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ...backends.forkable import ForkableLock
from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.nest import buffer_name, find_block
from ...passes.analysis.views import is_view
from ...passes.lower.lower_te_to_loop import LowerTeToLoop
from ...passes.open_number import OpenNumber
from ...passes.parametric.nest import Nest
from ...passes.parametric.sizes import Size
from ...passes.pipeline_text import lower_to_loops
from ...passes.primitive import Primitive, ScheduleError
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.rfactor import Rfactor
from ...passes.schedule.split import Split
from ..features.program import Program, program_of_schedule
from .distinct import sorted_rows
from .formula import CostEstimate as CostEstimate
from .formula import Estimate, Formulas
from .hole import Columns, Derived, Hole, Kind, Limit, Number
from .known_seconds import KnownSeconds
from .population import Population, Rows

DRAWN = 512
"""Random candidates from which defaults are chosen by estimate: 10 ms. With 128 and 2048 21 and 18 of 58
default schedules change, in 0.97 and 1.02 of the time (0.77 to 1.61, Zen 3)."""
CHANGED = 8
"""Of these, the ones that are changed in one hole at a time: from one alone, estimates of tiles end 6% higher."""
WORTH_A_CHANGE = 0.99
"""Part of the estimated time down to which a change of one hole is no better: estimates are not as sharp.
With 0.95 five of 58 default schedules change, in 1.01 of the time (Zen 3)."""
ROUNDS, PARENTS, WORTH_ROUNDS = 4, 64, 0.95
"""Rounds in which the best rows are changed a little, in several holes or along an axis, so many that each begins from,
and the part of the estimated time down to which their end is taken: 85 ms an operator. Of 119 operators and layers the
least estimate after one hole at a time is 2.1% above that of 8 rounds, up to 29%; after these it is 0.4%. Sums over
windows alone have them: 14x14x512 to 7x7 takes 1 / 1.7 of the time so, but 2048 cubed 1.22 times as long, 512x4096x4096
1.23, 3136x96 to 288 1.22 (one core of an Emerald Rapids)."""


@dataclass
class Draft:
    """A sketch on its way: each step is applied to a module with the holes' defaults, and kept as text with holes.

    Names of loops, blocks and buffers do not depend on the holes' values, so what is legal for one is for all, the
    primitives taking every factor.
    """

    workload: ModuleOp
    """The te-level module that it is a schedule of."""
    module: ModuleOp
    """The same after the steps so far, with the holes' defaults."""
    parts: list[str] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    """Blocks that a rule has dealt with, and no other one should."""
    names: list[str] = field(default_factory=list)
    """The structures that rules have chosen: together the sketch's name."""
    models: list[CostEstimate] = field(default_factory=list)
    """Estimates of what rules have scheduled; their sum orders the sketches."""
    sure: int = 0
    """Number of these that tell candidates apart better than the cost model that ships."""
    unseen: int = 0
    """Number of these whose structure that cost model has seen none of."""
    formulas: Formulas = field(default_factory=Formulas)
    """Those of limits and models, which copies share."""
    in_rounds: bool = False
    """True where defaults are what becomes of candidates in rounds, however little is gained by the estimate."""
    rest: Iterator[object] | None = None
    """Steps that are planned and not done, for which there are numbers, limits and models already; see `finish`."""
    is_refused: bool = False
    """True where one of these was not legal."""
    seen: dict[int, str] = field(default_factory=dict)
    """Steps that the cost model that ships has seen otherwise: their places among `parts`, and the text there for it,
    empty for none."""
    may_plan: bool = True
    """False where steps are to be done at once, so that a structure with one that is refused is left out."""
    _finishing: ForkableLock = field(default_factory=ForkableLock, repr=False, compare=False)
    """Held while planned steps are done: another thread waits for all of them."""

    @classmethod
    def of(cls, module: ModuleOp, may_plan: bool = True) -> Draft:
        """Start from a copy of a te-level module."""
        draft = cls(module, module.clone(), may_plan=may_plan)
        lower_to_loops(draft.module)
        draft.parts.append(str(LowerTeToLoop()))
        return draft

    def copy(self) -> Draft:
        """A draft that can go another way, of one without planned steps."""
        assert self.rest is None
        return Draft(
            self.workload,
            self.module.clone(),
            [*self.parts],
            [*self.holes],
            [*self.derived],
            [*self.limits],
            {*self.settled},
            [*self.names],
            [*self.models],
            self.sure,
            self.unseen,
            self.formulas,
            self.in_rounds,
            seen={**self.seen},
            may_plan=self.may_plan,
        )

    def with_steps(self, write: Callable[[Draft], object]) -> Draft | None:
        """A copy of the draft that `write` has done steps on; None where a primitive refuses one."""
        grown = self.copy()
        try:
            write(grown)
        except ScheduleError:
            return None
        return grown

    def with_plan(
        self, write: Callable[[Draft], Iterator[object]], by_estimate: bool = False, rounds: int = 0
    ) -> Draft | None:
        """As `with_legal_steps`, where `write` does steps behind its `yield` when `finish` asks for them.

        Most structures of a workload are left out by their estimates. By its `yield` all that is to be searched is
        known, and what it has `settled` are the blocks that there are and that it schedules.
        """
        begun: list[Iterator[object]] = []

        def plan(grown: Draft) -> None:
            begun.append(write(grown))
            next(begun[0])
            assert grown.models, "what is planned has an estimate"

        grown = self.with_legal_steps(plan, by_estimate, rounds)
        if grown is None:
            return None
        grown.rest = begun[0]
        return grown if self.may_plan or grown.finish() else None

    def finish(self) -> bool:
        """Do the steps that are planned, if there are any; False where a primitive has refused one.

        False ever after, too, where something else has ended them, as Ctrl-C does, or a fork in a child while another
        thread did them: the draft is half changed.
        """
        with self._finishing:
            rest, self.rest = self.rest, None
            if rest is None:
                return not self.is_refused
            self.is_refused = True
            with suppress(ScheduleError):
                for _ in rest:
                    pass
                self.is_refused = False
            return not self.is_refused

    @property
    def is_planned(self) -> bool:
        """True where steps that are not done yet schedule all that no rule has settled."""
        return self.rest is not None and all(block.block_name in self.settled for block in blocks_in(self.module))

    def with_legal_steps(
        self, write: Callable[[Draft], object], by_estimate: bool = False, rounds: int = 0
    ) -> Draft | None:
        """As `with_steps`, with legal defaults: those of the holes, or what the models like best; None without any.

        With `by_estimate`, and where all of them are sure, the models choose the defaults even where those of the holes
        are legal, in some `rounds`.
        """
        grown = self.with_steps(write)
        if grown is None:
            return None
        chosen = by_estimate or 0 < grown.sure == len(grown.models)
        return grown if (grown.choose_defaults(rounds) if chosen else grown.make_defaults_legal()) else None

    def hole(self, name: str, choices: tuple[int, ...], default: int, kind: Kind = "tile", axis: str = "") -> Hole:
        """A new hole, as `Hole` has it; its default is made one of the choices."""
        hole = Hole.near(name, choices, default, kind, axis)
        self.add(hole)
        return hole

    def derive(self, name: str, function: Callable[[Columns], npt.NDArray[np.int64]]) -> Derived:
        """A new derived number."""
        derived = Derived.of(name, function, (*self.holes, *self.derived))
        self.add(derived)
        return derived

    def add(self, *numbers: Hole | Derived) -> None:
        """New holes and derived numbers, as a plan has them."""
        for number in numbers:
            self._require_new(number.name)
            if isinstance(number, Hole):
                self.holes.append(number)
            else:
                self.derived.append(number)

    def _require_new(self, name: str) -> None:
        """ValueError where a number of this name is there, or where a schedule's text cannot hold the name."""
        if not re.fullmatch(r"\w+", name, re.ASCII):
            raise ValueError(f"a hole's name is letters, digits and _, as a schedule's text has it, got '{name}'")
        taken = {hole.name for hole in self.holes} | {number.name for number in self.derived}
        if name in taken:
            raise ValueError(f"a sketch has one hole or derived number of a name, '{name}' is there already")

    @property
    def population(self) -> Population:
        """The candidates so far."""
        return Population(tuple(self.holes), tuple(self.derived), tuple(self.limits), self.formulas)

    @property
    def estimate(self) -> Estimate:
        """The sum of the models' estimates."""
        return Estimate(tuple(self.models), (*self.holes, *self.derived), self.formulas)

    @property
    def default_seconds(self) -> float:
        """Return what the models estimate of the defaults."""
        population = self.population
        return float(self._seconds(population, population.default[None])[0])

    def make_defaults_legal(self) -> bool:
        """Move defaults that break a limit to the candidate that the models like best; False where there is none."""
        population = self.population
        if population.legal(population.default[None])[0]:
            return True
        rows = population.sample(np.random.default_rng(0), 256)
        if not len(rows):
            return False
        self._set_defaults(rows[int(np.argmin(self._seconds(population, rows)))], population)
        return True

    def choose_defaults(self, rounds: int = 0) -> bool:
        """Move the defaults to the candidate that the models estimate to be the fastest; False where none is legal.

        The best ones of the defaults and random candidates are changed in one hole after the other while that helps.
        Where what becomes of these in some `rounds` is estimated to be much faster, it is taken.
        """
        population = self.population
        seconds = KnownSeconds(partial(self._seconds, population))
        drawn = np.concatenate([population.default[None], population.sample(np.random.default_rng(0), DRAWN)])
        best = _descended(population, seconds, drawn)
        if not len(best):
            return False
        if rounds or self.in_rounds:
            legal = np.concatenate([best, drawn[population.legal(drawn)]])
            others = _changed_in_rounds(population, seconds, legal, rounds or ROUNDS)
            worth = 1.0 if self.in_rounds else WORTH_ROUNDS
            if seconds(others).min() <= worth * seconds(best[:1])[0]:
                best = _descended(population, seconds, others)
        self._set_defaults(best[0], population)
        return True

    def _seconds(self, population: Population, rows: Rows) -> npt.NDArray[np.float64]:
        """Seconds of some candidates by the estimates of all models."""
        return self.estimate.of_rows(population, rows)

    def _set_defaults(self, row: Rows, population: Population) -> None:
        chosen = population.with_default(row)
        self.holes, self.derived = [*chosen.holes], [*chosen.derived]

    # -- the loop nest ------------------------------------------------------------------------------------------------

    def block(self, name: str) -> BlockOp:
        """The block called `name`, as the steps so far have left it."""
        return find_block(None, self.module, name)

    def loops(self, name: str, below: str = "") -> list[str]:
        """The loops around a block, outermost first; with `below` those inside of that one."""
        names = [loop.loop_name for loop in self.block(name).enclosing_loops]
        return names[names.index(below) + 1 :] if below else names

    def sizes(self, name: str) -> dict[str, int]:
        """The extent of each loop around a block, outermost first."""
        return {loop.loop_name: loop.size for loop in self.block(name).enclosing_loops}

    def program(self, target: Target, asked: Callable[[Nest], Sequence[Size]]) -> Program:
        """Compile quantities of the nest that the steps so far make, over the numbers that are open in them."""
        return program_of_schedule(self.workload, target, self.template, asked)

    # -- steps on it --------------------------------------------------------------------------------------------------

    def do(self, kind: type[Primitive[Any]], **options: object) -> None:
        """Apply a step, whose options may hold holes and derived numbers, also in tuples and in lists of text parts."""
        kind(**{key: _with_numbers(value, False) for key, value in options.items()}).run(self.module)
        self.parts.append(str(kind(**{key: _with_numbers(value, True) for key, value in options.items()})))

    def do_unseen(self, instead: Primitive[Any] | None, kind: type[Primitive[Any]], **options: object) -> None:
        """Apply a step that samples of the cost model that ships have not: candidates are described to it with another.

        That has `instead` in its place, or nothing. Both are such that the same later steps are legal. A model that is
        trained on samples of the step has seen it: `do` takes the place of this then.
        """
        self.do(kind, **options)
        self.seen[len(self.parts) - 1] = "" if instead is None else str(instead)

    def tried(self, kind: type[Primitive[Any]], name: str, **options: object) -> bool:
        """Apply a step to a block; where it is refused, leave the block to later rules and return False."""
        try:
            self.do(kind, block=name, **options)
        except ScheduleError:
            self.settled.discard(name)
            return False
        return True

    def order(self, name: str, wanted: Sequence[str]) -> None:
        """Reorder loops of a block, where they do not stand so already; others stay in their places."""
        if [loop for loop in self.loops(name) if loop in wanted] != list(wanted):
            self.do(Reorder, block=name, loops=tuple(wanted))

    def fuse(self, name: str, loops: Sequence[str]) -> str:
        """Make neighbouring loops of a block one, where they are several; its name, "" for none.

        That is not theirs joined where another loop around has that name. Loops of one iteration between go around.
        """
        if len(loops) < 2:
            return "".join(loops)
        sizes, around = self.sizes(name), self.loops(name)
        between = [n for n in around[around.index(loops[0]) : around.index(loops[-1])] if n not in loops]
        if between and all(sizes[n] == 1 for n in between):
            self.order(name, (*between, *loops))
        place = self.loops(name).index(loops[0])
        self.do(Fuse, block=name, loops=tuple(loops))
        return self.loops(name)[place]

    def split(self, name: str, loop: str, factors: tuple[Number, ...]) -> list[str]:
        """Split a loop of a block; what it becomes, whose usual names others around may have taken."""
        place = self.loops(name).index(loop)
        self.do(Split, block=name, loop=loop, factors=factors)
        return self.loops(name)[place : place + len(factors)]

    def partial(self, name: str, loop: str, axis: int | None = None) -> str:
        """Partial results over a loop, by `rfactor`; the new block that computes them, which is settled."""
        before = {block.block_name for block in blocks_in(self.module)}
        self.do(Rfactor, block=name, loop=loop, axis=axis)
        (made,) = {block.block_name for block in blocks_in(self.module)} - before
        self.settled.add(made)
        return made

    def inline_view(self, buffer: str) -> None:
        """Put the view that writes a buffer into the copies that read it; there may be none."""
        for block in [b for b in blocks_in(self.module) if is_view(b)]:
            if buffer in map(buffer_name, block.outputs):
                self.do(ComputeInline, block=block.block_name)

    @property
    def template(self) -> str:
        return ",".join(self.parts)

    @property
    def seen_template(self) -> str:
        """The template with the steps that the cost model that ships has seen."""
        shown = (self.seen.get(place, part) for place, part in enumerate(self.parts))
        return ",".join(part for part in shown if part)


def _with_numbers(value: object, as_open: bool) -> object:
    """An option with holes and derived numbers as their defaults, or as open numbers."""
    if isinstance(value, Hole | Derived):
        return OpenNumber(value.name, value.default) if as_open else value.default
    if isinstance(value, list):
        return "".join(str(_with_numbers(v, as_open)) for v in value)
    if isinstance(value, tuple):
        return tuple(_with_numbers(v, as_open) for v in value)
    return value


def _descended(population: Population, seconds: KnownSeconds, rows: Rows) -> Rows:
    """The rows of the least estimate, the best first, changed in one hole after the other while that helps."""
    least = np.inf
    while len(rows := rows[population.legal(rows)]):
        found = seconds(rows)
        best = rows[np.argsort(found, kind="stable")[:CHANGED]]
        if not found.min() < min(least, least * WORTH_A_CHANGE):  # where it is 0 or no number nothing is less
            return best
        least = found.min()
        rows = np.concatenate([_changed_in_one_place(row, population.sizes) for row in best])
    return rows


def _changed_in_rounds(population: Population, seconds: KnownSeconds, rows: Rows, rounds: int) -> Rows:
    """Legal rows, and what becomes of the best when they are changed a little, in rounds."""
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        best = rows[np.argsort(seconds(rows), kind="stable")[:PARENTS]]
        changed = population.mutate(rng, np.repeat(best, -(-DRAWN // len(best)), axis=0))
        rows = sorted_rows(np.concatenate([best, changed[population.legal(changed)]]))
    return rows


def _changed_in_one_place(row: Rows, sizes: Rows) -> Rows:
    """Return the row, and it with another choice of one hole, for each hole and choice."""
    places = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.repeat(row[None], 1 + len(places), axis=0)
    rows[np.arange(1, len(rows)), places] = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows
