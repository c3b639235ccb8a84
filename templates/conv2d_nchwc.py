"""Convolution of NCHW data on a CPU that packs it: blocks of channels are contiguous, as in the classic NCHWc."""

from __future__ import annotations

from typing import Any

from ..computation import start
from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from ._cpu import tiled
from .conv2d_nchw import conv2d_nchw


@template("conv2d_nchwc_cpu")
def conv2d_nchwc_cpu(cfg: Config, *args: Any) -> Schedule:
    """Schedule `conv2d_nchw` with data padded or copied into blocks of channels, the inner step of `tile_reduce`."""
    layout = ("ff/<width>", "rc/<step>", "ry", "rx", "rc%<step>", "ff%<width>")
    made = start(cfg, conv2d_nchw(*args))
    return tiled(cfg, made, ("nn", "yy"), "xx", "ff", ("rc", "ry", "rx"), layout, channels=1)
