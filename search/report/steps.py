"""A schedule step by step: what each step does, and how it changes the IR."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...passes.pipeline_text import lower_to_loops, parse_schedule
from ...passes.primitive import Primitive, ScheduleError, in_words
from ..sketch.as_python import call

CONTEXT_LINES = 2
"""Unchanged lines around a change that are shown."""


@dataclass(frozen=True)
class Step:
    """One step: as text, as a Python call, in words; `changes` are lines of a diff of the IR, where it is known."""

    text: str
    code: str
    words: str
    changes: tuple[str, ...] = ()


def steps_of(schedule: str, module: ModuleOp | None = None) -> tuple[list[Step], str]:
    """The steps of a schedule and the IR after the last one; without the workload's module no IR.

    Where a step is not legal any more, the changes end before it.
    """
    passes = parse_schedule(schedule)
    if module is None:
        return [_described(step, ()) for step in passes], ""
    module = module.clone()
    before = str(module).splitlines()
    found: list[Step] = []
    for step in passes:
        after = before
        try:
            _apply(step, module)
            after = str(module).splitlines()
        except ScheduleError as error:
            found.append(_described(step, (f"! {line}" for line in str(error).splitlines())))
            found += [_described(later, ()) for later in passes[len(found) :]]
            return found, ""
        found.append(_described(step, _changes(before, after)))
        before = after
    return found, "\n".join(before)


def _apply(step: ModulePass, module: ModuleOp) -> None:
    if isinstance(step, Primitive):
        lower_to_loops(module)
        step.run(module)
    else:
        step.apply(Context(), module)


def _described(step: ModulePass, changes: Iterator[str] | tuple[str, ...]) -> Step:
    code = f"sch.{call(step)}" if isinstance(step, Primitive) else ""
    return Step(str(step), code, in_words(step), tuple(changes))


def _changes(before: list[str], after: list[str]) -> Iterator[str]:
    """A diff with some lines around each change; lines that are only indented otherwise have not changed."""
    matcher = difflib.SequenceMatcher(None, [x.strip() for x in before], [x.strip() for x in after], autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT_LINES)):
        if number:
            yield "@ ..."
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (f"  {line}" for line in after[k:m])
                continue
            yield from (f"- {line}" for line in before[i:j])
            yield from (f"+ {line}" for line in after[k:m])
