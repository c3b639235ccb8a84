"""A temporary folder that goes when its process does: at its end, or swept by the next run where that was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

_PREFIX = "loopwright-scratch-"
_LOCK = "owner.lock"
"""A file that each folder has from the start, locked for as long as its process lives, whatever ends that."""


class ScratchError(Exception):
    """No temporary folder can be made; the sentence says why."""


class Scratch:
    """A folder of this process's own in the system's temporary folder."""

    def __init__(self) -> None:
        """Sweep what killed runs left, then make a folder; ScratchError where that cannot be."""
        self._process = os.getpid()
        try:
            root = Path(tempfile.gettempdir())
            sweep(root)
            self.path, self._lock = _make(root)
        except OSError as error:
            why = error.strerror or error
            raise ScratchError(f"cannot make a temporary folder: {why}; TMPDIR says where they go") from error

    def remove(self) -> None:
        """Remove it with all that it holds; harmless when repeated, and in a forked child, whose it is not."""
        if os.getpid() == self._process and self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(OSError):  # without descriptors to look inside: as it was made
                (self.path / _LOCK).unlink()
                self.path.rmdir()
            os.close(self._lock)
            self._lock = -1


def sweep(root: Path) -> None:
    """Remove this user's folders whose process is no more."""
    with contextlib.suppress(OSError):
        for path in root.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_ours(path):
                    _sweep_one(path)


def _is_ours(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _sweep_one(path: Path) -> None:
    try:
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        path.rmdir()  # killed, or still, before it made the file; only if empty, so it was no other folder of that name
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError where its process holds it
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _make(root: Path) -> tuple[Path, int]:
    """Make a folder and lock it; another where a sweeper came between."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
        try:
            descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        except OSError:
            path.rmdir()
            raise
        with contextlib.suppress(OSError):  # some file systems have no locks, and then nobody sweeps
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)
