"""Worker processes of measurers, forked from one of a whole process of tests, which start some hundred of them.

`spawn` stands in for that of `search/measure/spawn.py`, with which tests of measuring itself go on; guards and workers
are processes with a session, files and an environment of their own all the same.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from loopwright.search.measure.nursery import Nursery
from loopwright.search.measure.process import Started

_IMPORTED = (
    "loopwright.search.measure.worker",
    "loopwright.backends.scheduled",
    "loopwright.backends.llvm.compile",
    "loopwright.backends.llvm.device",
)


def spawn(
    module: str, arguments: Sequence[str], connection: socket.socket, env: Mapping[str, str], **options: Any
) -> Started:
    """Fork what `python -m module ARGUMENTS DESCRIPTOR` would be, with a pipe as standard input."""
    return _nursery(os.getpid()).spawn(module, arguments, connection, env, **options)


@cache
def _nursery(process: int) -> Nursery:
    """The nursery of this process, which ends with it."""
    made = Nursery(_IMPORTED, {})
    atexit.register(made.close)
    return made
