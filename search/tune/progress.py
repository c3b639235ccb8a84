"""Progress of tuning a task, and its display: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

from ..cost_model.ranking import RankingQuality, ranking_quality
from ..records.file import Record
from ..records.record import duration
from .display import Screen, say

_SPARKS = 40
"""Bars of the line that shows the best by trial: a narrow terminal has room for them."""
_BARS = "▁▂▃▄▅▆▇█"
_TELLING = 8
"""Candidates of a round that is not over yet, below which its ranking says little. A choice."""

if TYPE_CHECKING:
    from rich.console import Group
    from rich.progress import Progress as RichProgress


@dataclass
class Round:
    """One batch of the search, with the records of its trials; those the cost model said something of are predicted."""

    number: int
    records: list[Record] = field(default_factory=list)

    @property
    def quality(self) -> RankingQuality | None:
        """Quality of the cost model's ranking of these candidates, which it had not seen; None where it cannot tell."""
        known = [(r.predicted, r.time_s) for r in self.records if r.predicted is not None]
        return ranking_quality([p for p, _ in known], [t for _, t in known]) if known else None


@dataclass
class TuningState:
    """Progress of tuning a task; times are in seconds, `flop` is the floating-point operations of one run."""

    task: str
    total: int
    flop: float = 0.0
    done: int = 0
    resumed: int = 0
    begun_at: int = 0
    """Trials from before this call: resumed ones, and those of earlier calls of a tuner."""
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
    rounds: list[Round] = field(default_factory=list)
    trials: list[Record] = field(default_factory=list, repr=False)
    curve: list[float] = field(default_factory=list)
    """The best seconds after each trial; infinity before the first right one."""

    @property
    def round(self) -> int:
        """The number of the round that was begun last, from 1; 0 before the first."""
        return self.rounds[-1].number if self.rounds else 0

    @property
    def valid(self) -> int:
        """Trials that ran and were right."""
        return self.done - self.errors.total()

    @property
    def quality(self) -> RankingQuality | None:
        """Quality of the cost model's ranking in the last round that can tell: over, or half over."""
        for round_ in reversed(self.rounds):
            quality = round_.quality
            if quality is not None and (round_ is not self.rounds[-1] or quality.samples >= _TELLING):
                return quality
        return None

    def begin_round(self) -> None:
        """Begin another batch of the search."""
        self.rounds.append(Round(self.round + 1))

    def count(self, record: Record, untuned: bool = False) -> None:
        """Take in a trial, new or from the record file; `untuned`: it is of the schedule without a search."""
        self.done += 1
        self.last = record
        self.trials.append(record)
        if not record.ok:
            self.errors[record.error.value] += 1
        elif untuned:
            self.default = record
        if record.ok and (self.best is None or record.time_s < self.best.time_s):
            self.best, self.best_trial = record, self.done
        self.curve.append(math.inf if self.best is None else self.best.time_s)
        if record.round:
            self.of_round(record.round).records.append(record)

    def of_round(self, number: int) -> Round:
        """The round of a number, which is made if there is none."""
        for known in reversed(self.rounds):
            if known.number == number:
                return known
        self.rounds.append(Round(number))
        self.rounds.sort(key=lambda r: r.number)
        return self.of_round(number)

    @property
    def trials_since_best(self) -> int:
        """Trials since the best one, of those of this call."""
        return self.done - max(self.best_trial, self.begun_at)

    @property
    def elapsed_s(self) -> float:
        """Seconds since tuning began, resumed trials apart."""
        return time.monotonic() - self.started_s

    @property
    def left_s(self) -> float | None:
        """Seconds that the trials still to be made take, as long each as those of this call; None before the first."""
        new = self.done - self.begun_at
        return None if new <= 0 else (self.total - self.done) * self.elapsed_s / new

    def speed(self, record: Record | None) -> str:
        """Return a record's speed as people read it: GFLOP/s where the operations are known, else the time."""
        if record is None or not record.ok:
            return "-"
        if not self.flop:
            return duration(record.time_s)
        return f"{self.flop / record.time_s / 1e9:.1f} GFLOP/s ({duration(record.time_s)})"

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


class ProgressLines:
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
        self.note(f"{state.task}: {trials_of(state.total, state.resumed)}")

    def update(self, state: TuningState) -> None:
        """Print a line if there is something to tell."""
        if state.best is self._best and state.done - self._shown < self._every:
            return
        self._best = state.best
        self._line(state)

    def note(self, text: str) -> None:
        """Print `text`."""
        say(self._stream, text)

    def stop(self) -> None:
        """Print the last line."""
        if self._state is not None and self._state.done != self._shown:
            self._line(self._state)

    def _line(self, state: TuningState) -> None:
        self._shown = state.done
        split = f"search {state.search_s:.1f}, build {state.build_s:.1f}, run {state.run_s:.1f}"
        model = f"; model: {state.quality}" if state.quality is not None else ""
        self.note(
            f"{state.task} {state.done}/{state.total}: best {state.speed(state.best)}, last {state.speed(state.last)}, "
            f"errors {state.error_counts()}, {state.elapsed_s:.1f} s ({split}){model}"
        )


class LiveBar:
    """A bar of trials with the time that is left, and lines below it that no width of a terminal breaks."""

    def __init__(self, stream: TextIO) -> None:
        self._screen = Screen(stream)
        self._bar: RichProgress | None = None

    def start(self, state: TuningState) -> None:
        """Begin."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._screen.start()
        columns = (
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = RichProgress(*columns, auto_refresh=False)
        self._bar.add_task("", total=state.total, completed=state.done, left="")
        self.update(state)

    def update(self, state: TuningState) -> None:
        """Draw."""
        self._screen.draw(state.phase, lambda: self._drawn(state))

    def note(self, text: str) -> None:
        """Print `text` above the bar."""
        self._screen.note(text)

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._screen.stop()

    def _drawn(self, state: TuningState) -> Group:
        from rich.console import Group
        from rich.text import Text

        assert self._bar is not None, "it was started"
        (bar,) = self._bar.tasks
        left = "" if state.left_s is None else f"{clock_text(state.left_s)} left"
        self._bar.update(bar.id, total=state.total, completed=state.done, left=left)
        lines = [Text(f"{state.task}: {state.phase}, round {state.round}", no_wrap=True, overflow="ellipsis")]
        below = [
            Text(f"{name:>8} {text}", no_wrap=True, overflow="ellipsis") for name, text in notes(state).items() if text
        ]
        return Group(*lines, self._bar.make_tasks_table(self._bar.tasks), *below)


def clock_text(seconds: float) -> str:
    """Seconds as `1:02:03`, or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def notes(state: TuningState) -> dict[str, str]:
    """The lines below the bar, some of them empty: the best, the last trial, time spent, .."""
    model = [str(state.quality)] if state.quality is not None else []
    spent = f"search {state.search_s:.1f} s, build {state.build_s:.1f} s, run {state.run_s:.1f} s"
    return {
        "best": state.speed(state.best),
        "last": state.speed(state.last),
        "untuned": state.speed(state.default),
        "valid": f"{state.valid} of {state.done}" + (f": {state.error_counts()}" if state.errors else ""),
        "model": "; ".join([*model, *_prediction(state)]),
        "spent": spent,
        "best by": f"trial {sparkline(state.curve, _SPARKS)}" if state.curve else "",
    }


def _prediction(state: TuningState) -> list[str]:
    """Rank that the cost model gave the last trial in its round, and the one it came to; nothing if it said nothing."""
    record = state.last
    if record is None or record.predicted is None or not record.round:
        return []
    known = [r for r in state.of_round(record.round).records if r.predicted is not None]
    expected = 1 + sum(r.predicted > record.predicted for r in known if r.predicted is not None)
    measured = 1 + sum(r.time_s < record.time_s for r in known)
    return [f"the last trial of {len(known)} was predicted no. {expected}, is no. {measured}"]


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def trials_of(asked: int, resumed: int) -> str:
    """Trials that were asked for, and how many of them the records hold, which may be more than were asked for."""
    return counted(asked, "trial") + (f", {min(asked, resumed)} of them from the records" if resumed else "")


def sparkline(best_s: Sequence[float], width: int = 60) -> str:
    """The speed of the best so far over trials as a line of bars; `best_s` are seconds, infinite before the first."""
    if not best_s or not math.isfinite(best_s[-1]):
        return ""
    count = min(width, len(best_s))
    picked = [best_s[(n + 1) * len(best_s) // count - 1] for n in range(count)]
    return "".join(_BARS[round((len(_BARS) - 1) * best_s[-1] / s)] if math.isfinite(s) else " " for s in picked)
