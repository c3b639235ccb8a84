"""Matrix product with a transposed weight on a GPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._gpu import tiled


@template("dense_gpu")
def dense_gpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.dense`; rows on y, columns on x."""
    return tiled(cfg, operators.dense(*args), ("i", "j"), ("k",), ())
