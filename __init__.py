"""An autotuning tensor compiler on xDSL: write the computation once, search its schedule, run it fast and checked."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopwright import te as te
    from loopwright import topi as topi
    from loopwright.dialects.target import Target as Target

__version__ = "0.1.0"

# Public name -> the module that holds it; the module loads when the name is first used.
_HOMES = {
    "Schedule": "loopwright.schedule",
    "ScheduleError": "loopwright.passes.primitive",
    "SearchTask": "loopwright.search.task",
    "Target": "loopwright.dialects.target",
    "TuningOptions": "loopwright.search.task",
    "build": "loopwright.backends.build",
    "register_workload": "loopwright.search.workload",
}
_SUBPACKAGES = ("te", "topi")


def __getattr__(name: str) -> object:
    """Load the public `name` from its module."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"loopwright.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'loopwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_SUBPACKAGES})
