"""SIGTERM and SIGHUP as exceptions, so that what has to be ended and removed at the end is, as after Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """The process was told to end; `exit_code` is what shells show for that signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number
        self.exit_code = 128 + number


class OrderlyEnd:
    """From `begin` to `end`, signals that would end this process at once raise Terminated in its main thread.

    Only where nobody else handles them, and in the main thread, which alone may say so. At the end they are as before.
    """

    def __init__(self) -> None:
        self._taken: list[signal.Signals] = []

    def begin(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._taken = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
        for number in self._taken:
            signal.signal(number, _terminate)

    def end(self) -> None:
        """Let the signals do again what they did; harmless when repeated."""
        while self._taken and threading.current_thread() is threading.main_thread():
            signal.signal(self._taken.pop(), signal.SIG_DFL)

    def end_with(self, error: BaseException | None) -> None:
        """End, and have the process end by the signal that raised `error`, if it was one of those taken here."""
        was_ours = isinstance(error, Terminated) and error.number in self._taken
        self.end()
        if was_ours and isinstance(error, Terminated):
            os.kill(os.getpid(), error.number)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)
