"""Callbacks: called after each trial of a search, of one task or of a network, which any of them can end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from ..records.file import Record

StateT = TypeVar("StateT")

Callback = Callable[[StateT, Record], object]
"""Called with the state of the search and the record of the trial just done; the search ends when one returns True.

What is under way then is finished and recorded, the run-off follows, and a later call goes on from the records. An
exception passes through, as Ctrl-C does. The method `finish()` of a callback, if it has one, is called at the end.
"""


def tell(callbacks: Iterable[Callback[StateT]], state: StateT, record: Record) -> bool:
    """Call each of them; True where one of them ends the search."""
    answers = [callback(state, record) for callback in callbacks]
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


def end(callbacks: Iterable[object]) -> None:
    """Tell those that have a method `finish()` that the search has ended, for whatever reason."""
    for callback in callbacks:
        if hasattr(callback, "finish"):
            callback.finish()
