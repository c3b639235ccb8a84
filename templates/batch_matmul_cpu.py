"""Products of a batch of matrices on a CPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._cpu import tiled


@template("batch_matmul_cpu")
def batch_matmul_cpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.batch_matmul`; a vector of columns, which are packed, for some rows."""
    return tiled(cfg, operators.batch_matmul(*args), ("b",), "i", "j", ("k",), ("b", "j/<width>", "k", "j%<width>"))
