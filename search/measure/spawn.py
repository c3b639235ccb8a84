"""Python processes that run a module of this package, and are talked to by a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def spawn(
    module: str, arguments: Sequence[str], connection: socket.socket, env: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """Start `python -m module ARGUMENTS DESCRIPTOR`, which finds modules where this process does.

    DESCRIPTOR is that of `connection`, the only one that it inherits; `options` are Popen's. OSError where it cannot
    start.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments, str(connection.fileno())],
        pass_fds=[connection.fileno()],
        env={**os.environ, **env, "PYTHONPATH": search_path()},
        **options,
    )


def search_path() -> str:
    """Return where this process finds modules, for PYTHONPATH."""
    return os.pathsep.join(entry or os.getcwd() for entry in sys.path)
