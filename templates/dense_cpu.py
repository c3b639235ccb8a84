"""Matrix product with a transposed weight on a CPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._cpu import tiled


@template("dense_cpu")
def dense_cpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.dense`; a vector of columns, whose weights are packed, for some rows."""
    return tiled(cfg, operators.dense(*args), (), "i", "j", ("k",), ("j/<width>", "k", "j%<width>"))
