"""The display of tuning that suits where it runs: a notebook, a terminal, or neither."""

from __future__ import annotations

import sys
from typing import TextIO

from .display import Silent
from .notebook import NotebookChart, NotebookTable, running_notebook
from .progress import LiveBar, Progress, ProgressLines
from .table import NetworkLines, NetworkTable, SchedulerProgress


def make_progress(stream: TextIO | None = None) -> Progress:
    """Return the display that suits `stream`; if None, the notebook that runs this, else standard error."""
    if stream is None and (show := running_notebook()) is not None:
        return NotebookChart(show)
    stream = sys.stderr if stream is None else stream
    return LiveBar(stream) if stream.isatty() else ProgressLines(stream)


def make_network_progress(stream: TextIO | None = None) -> SchedulerProgress:
    """Return a network's display that suits `stream`; if None, the notebook that runs this, else standard error."""
    if stream is None and (show := running_notebook()) is not None:
        return NotebookTable(show)
    stream = sys.stderr if stream is None else stream
    return NetworkTable(stream) if stream.isatty() else NetworkLines(stream)


def progress_of(choice: bool | Progress) -> Progress:
    """The display that options ask for: the one that suits where this runs, none, or the one given."""
    if isinstance(choice, bool):
        return make_progress() if choice else Silent()
    return choice
