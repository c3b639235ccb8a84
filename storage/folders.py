"""This user's folders (XDG Base Directory Specification), and whether only this user can change them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_NAME = "loopwright"
_ROOT = 0


def cache_folder(name: str) -> Path | None:
    """Return the user's folder for what can be made again; None where there is no home."""
    return _folder("XDG_CACHE_HOME", ".cache", name)


def data_folder() -> Path | None:
    """Return the user's folder for what must be kept; None where there is no home."""
    return _folder("XDG_DATA_HOME", ".local/share", "")


def models_folder() -> Path | None:
    """Return the user's folder of cost models that were calibrated; None where there is no home."""
    folder = data_folder()
    return None if folder is None else folder / "models"


def _folder(variable: str, usual: str, name: str) -> Path | None:
    base = os.environ.get(variable, "")
    if os.path.isabs(base):  # relative ones are to be ignored, by the specification
        return Path(base, _NAME, name)
    try:
        return Path.home() / usual / _NAME / name
    except RuntimeError:
        return None


def why_not_own(path: Path, found: os.stat_result) -> str | None:
    """The reason why a file or folder may hold what others wrote; None where only this user and root can write it."""
    if found.st_uid not in (_ROOT, os.geteuid()):
        return f"{path} belongs to another user"
    if stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users may write to {path} (chmod go-w closes it)"
    return None
