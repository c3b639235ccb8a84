"""Digests of the package's own files, so that nothing that is kept outlives a change of what made it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from .folders import models_folder

KERNEL_CODE = ("dialects", "te", "passes", "backends", "search")
"""The folders of the code that makes kernels."""


def models_digest() -> str:
    """Return a digest of the cost models that ship, and of when this user's own were made (`lw.calibrate`).

    Those that cannot be reached, or go meanwhile, are not there.
    """
    folder, made = models_folder(), []
    with suppress(OSError):
        for path in sorted(folder.glob("*/*.model")) if folder is not None else ():
            with suppress(OSError):
                status = path.stat()
                made.append(f"{path.parent.name} {status.st_mtime_ns} {status.st_size}")
    return " ".join([code_digest(("pretuned",), "*.model"), *made])


@cache
def code_digest(folders: Sequence[str] = KERNEL_CODE, pattern: str = "*.py") -> str:
    """Return a digest of the package's files in folders."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((root / folder).rglob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()
