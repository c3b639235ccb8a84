"""Convolution of NHWC data on a CPU."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from . import _operators as operators
from ._cpu import tiled


@template("conv2d_nhwc_cpu")
def conv2d_nhwc_cpu(cfg: Config, *args: Any) -> Schedule:
    """As `_operators.conv2d_nhwc`; a vector of filters for some pixels of a row."""
    return tiled(cfg, operators.conv2d_nhwc(*args), ("nn", "yy"), "xx", "ff", ("rc", "ry", "rx"))
