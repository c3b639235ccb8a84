"""Cost models that come with the package, one for a kind of target: the folder `pretuned` holds `KIND.model`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .general import General
from .plain_file import read_plain
from .saved import MAGIC

FOLDER = Path(__file__).parents[2] / "pretuned"


@cache
def shipped_model(kind: str) -> General | None:
    """Return the model for targets of a kind (`cuda`); None where none comes with the package."""
    path = FOLDER / f"{kind}.model"
    return General.read(read_plain(path, MAGIC).part("state")) if path.is_file() else None
