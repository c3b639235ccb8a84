"""Depthwise convolution of NCHW data on a GPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._gpu import tiled


@template("depthwise_conv2d_nchw_gpu")
def depthwise_conv2d_nchw_gpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.depthwise_conv2d_nchw`; channels, rows and columns on z, y and x."""
    return tiled(cfg, operators.depthwise_conv2d_nchw(*args), ("ff", "yy", "xx"), ("ry", "rx"), ("nn",))
