"""Display of tuning a network: a live table on a terminal, a line a round elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from .display import Screen, say
from .progress import trials_of
from .state import SchedulerState

if TYPE_CHECKING:
    from rich.console import Group

HEADINGS = ("ID", "Latency (ms)", "Speed (GFLOPS)", "Trials", "Weight", "Share", "Task", "Errors")
_NUMBERS = 6
"""Columns of numbers, which come first and are aligned on the right."""
_LEAST = 4
"""Characters of a column, at least."""


class SchedulerProgress(Protocol):
    """Shows a SchedulerState as it changes."""

    def start(self, state: SchedulerState) -> None:
        """Begin."""

    def trial(self, state: SchedulerState) -> None:
        """Show that a trial was done or another phase began."""

    def round(self, state: SchedulerState, task: int) -> None:
        """Show that a round of `task` was done."""

    def note(self, text: str) -> None:
        """Say something once."""

    def stop(self, state: SchedulerState) -> None:
        """End, leaving the last state visible."""


def as_text(state: SchedulerState) -> str:
    """Return the table of tasks, with the summary below it."""
    return "\n".join([as_table([HEADINGS, *map(state.cells, state.rows)]), state.summary])


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Return headings and rows between rules."""
    widths = [max(_LEAST, *map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(_aligned, row, widths, range(len(widths)))) + " |" for row in rows]
    rule = "-" * len(lines[0])
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def _aligned(cell: str, width: int, column: int) -> str:
    return f"{cell:>{width}}" if column < _NUMBERS else f"{cell:<{width}}"


class NetworkLines:
    """Plain lines: one a round, and the table at the end and whenever as many rounds as there are tasks passed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rounds = 0

    def start(self, state: SchedulerState) -> None:
        """Say what is to be done."""
        self.note(_intent(state))

    def trial(self, state: SchedulerState) -> None:
        """Say nothing."""

    def round(self, state: SchedulerState, task: int) -> None:
        """Print a line, now and then the table."""
        self.note(_round(state, task))
        self._rounds += 1
        if self._rounds % len(state.rows) == 0:
            self.note(as_text(state))
        else:
            self.note(state.summary)

    def note(self, text: str) -> None:
        """Print `text`."""
        say(self._stream, text)

    def stop(self, state: SchedulerState) -> None:
        """Print the table."""
        self.note(as_text(state))


def _intent(state: SchedulerState) -> str:
    return f"{len(state.rows)} tasks, {trials_of(state.total, state.resumed)}"


def _round(state: SchedulerState, task: int) -> str:
    row = state.rows[task]
    _, latency, speed, trials = row.cells()
    errors = f", errors {row.tuning.error_counts()}" if row.tuning.errors else ""
    return f"task {task} {row.tuning.task}: {latency} ms, {speed} GFLOPS, {trials} trials{errors}"


class NetworkTable:
    """A live table below a line for each round; of many tasks, those that the terminal has room for."""

    def __init__(self, stream: TextIO) -> None:
        self._screen = Screen(stream)

    def start(self, state: SchedulerState) -> None:
        """Begin."""
        self._screen.start()
        self.note(_intent(state))

    def trial(self, state: SchedulerState) -> None:
        """Draw."""
        self._screen.draw(state.phase, lambda: _drawn(state, self._screen.height))

    def round(self, state: SchedulerState, task: int) -> None:
        """Print a line above the table, and draw."""
        self.trial(state)
        self.note(f"{_round(state, task)}; {state.summary}")

    def note(self, text: str) -> None:
        """Print `text` above the table."""
        self._screen.note(text)

    def stop(self, state: SchedulerState) -> None:
        """Leave the whole table."""
        self._screen.stop(lambda: _drawn(state))


_AROUND = 9
"""Lines of a terminal that rows of tasks do not get: title, headings, rules, and up to three of the summary."""


def _drawn(state: SchedulerState, height: int | None = None) -> Group:
    """The table; of a terminal's height at most, with the rows around the task that is tuned."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = f"[ Task Scheduler ]  {state.done}/{state.total} trials: {state.phase}"
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    for number, heading in enumerate((*HEADINGS, "Last")):
        table.add_column(heading, justify="right" if number < _NUMBERS else "left", no_wrap=True)
    first, last = _window(len(state.rows), state.next_task or 0, height)
    for row in state.rows[first:last]:
        tuning = row.tuning
        latest = f"{tuning.last.time_s * 1e3:.4g}" if tuning.last is not None and tuning.last.ok else "-"
        style = "bold" if row.number == state.next_task else None
        table.add_row(*state.cells(row), latest, style=style)
    spent = f"(build {state.build_s:.0f} s, run {state.run_s:.0f} s)"
    part = "" if last - first == len(state.rows) else f"; shown are tasks {first} to {last - 1} of {len(state.rows)}"
    return Group(table, Text(f"{state.summary}  {spent}{part}"))


def _window(count: int, middle: int, height: int | None) -> tuple[int, int]:
    """The half-open range of rows that a terminal has room for, with row `middle` among them."""
    room = count if height is None else max(1, min(count, height - _AROUND))
    first = min(max(0, middle - room // 2), count - room)
    return first, first + room
