"""The cases of a template: what it does for all configs that answer it the same, found one call at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ...dialects.cached_property import cached_property
from ...dialects.target import Target
from ...passes.collector import collector_paused
from ...passes.parametric.replay import ScheduledNests
from ...passes.pipeline_text import parse_schedule
from ...passes.primitive import ScheduleError
from ...schedule import Schedule
from .config import Config, ConfigSpace
from .knobs.knob import ConfigError
from .limits import limits
from .program import CaseProgram
from .space import Rows
from .symbolic import POSITION, Tracer
from .trace import Trace

Mask = npt.NDArray[np.bool_]

_CHECKED = 3
"""Configs of a case that its program is compared on, beside the first. A choice: each takes a replay of the
template."""
_DRAWN = 256
"""Random configs among which those are looked for: a case of one config in a hundred is met."""
_CAREFUL_FOR = 4
"""Cases that are each checked against single configs; when all of those agreed, so will the others. A choice."""


@dataclass
class Case:
    """A trace and its program; `trusted` where single configs have confirmed it."""

    trace: Trace
    program: CaseProgram
    trusted: bool


class Traceable(Protocol):
    """Interface of a template with arguments and a target to its cases."""

    target: Target
    config_space: ConfigSpace

    @property
    def module(self) -> ModuleOp:
        """The te-level module, with the target."""

    def call(self, config: Config) -> Schedule:
        """The schedule that the template makes of a config, which may be traced."""

    def instantiate(self, config: Sequence[int]) -> Schedule:
        """The schedule of a row, checked."""


class Cases:
    """The cases found so far of one task, and the configs that no case covers as they cannot be scheduled."""

    def __init__(self, task: Traceable) -> None:
        self._task = task
        self._cases: list[Case] = []
        self._refused: set[int] = set()
        self._deciding: list[int] = []
        self._by_choice: dict[tuple[int, ...], Case] = {}
        self._agreed = True

    @cached_property
    def _nests(self) -> ScheduledNests:
        return ScheduledNests(self._task.module, self._task.target)

    def groups(self, rows: Rows) -> Iterator[tuple[Case | None, Rows]]:
        """Each case with the positions of those rows that it covers; None for rows that cannot be scheduled."""
        if not len(rows):
            return
        deciding = self._deciding
        keys, which = _distinct(rows[:, deciding])
        positions: dict[int, list[Rows]] = {}
        found: dict[int, Case | None] = {}
        for number, key in enumerate(keys):
            at = np.flatnonzero(which == number)
            case = self._by_choice.get(key) or self._covering(rows[at])
            if deciding != self._deciding:  # a new case asks for more knobs than those before
                yield from self._merged(found, positions)
                rest = np.flatnonzero(which >= number)
                for other, some in self.groups(rows[rest]):
                    yield other, rest[some]
                return
            if case is not None:
                self._by_choice[key] = case
            found[id(case)] = case
            positions.setdefault(id(case), []).append(at)
        yield from self._merged(found, positions)

    @staticmethod
    def _merged(found: dict[int, Case | None], positions: dict[int, list[Rows]]) -> Iterator[tuple[Case | None, Rows]]:
        for key, case in found.items():
            yield case, np.concatenate(positions[key])

    def _covering(self, rows: Rows) -> Case | None:
        """The case of rows that answer all known conditions alike; found by calling the template where it is new."""
        columns = self._task.config_space.columns(rows[:1])
        for case in self._cases:
            if case.trace.covers(columns, 1)[0]:
                return case
        with collector_paused():
            return next((new for row in rows if (new := self._new(row)) is not None), None)

    def doubt(self, row: Rows) -> None:
        """Examine configs one by one from now on, if one of which no kernel could be made shows a case to be wrong."""
        trusted = [case for case, _ in self.groups(row[None]) if case is not None and case.trusted]
        if all(self._agrees(case, row[None]) for case in trusted):
            return
        self._agreed = False
        for case in self._cases:
            case.trusted = False

    def _new(self, row: Rows) -> Case | None:
        """The case of a row; None where it cannot be scheduled."""
        task = self._task
        index = int(task.config_space.indices(row[None])[0])
        if index in self._refused:
            return None
        tracer = Tracer()
        try:
            schedule = task.call(Config(task.config_space, row, task.target, tracer=tracer))
            trace = Trace.of(tracer, schedule)
            program = CaseProgram(self._nests, trace)
        except (ScheduleError, ConfigError):  # whoever asks for the reason makes it again: it holds the whole IR
            self._refused.add(index)
            return None
        case = Case(trace, program, self._agreed)
        self._cases.append(case)
        asked = {name for condition, _ in trace.conditions for name in _knobs(condition)}
        deciding = [i for i, name in enumerate(task.config_space.names) if i in self._deciding or name in asked]
        if deciding != self._deciding:
            self._deciding, self._by_choice = deciding, {}
        if case.trusted and len(self._cases) <= _CAREFUL_FOR:
            case.trusted = self._agreed = self._is_right(case, row)
        return case

    def _is_right(self, case: Case, row: Rows) -> bool:
        """Compare the steps of a case with those of single configs that it covers, some of them.

        A template may look at a number in a way that Python does not tell, as `range` does.
        """
        space = self._task.config_space
        rows = space.sample(np.random.default_rng(0), _DRAWN)
        for i, name in enumerate(space.names):
            if any(name in _knobs(condition, whole=True) for condition, _ in case.trace.conditions):
                rows[:, i] = row[i]
        columns = space.columns(rows)
        rows = rows[case.trace.covers(columns, len(rows)) & self.keeps_limits(self.usage(case, rows), len(rows), True)]
        return self._agrees(case, np.concatenate([row[None], rows[:_CHECKED]]))

    def _agrees(self, case: Case, rows: Rows) -> bool:
        """Return whether single configs that a case covers have the steps that it says."""
        space = self._task.config_space
        for i, text in enumerate(case.trace.texts(space.columns(rows), len(rows))):
            try:
                made = str(self._task.instantiate(rows[i]).pipeline)
            except (ScheduleError, ConfigError):
                return False
            if made != text and tuple(parse_schedule(made)) != tuple(parse_schedule(text)):
                return False
        return True

    def usage(self, case: Case, rows: Rows) -> dict[str, Rows]:
        """Resource usage of rows that are all covered by a case: the numbers of Usage."""
        return case.program.usage(self._task.config_space.columns(rows), len(rows))

    def keeps_limits(self, taken: Mapping[str, Rows], count: int, estimates: bool) -> Mask:
        """Return which rows `(count,)` keep the limits of the target, and with `estimates` those, by what they take."""
        mask = np.ones(count, dtype=bool)
        for limit in limits(self._task.target, estimates):
            if limit.most:
                mask &= taken[limit.field] <= limit.most
        return mask


def _distinct(rows: Rows) -> tuple[list[tuple[int, ...]], Rows]:
    """The distinct rows, in the order of their first places, and for each row which one it is."""
    if not rows.shape[1]:
        return [()], np.zeros(len(rows), dtype=np.int64)
    keys, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return [tuple(key) for key in keys[order].tolist()], rank[which.reshape(-1)]


def _knobs(condition: object, whole: bool = False) -> set[str]:
    """The knobs that an expression asks for; with `whole`, those whose choice it asks for as a whole."""
    found: set[str] = set()
    waiting = [condition]
    while waiting:
        expr = waiting.pop()
        args: tuple[Any, ...] = getattr(expr, "args", ())
        if getattr(expr, "op", "") == "knob" and (not whole or args[1] == POSITION):
            found.add(str(args[0]))
        waiting += [a for a in args if hasattr(a, "op")]
    return found
