"""Files of ours told from those of others, which are never written to."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

_HEAD_BYTES = 1 << 16
"""Bytes at the start of a file in which a mark is looked for."""


def is_ours(path: str | os.PathLike[str], marks: Sequence[bytes]) -> bool:
    """False for a regular file that has bytes at its start, and none of the marks among them."""
    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    return not head or any(mark in head or mark.startswith(head) for mark in marks)


def require_ours(path: str | os.PathLike[str], what: str, marks: Sequence[bytes]) -> None:
    """OSError where a regular file is there that has none of the marks of `what`, which would be written in its place.

    An empty file is anybody's; what is cut off inside of a mark at its start has it. Devices and pipes have no marks.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not is_ours(path, marks):
        text = f"it is there already and is no {what}, so it is left alone: give another name"
        raise FileExistsError(errno.EEXIST, text, os.fspath(path))
