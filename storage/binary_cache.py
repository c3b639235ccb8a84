"""Compiled kernels kept on disk, by what they were made from."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from .folders import why_not_own
from .whole_file import remove_unfinished, whole_file

MOST_BYTES = 1 << 30
"""Above this the oldest files go, when a file is added."""
_PRUNE_EVERY = 64
_MAGIC = b"loopwright-cache-1\n"
_DIGEST_CHARACTERS = 64


class CacheWarning(UserWarning):
    """Compiled kernels are not kept, or one that was kept is made again."""


class BinaryCache:
    """A folder of binaries with their logs; where it cannot be used everything works without, and a warning says so.

    Entries carry a checksum over what they hold and what they are for. They are machine code that will run, so a folder
    that other users can write to is not used.
    """

    def __init__(self, folder: Path | None, most_bytes: int = MOST_BYTES) -> None:
        """Take a folder, made when the first binary is kept; None stands for no cache."""
        self.folder = folder
        self.most_bytes = most_bytes

    def get(self, key: Sequence[str]) -> tuple[str, bytes] | None:
        """Return the log and the binary kept for a key, if any; an entry that is damaged is dropped, with a warning."""
        found = self.view(key)
        return None if found is None else (found[0], bytes(found[1]))

    def view(self, key: Sequence[str]) -> tuple[str, memoryview] | None:
        """Return what `get` does, the binary without a copy of it."""
        folder, name = self._usable(), _name(key)
        if folder is None:
            return None
        path = _path(folder, name)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        entry = _unpacked(name, data)
        if entry is None:
            _warn(f"dropped a damaged kernel from the cache, it is compiled again: {path}")
            _remove(path)
        return entry

    def put(self, key: Sequence[str], log: str, *binary: bytes | memoryview) -> None:
        """Keep a binary, in one piece or several; readers see it whole or not at all."""
        name = _name(key)
        try:
            if self.folder is not None:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = self._usable()
            if folder is None:
                return
            path = _path(folder, name)
            path.parent.mkdir(exist_ok=True)
            with whole_file(path, private=True) as file:
                file.writelines(_packed(name, log, *binary))
        except OSError as error:
            _warn(f"compiled kernels are not kept: cannot write to {self.folder}: {error.strerror}")
            return
        if int(name[:4], 16) % _PRUNE_EVERY == 0:
            self.prune()

    def prune(self) -> None:
        """Remove the oldest files until what is left is small enough, and what killed processes left unfinished."""
        folder = self._usable()
        if folder is None:
            return
        for part in folder.glob("*/"):
            remove_unfinished(part)
        files = [(found, file) for file in folder.glob("*/*.bin") if (found := _status(file)) is not None]
        files.sort(key=lambda pair: pair[0].st_mtime, reverse=True)
        total = 0
        for status, file in files:
            total += status.st_size
            if total > self.most_bytes:
                _remove(file)

    def _usable(self) -> Path | None:
        """Return the folder, if it is there and this user's own."""
        if self.folder is None:
            _warn("compiled kernels are not kept: this user has no home folder (XDG_CACHE_HOME names another place)")
            return None
        found = _status(self.folder)
        if found is None:
            return None
        if (reason := why_not_own(self.folder, found)) is not None:
            _warn(f"compiled kernels are not kept: {reason}")
            return None
        return self.folder


def _path(folder: Path, name: str) -> Path:
    return folder / name[:2] / f"{name[2:]}.bin"


def _name(key: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()


def _packed(name: str, log: str, *binary: bytes | memoryview) -> list[bytes | memoryview]:
    """An entry: a magic line, a line with the checksum, a line with the bytes of the log, the log, and the binary."""
    text = log.encode()
    body = (b"%d\n" % len(text), text, *binary)
    return [_MAGIC, _checksum(name, *body), b"\n", *body]


def _unpacked(name: str, data: bytes) -> tuple[str, memoryview] | None:
    start = len(_MAGIC) + _DIGEST_CHARACTERS + 1
    if data[:start] != _MAGIC + _checksum(name, memoryview(data)[start:]) + b"\n":
        return None
    first = data.index(b"\n", start) + 1
    end = first + int(data[start:first])
    return data[first:end].decode(), memoryview(data)[end:]


def _checksum(name: str, *body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(name.encode())
    for part in body:
        digest.update(part)
    return digest.hexdigest().encode()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _warn(f"cannot remove {path}: {error.strerror}")


def _warn(text: str) -> None:
    warnings.warn(text, CacheWarning, stacklevel=4)
