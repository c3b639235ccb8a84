"""Common parts of displays of tuning: saying nothing, plain lines, and a live part of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


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
    """A live part of a terminal, drawn anew at each change.

    No thread redraws it, so that it does not disturb measuring. What is higher than the terminal is cropped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None

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

    def draw(self, shown: RenderableType) -> None:
        """Show something in place of what is shown; nothing happens before the start."""
        if self._live is not None:
            self._live.update(shown, refresh=True)

    def note(self, text: str) -> None:
        """Print a line above what is shown, or below it after the end."""
        if self._live is not None and self._live.is_started:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            say(self._stream, text)

    def stop(self, last: RenderableType | None = None) -> None:
        """End, and leave what is shown, or `last` in its place, whole."""
        if self._live is not None:
            if last is not None:
                self._live.update(last)
            self._live.stop()
