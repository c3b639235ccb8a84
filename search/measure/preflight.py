"""Before the first trial: does a tiny kernel compile and run on the target, through all that trials go through?"""

from __future__ import annotations

import re
from functools import cache

from ... import te
from ...dialects.presets import PRESETS, model_of
from ...dialects.target import Target, parse_target
from ..sketch.generate import generate_sketches
from .measurer import MeasureTask
from .reference import make_reference

_NUMBERS = 1 << 16
"""Elements of the kernel that is tried first: enough for blocks of threads, and for the rules to deal it to cores.

Half as many are one core's on CPUs with vectors of 64 bytes."""
_CALLED = {"pocl": "Portable Computing Language"}
"""Names that devices of a model give themselves, where they are not the model's."""


@cache
def preflight(target: Target) -> tuple[MeasureTask, str]:
    """A task that adds 1 to some numbers, and its untuned schedule, on the threads or cores of a target."""
    data = te.placeholder((_NUMBERS,), name="data")
    module = te.create_module([data, te.compute((_NUMBERS,), lambda i: data[i] + 1.0, name="next")], target)
    found = make_reference(module).task(str(module))
    first = generate_sketches(module, target)[0]
    return found, first.schedule(first.default)


def measured_elsewhere(target: str, device: str) -> str:
    """A sentence where a target is a well-known device and `device`, which measures, is another; else empty."""
    try:
        wanted = parse_target(target)
    except ValueError:
        return ""
    if (wanted.kind, wanted.model) not in PRESETS or _CALLED.get(wanted.model, "\n") in device:
        return ""
    if model_of(wanted.kind, re.split(r"[,(]", device)[0]) == wanted.model:
        return ""
    return (
        f"target {wanted.kind} model={wanted.model} is measured on {device}: limits are the target's, times that one's"
    )
