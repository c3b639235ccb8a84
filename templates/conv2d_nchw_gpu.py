"""Convolution of NCHW data on a GPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._gpu import tiled


@template("conv2d_nchw_gpu")
def conv2d_nchw_gpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.conv2d_nchw`; filters, rows and columns on z, y and x, images beside the filters."""
    return tiled(cfg, operators.conv2d_nchw(*args), ("ff", "yy", "xx"), ("rc", "ry", "rx"), ("nn",))
