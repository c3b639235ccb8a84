"""From a workload as text and a schedule to the kernel level, for backends that measure candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from ..passes.discovery import pass_factories, pass_name, primitive_stems
from ..passes.installed import installed_primitives
from ..passes.pipeline_text import apply_schedule, lower_to_loops
from .context import create_context
from .lowering import lower_in_place
from .package_versions import package_versions


def scheduled_kernel(workload: str, schedule: str) -> ModuleOp:
    """Lower te-level IR text, with its target, under a pass pipeline; raises ScheduleError if a step is illegal."""
    module = _parse(workload).clone()
    apply_schedule(module, schedule)
    lower_in_place(module)
    return module


def warm_up() -> None:
    """Import now what the first schedule would import."""
    pass_factories()
    create_context()


@lru_cache(maxsize=8)
def _parse(workload: str) -> ModuleOp:
    """Parse a workload and lower it to loops, once for all schedules that a tuner builds it with."""
    module = parsed_workload(workload).clone()
    lower_to_loops(module)
    return module


@lru_cache(maxsize=1)
def parsed_workload(workload: str) -> ModuleOp:
    """Parse te-level IR text: once for who chooses a schedule and who builds with it, so nobody may change it."""
    return Parser(create_context(), workload).parse_module()


def code_versions(packages: Sequence[str]) -> dict[str, str]:
    """Return versions of what makes the code: packages that are installed, and each pass by its pipeline name."""
    found = package_versions(packages)
    factories = pass_factories()
    for name in map(pass_name, primitive_stems()):
        found[name] = _version_of(factories[name]())
    return found | {name: _version_of(kind) for name, kind in installed_primitives().items()}


def _version_of(primitive: type[ModulePass]) -> str:
    return str(getattr(primitive, "version", 1))
