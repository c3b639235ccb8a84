"""Matrix product with a transposed weight on a GPU whose shared memory is no faster than its main memory, as Mali's."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._mali import tiled


@template("dense_mali")
def dense_mali(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.dense`; rows on y, columns on x."""
    return tiled(cfg, operators.dense(*args), ("i", "j"), ("k",), ())
