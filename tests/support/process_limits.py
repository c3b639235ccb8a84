"""Limits of the process that runs tests, for a while."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def limited(kind: int, value: int) -> Iterator[None]:
    """Lower a limit (`resource.RLIMIT_...`) of this process.

    No byte code is kept meanwhile: CPython 3.11 keeps files of it that a limit cuts short, and the module of such a
    file cannot be imported again.
    """
    before = resource.getrlimit(kind)
    with patch.object(sys, "dont_write_bytecode", True):
        resource.setrlimit(kind, (value, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(kind, before)
