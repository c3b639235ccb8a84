"""Common parts of displays of tuning: saying nothing, plain lines, and a live part of a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


SHARE = 0.1
"""Of the time, at most so much is spent drawing: a table of 20 tasks takes 20 ms of CPU, as a short trial may."""
_LONGEST_S = 0.5
"""Seconds that what is shown may be out of date when something new is to be shown."""


class Silent:
    """Shows nothing, of a task or of a network."""

    def start(self, state: object) -> None:
        """Begin."""

    def update(self, state: object) -> None:
        """Show nothing."""

    def trial(self, state: object) -> None:
        """Show nothing."""

    def round(self, state: object, task: int) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def stop(self, state: object = None) -> None:
        """End."""


def say(stream: TextIO, text: str) -> None:
    """Print a line now."""
    print(text, file=stream, flush=True)


class Screen:
    """A live part of a terminal, drawn anew at each change of phase, and at other changes as time allows.

    No thread redraws it, so that it does not disturb measuring. What is higher than the terminal is cropped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None
        self._phase: str | None = None
        self._next_s = 0.0
        self._waiting: Callable[[], RenderableType] | None = None

    @property
    def height(self) -> int | None:
        """Lines of the terminal; None before the start."""
        return None if self._live is None else self._live.console.height

    def start(self) -> None:
        """Begin, with nothing to show yet."""
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def draw(self, phase: str, make: Callable[[], RenderableType]) -> None:
        """Show what `make` returns in place of what is shown, now or later; nothing happens before the start."""
        if self._live is None:
            return
        began_s, self._waiting = time.perf_counter(), make
        if phase == self._phase and began_s < self._next_s:
            return
        self._update(refresh=True)
        ended_s, self._phase = time.perf_counter(), phase
        self._next_s = ended_s + min(_LONGEST_S, (ended_s - began_s) * (1 / SHARE - 1))

    def _update(self, refresh: bool = False) -> None:
        """Take over what was not drawn yet."""
        if self._live is not None and self._waiting is not None:
            self._live.update(self._waiting(), refresh=refresh)
            self._waiting = None

    def note(self, text: str) -> None:
        """Print a line above what is shown, or below it after the end."""
        if self._live is not None and self._live.is_started:
            self._update()
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            say(self._stream, text)

    def stop(self, last: Callable[[], RenderableType] | None = None) -> None:
        """End, and leave what was to be shown, or what `last` returns in its place, whole."""
        if self._live is not None:
            self._waiting = last or self._waiting
            self._update()
            self._live.stop()
