"""Compiled kernels kept on disk, by what they were made from."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 1 << 30
"""Above this the oldest files go, when a file is added."""
_PRUNE_EVERY = 64


class BinaryCache:
    """A folder of binaries with their logs; a folder that cannot be written or read is no error, only no cache."""

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder or default_folder()
        self.most_bytes = most_bytes

    def _path(self, key: Sequence[str]) -> Path:
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.bin"

    def get(self, key: Sequence[str]) -> tuple[str, bytes] | None:
        """Return the log and the binary kept for a key, if any."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        length, _, rest = data.partition(b"\n")
        size = int(length) if length.isdigit() else -1
        return (rest[:size].decode(), rest[size:]) if 0 <= size <= len(rest) else None

    def put(self, key: Sequence[str], log: str, binary: bytes) -> None:
        """Keep a binary; readers see it whole or not at all."""
        path, text = self._path(key), log.encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(b"%d\n" % len(text) + text + binary)
            os.replace(name, path)
            if int(path.stem[:4], 16) % _PRUNE_EVERY == 0:
                self.prune()
        except OSError:
            return

    def prune(self) -> None:
        """Remove the oldest files until what is left is small enough."""
        files = [(file.stat(), file) for file in self.folder.glob("*/*.bin")]
        files.sort(key=lambda pair: pair[0].st_mtime, reverse=True)
        total = 0
        for status, file in files:
            total += status.st_size
            if total > self.most_bytes:
                file.unlink(missing_ok=True)


def default_folder() -> Path:
    """Return the user's cache folder for compiled kernels (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "loopwright" / "cubin"
