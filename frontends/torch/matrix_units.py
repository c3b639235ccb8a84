"""Operators of a graph that schedules compute on matrix units of its device."""

from __future__ import annotations

from typing import Any

from ...backends.cuda.driver import MissingCuda
from ...backends.targets import resolve_target
from ...dialects.element import is_float
from ...dialects.intrinsics import intrinsics
from ...graph.tasks import attention_tile
from .devices import region_device
from .node import NO_UNITS, MatrixUnits

_CONVOLVED_ON_CPUS = frozenset({"float16"})
"""Types whose convolutions are ours on CPUs without instructions for them: a ResNet-18 in float16 takes 63 ms of one
core of a Xeon (AVX512-FP16, which PyTorch uses) as one region, 93 with PyTorch's convolutions, and PyTorch 114.
Products are as fast or faster in PyTorch (two layers of BERT take 55, 45 and 48 ms)."""


def matrix_units(device: Any, target: str | None) -> MatrixUnits:
    """Return what schedules do on matrix units of a device of PyTorch's, on CPUs on instructions for 16-bit factors.

    Nothing on a device that is not here, unless a target says what it is.
    """
    if device.type not in ("cpu", "cuda"):
        return NO_UNITS
    try:
        asked = resolve_target(region_device(device).target(target))
    except MissingCuda:
        return NO_UNITS
    factors = frozenset(x.a.element for x in intrinsics(asked) if is_float(x.a.type) and x.a.bytes == 2)
    if asked.kind == "llvm":  # transposed ones of bfloat16 take 3.0 ms where PyTorch takes 1.0, 3-D ones 3.7 and 1.8
        return MatrixUnits(factors, attention_tile(asked), factors | _CONVOLVED_ON_CPUS)
    return MatrixUnits(factors, attention_tile(asked), convolved=factors, upward=factors)
