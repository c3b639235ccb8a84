"""Convolution of NHWC data on a GPU whose shared memory is no faster than its main memory, as Mali's."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._mali import tiled


@template("conv2d_nhwc_mali")
def conv2d_nhwc_mali(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.conv2d_nhwc`; rows, columns and filters on z, y and x, images beside the rows."""
    return tiled(cfg, operators.conv2d_nhwc(*args), ("yy", "xx", "ff"), ("rc", "ry", "rx"), ("nn",))
