"""Files of a saved kernel: their names, and what may be written in their place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole

MADE_BY = "made by loopwright"
"""The mark of our files, in a comment at the start of each."""
_NAME = re.compile(r"[\w.+-]+", re.ASCII)


def checked_path(kernel: str, kind: str, suffixes: Sequence[str], path: str | os.PathLike[str]) -> Path:
    """Return where a kernel for a kind of target is saved; ValueError for a name that none of its files has."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"kernel {kernel} is saved at the path of a file, got {type(path).__name__}")
    target = Path(path)
    if target.suffix not in suffixes:
        raise ValueError(f"kernel {kernel} is for {kind}: it is saved as {' or '.join(suffixes)}, not as {target}")
    if not _NAME.fullmatch(target.name):
        raise ValueError(
            f"kernel {kernel}: programs name its file, in letters, digits, '.', '_', '+' and '-', not {target.name!r}"
        )
    return target


def beside(path: Path, ending: str) -> Path:
    """Return the path of a file that belongs to another one: `k_run.py` to `k.so`."""
    return path.with_name(path.stem + ending)


def require_own(paths: Iterable[Path]) -> None:
    """FileExistsError where a file that is no part of a saved kernel would be overwritten."""
    for path in paths:
        require_ours(path, "file of a saved kernel", [MADE_BY.encode()])


def write_files(contents: Mapping[Path, bytes | str]) -> tuple[Path, ...]:
    """Write files, each whole or not at all, and none where one of them is there and not ours; returns their paths."""
    require_own(contents)
    for path, content in contents.items():
        write_whole(path, content)
    return tuple(contents)
