"""Convolution of NHWC data on a GPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._gpu import tiled


@template("conv2d_nhwc_gpu")
def conv2d_nhwc_gpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.conv2d_nhwc`; rows, columns and filters on z, y and x, images beside the rows."""
    return tiled(cfg, operators.conv2d_nhwc(*args), ("yy", "xx", "ff"), ("rc", "ry", "rx"), ("nn",))
