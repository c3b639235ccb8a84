"""Atomic files: they appear whole or not at all, whenever the process, the disk or the machine gives out."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

UNFINISHED = ".unfinished"
"""Suffix of files that are being written; the writer holds a lock on each."""
_PERMISSIONS = 0o666
_OWN_PERMISSIONS = 0o600
_NAME_SHOWN = 40
"""Characters of a file's name in that of its unfinished self: both together must stay within 255 bytes."""


@contextmanager
def whole_file(path: str | os.PathLike[str], private: bool = False) -> Iterator[IO[bytes]]:
    """Open a binary file for an atomic write: it appears when the block ends, and not at all where that fails.

    What is there until then is the file of before, if any, and the new one keeps its permissions; `private` files are
    for this user only. The bytes are on the disk before the name is, and the name before this returns. Beside a file
    that a killed process left unfinished, the next one of the same name takes it away. A device or pipe is written
    to as it is. OSError names the file.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with open(target, "wb") as stream:
                yield stream
            return
        remove_unfinished(target.parent, target.name)
        with _unfinished(target, private) as file:
            yield file
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write_whole(path: str | os.PathLike[str], data: bytes | str, private: bool = False) -> None:
    """Write bytes, or text as UTF-8, atomically, as `whole_file` does."""
    with whole_file(path, private) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def _unfinished(target: Path, private: bool) -> Iterator[IO[bytes]]:
    unfinished, descriptor = _opened(target, _OWN_PERMISSIONS if private else _PERMISSIONS)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if not private and target.is_file():
                os.fchmod(descriptor, target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(descriptor)
            os.replace(unfinished, target)  # while the lock is held: nobody takes it for one left behind
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _opened(target: Path, permissions: int) -> tuple[Path, int]:
    """Open a new, locked file beside another one; again where it was removed before it was locked."""
    while True:
        path = target.with_name(f".{target.name[:_NAME_SHOWN]}.{secrets.token_hex(6)}{UNFINISHED}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions)
        with suppress(OSError):  # a file system without locks: nobody else gets one either, and nothing is swept
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot, and the file is there
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_unfinished(folder: Path, name: str = "") -> None:
    """Remove what killed processes left unfinished in a folder: of the files of one name, or of all."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(f".{name[:_NAME_SHOWN]}") and entry.name.endswith(UNFINISHED):
                _remove_unless_locked(entry.path)


def _remove_unless_locked(path: str) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)
