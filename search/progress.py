"""What people see while a task is tuned: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

from .records import Record

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


@dataclass
class TuningState:
    """How far tuning a task has come; times are in seconds, `flop` is the floating-point operations of one run."""

    task: str
    total: int
    flop: float = 0.0
    done: int = 0
    resumed: int = 0
    best: Record | None = None
    best_trial: int = 0
    default: Record | None = None
    last: Record | None = None
    errors: Counter[str] = field(default_factory=Counter)
    phase: str = "starting"
    search_s: float = 0.0
    build_s: float = 0.0
    run_s: float = 0.0
    started_s: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """Seconds since tuning began, resumed trials apart."""
        return time.monotonic() - self.started_s

    def speed(self, record: Record | None) -> str:
        """Return a record's speed as people read it: GFLOP/s where the operations are known, else the time."""
        if record is None or not record.ok:
            return "-"
        if not self.flop:
            return f"{record.time_s * 1e3:.4g} ms"
        return f"{self.flop / record.time_s / 1e9:.1f} GFLOP/s ({record.time_s * 1e3:.4g} ms)"

    def error_counts(self) -> str:
        """Return the failures by code, the most frequent first."""
        return ", ".join(f"{count} {code}" for code, count in self.errors.most_common()) or "none"


class Progress(Protocol):
    """Shows a TuningState as it changes."""

    def start(self, state: TuningState) -> None:
        """Begin."""

    def update(self, state: TuningState) -> None:
        """Show that something changed: a trial was done or another phase began."""

    def note(self, text: str) -> None:
        """Say something once."""

    def stop(self) -> None:
        """End, leaving the last state visible."""


class Silent:
    """Shows nothing."""

    def start(self, state: TuningState) -> None:
        """Begin."""

    def update(self, state: TuningState) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def stop(self) -> None:
        """End."""


class Lines:
    """Plain lines: one whenever the best improves, and one every `every` trials."""

    def __init__(self, stream: TextIO, every: int = 16) -> None:
        self._stream = stream
        self._every = every
        self._shown = 0
        self._best: Record | None = None
        self._state: TuningState | None = None

    def start(self, state: TuningState) -> None:
        """Begin."""
        self._state, self._shown, self._best = state, state.done, state.best
        resumed = f", {state.resumed} of them from the records" if state.resumed else ""
        self.note(f"{state.task}: {state.total} trials{resumed}")

    def update(self, state: TuningState) -> None:
        """Print a line if there is something to tell."""
        if state.best is self._best and state.done - self._shown < self._every:
            return
        self._best = state.best
        self._line(state)

    def note(self, text: str) -> None:
        """Print `text`."""
        print(text, file=self._stream, flush=True)

    def stop(self) -> None:
        """Print the last line."""
        if self._state is not None and self._state.done != self._shown:
            self._line(self._state)

    def _line(self, state: TuningState) -> None:
        self._shown = state.done
        split = f"search {state.search_s:.1f}, build {state.build_s:.1f}, run {state.run_s:.1f}"
        self.note(
            f"{state.task} {state.done}/{state.total}: best {state.speed(state.best)}, last {state.speed(state.last)}, "
            f"errors {state.error_counts()}, {state.elapsed_s:.1f} s ({split})"
        )


class LiveTable:
    """A live table, drawn anew at each change; no thread redraws it, so that it does not disturb measuring."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None

    def start(self, state: TuningState) -> None:
        """Begin."""
        from rich.console import Console
        from rich.live import Live

        self._live = Live(self._table(state), console=Console(file=self._stream), auto_refresh=False)
        self._live.start(refresh=True)

    def update(self, state: TuningState) -> None:
        """Draw."""
        if self._live is not None:
            self._live.update(self._table(state), refresh=True)

    def note(self, text: str) -> None:
        """Print `text` above the table."""
        if self._live is not None and self._live.is_started:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._stream, flush=True)

    def stop(self) -> None:
        """Leave the table as it is."""
        if self._live is not None:
            self._live.stop()

    def _table(self, state: TuningState) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE, title=f"{state.task}: {state.phase}", title_justify="left")
        for column in ("trials", "best", "last", "untuned", "errors", "elapsed", "search / build / run"):
            table.add_column(column)
        table.add_row(
            f"{state.done}/{state.total}",
            state.speed(state.best),
            state.speed(state.last),
            state.speed(state.default),
            state.error_counts(),
            f"{state.elapsed_s:.1f} s",
            f"{state.search_s:.1f} / {state.build_s:.1f} / {state.run_s:.1f} s",
        )
        return table


def make_progress(stream: TextIO | None = None) -> Progress:
    """Return the display that suits `stream` (standard error if None)."""
    stream = sys.stderr if stream is None else stream
    return LiveTable(stream) if stream.isatty() else Lines(stream)
