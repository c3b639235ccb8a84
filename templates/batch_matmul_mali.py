"""Products of a batch of matrices on a GPU whose shared memory is no faster than its main memory, as Mali's."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._mali import tiled


@template("batch_matmul_mali")
def batch_matmul_mali(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.batch_matmul`; rows on y, columns on x, the batch beside the rows."""
    return tiled(cfg, operators.batch_matmul(*args), ("i", "j"), ("k",), ("b",))
