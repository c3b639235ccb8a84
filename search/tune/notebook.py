"""Displays of tuning in a notebook: the output of a cell that is replaced as the search goes on."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from ...dialects.markup import as_text, facts, notebook
from ..report.charts import curve_chart
from ..report.group import RecordGroup
from ..report.network import latency_chart
from ..report.notebook import drawing, task_table
from .display import SHARE, say
from .progress import TuningState, clock_text, notes
from .state import SchedulerState

_REFRESH_S = 1.0
"""Seconds between two drawings, at least: each is sent to the browser whole, 180 kB for a curve of 500 trials."""


class Handle(Protocol):
    """The interface of IPython's DisplayHandle: an output of a cell, to be replaced."""

    def update(self, obj: object) -> object: ...


Show = Callable[..., Handle]
"""IPython's `display`, which with `display_id=True` returns a handle."""


def running_notebook() -> Show | None:
    """IPython's `display` where a notebook's kernel runs this process, else None; IPython is never loaded for it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    show: Show = import_module("IPython.display").display
    return show


@dataclass(frozen=True)
class Output:
    """HTML for a cell, and a line for what shows text only."""

    html: str
    line: str

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        return self.html


class Cell:
    """An output of a cell, drawn anew once a second at most, and for a small share of the time."""

    def __init__(self, show: Show, clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._clock = show, clock
        self._handle: Handle | None = None
        self._next_s = 0.0

    def draw(self, make: Callable[[], Output], last: bool = False) -> None:
        """Show what `make` returns in place of what is shown, if it is time for it, or it is the last."""
        began_s = self._clock()
        if self._handle is None:  # before anything is measured; it loads the library that draws
            self._handle = self._show(make(), display_id=True)
            self._next_s = self._clock() + _REFRESH_S
        elif last or began_s >= self._next_s:
            self._handle.update(make())
            ended_s = self._clock()
            self._next_s = ended_s + max(_REFRESH_S, (ended_s - began_s) * (1 / SHARE - 1))


class NotebookChart:
    """The curve of a task's trials, with a bar and the figures of the terminal's display."""

    def __init__(self, show: Show, clock: Callable[[], float] = time.monotonic) -> None:
        self._cell = Cell(show, clock)
        self._state: TuningState | None = None

    def start(self, state: TuningState) -> None:
        """Begin."""
        self._state = state
        self.update(state)

    def update(self, state: TuningState) -> None:
        """Draw, if it is time for it."""
        self._cell.draw(lambda: _task(state))

    def note(self, text: str) -> None:
        """Print `text`."""
        say(sys.stderr, text)

    def stop(self) -> None:
        """Draw the last state."""
        if (state := self._state) is not None:
            self._cell.draw(lambda: _task(state), last=True)


def _task(state: TuningState) -> Output:
    left = "" if state.left_s is None else f", {clock_text(state.left_s)} left"
    head = f"{state.task}: {state.phase}, round {state.round}"
    rows = [(name, text) for name, text in notes(state).items() if text]
    chart = drawing(curve_chart(RecordGroup(state.trials)))
    html = notebook(_bar(head, state.done, state.total, left) + facts(rows) + chart)
    return Output(html, f"{head}, {state.done} of {state.total} trials, best {state.speed(state.best)}")


def _bar(head: str, done: int, total: int, left: str) -> str:
    bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
    return f"<p>{as_text(head)}<br>{bar} {done} of {total} trials{as_text(left)}</p>"


class NotebookTable:
    """The table of a network's tasks, with the curve of its total latency."""

    def __init__(self, show: Show, clock: Callable[[], float] = time.monotonic) -> None:
        self._cell = Cell(show, clock)
        self._totals: list[tuple[float, float]] = []

    def start(self, state: SchedulerState) -> None:
        """Begin."""
        self.trial(state)

    def trial(self, state: SchedulerState) -> None:
        """Draw, if it is time for it."""
        if state.latency_s < math.inf and (not self._totals or self._totals[-1][0] < state.done):
            self._totals.append((float(state.done), state.latency_s))
        self._cell.draw(lambda: self._network(state))

    def round(self, state: SchedulerState, task: int) -> None:
        """Draw, if it is time for it."""
        self.trial(state)

    def note(self, text: str) -> None:
        """Print `text`."""
        say(sys.stderr, text)

    def stop(self, state: SchedulerState) -> None:
        """Draw the last state."""
        self._cell.draw(lambda: self._network(state), last=True)

    def _network(self, state: SchedulerState) -> Output:
        chart = drawing(latency_chart("trial", self._totals, state.done)) if self._totals else ""
        summary = f"<p>{as_text(state.summary)}</p>"
        html = notebook(_bar(state.phase, state.done, state.total, "") + task_table(state) + summary + chart)
        return Output(html, f"{state.phase}: {state.summary}")
