"""A schedule with holes applied to the extents of a nest, for all candidates of a sketch at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from xdsl.passes import ModulePass

from ...passes.open_number import OpenNumber
from .nest import Access, Buffer, Loop, Nest, Stage, nested
from .sizes import Size, is_one


class UnknownStepError(Exception):
    """A schedule step whose effect on extents nobody has written down."""


class Sizes:
    """The sizes that numbers in a schedule stand for: open ones for a column of decisions, others for themselves."""

    def __init__(self, column: Callable[[str], Size]) -> None:
        self._column = column

    def of(self, number: int) -> Size:
        """The size that a number in a step's options is."""
        return self._column(number.name) if isinstance(number, OpenNumber) else number


Replay = Callable[[Any, Nest, Sizes], None]


def replay_of(step: ModulePass) -> Replay:
    """What replays a step: its own method `replay_sizes(nest, sizes)`, or `replay` of the module named after it.

    UnknownStepError where there is neither.
    """
    own = getattr(step, "replay_sizes", None)
    if own is not None:
        return lambda _, nest, sizes: own(nest, sizes)
    module = f"{__package__}.replay.{step.name.removeprefix('lw-').replace('-', '_')}"
    if find_spec(module) is None:
        raise UnknownStepError(
            f"features do not know what {step.name} does to extents: add {module} with a function replay(step, nest, "
            f"sizes), or give {type(step).__name__} a method replay_sizes(nest, sizes)"
        )
    found: Replay = import_module(module).replay
    return found


def replay_steps(nest: Nest, steps: tuple[ModulePass, ...], sizes: Sizes) -> None:
    """Apply steps to the extents of `nest`, in place; UnknownStepError for a step that is not known here."""
    for step in steps:
        replay_of(step)(step, nest, sizes)


def output_of(stage: Stage, buffer: str) -> Access:
    """The write to the buffer called so, or the only one for no name."""
    if not buffer:
        return stage.writes[0]
    return next(a for a in stage.writes if a.buffer.name == buffer)


def dimension_of(stage: Stage) -> dict[str, int]:
    """The dimension of its buffer that each spatial iterator writes."""
    names = [e.as_name for e in stage.writes[0].indices]
    return {n: d for d, n in enumerate(names) if n is not None}


def path_of(loop: Loop) -> list[Loop]:
    """The loops around `loop` and itself, outermost first."""
    path: list[Loop] = []
    current: Loop | None = loop
    while current is not None and current.parent is not None:
        path.append(current)
        current = current.parent
    return path[::-1]


def child_of(loop: Loop, stage: Stage) -> Loop | Stage:
    """What stands directly in `loop` and is or holds `stage`."""
    child: Loop | Stage = stage
    while child.parent is not loop:
        assert child.parent is not None
        child = child.parent
    return child


def owner_of(nest: Nest, buffer: Buffer) -> Loop | None:
    """The innermost loop around all that uses a buffer, outside of what reduces into it; None for no such loop."""
    common: list[Loop] | None = None
    for stage in nest.root.stages():
        if not any(a.buffer is buffer for a in stage.accesses):
            continue
        path = stage.loops
        if any(a.buffer is buffer for a in stage.writes) and stage.is_reduction:
            reducing = stage.loop_names(reduce=True)
            first = next((k for k, x in enumerate(path) if x.name in reducing and not is_one(x.extent)), len(path))
            path = path[:first]
        shared = 0
        if common is None:
            common = path
            continue
        while shared < min(len(common), len(path)) and common[shared] is path[shared]:
            shared += 1
        common = common[:shared]
    return common[-1] if common else None


def add_copy(nest: Nest, copy: Stage, position: int) -> None:
    """Put a copy into the function, in a loop for each of its iterators, and its new buffers into the nest."""
    nest.root.add(nested(copy, [(a.name, a.extent) for a in copy.iterators]), position)
    for access in copy.accesses:
        nest.buffers.setdefault(access.buffer.name, access.buffer)
