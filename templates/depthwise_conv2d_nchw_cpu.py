"""Depthwise convolution of NCHW data on a CPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._cpu import tiled


@template("depthwise_conv2d_nchw_cpu")
def depthwise_conv2d_nchw_cpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.depthwise_conv2d_nchw`; a vector of pixels of some rows."""
    return tiled(cfg, operators.depthwise_conv2d_nchw(*args), ("nn", "ff"), "yy", "xx", ("ry", "rx"))
