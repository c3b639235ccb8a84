"""A schedule as text: pass names with options, as `xdsl-opt -p` takes them, to steps and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError, ParseError

from .build_limits import USUAL_LIMITS, BuildLimits
from .collector import collector_paused
from .discovery import pass_factories
from .installed import installed_passes, installed_primitive
from .lower.lower_te_to_loop import lower_te_to_loop
from .open_number import OpenNumber, open_names
from .primitive import Primitive, ScheduleError

_VALUE = r'(?:"[^"\\\n]*"|<\w+>|[-\w]+)'
_OPTION = re.compile(rf"([-\w]+)(?:=({_VALUE}(?:,{_VALUE})*))?(?:\s+|$)", re.ASCII)
_STEP = re.compile(r'([-\w]+)(?:\{((?:"[^"\\\n]*"|[^"{}])*)\})?(?:,|$)', re.ASCII)
_ITEM = re.compile(_VALUE, re.ASCII)
_INTEGER = re.compile(r"-?\d+|<\w+>", re.ASCII)


def parse_schedule(text: str) -> tuple[ModulePass, ...]:
    """Parse a schedule text to its steps, in order; ValueError says what is wrong with it.

    The grammar is that of `xdsl.passes.PassPipeline`, which is asked where a step is not in the plain form that
    `schedule_text` prints (and which takes six times as long). In the plain form an integer may be `<name>`, a number
    that is not chosen yet.
    """
    steps: list[ModulePass] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        step = _plain_step(match[1], match[2] or "") if match is not None else None
        if match is None or step is None:
            return (*steps, *_parse_slowly(text[position:]))
        steps.append(step)
        position = match.end()
    return tuple(steps)


def schedule_text(steps: Iterable[ModulePass]) -> str:
    """Print steps as the text that `parse_schedule` turns back into equal ones."""
    return ",".join(str(step) for step in steps)


def apply_schedule(module: ModuleOp, schedule: str | Iterable[ModulePass], limits: BuildLimits = USUAL_LIMITS) -> None:
    """Apply a schedule to `module` in place, after lowering it to loops where it is still on tensors.

    ScheduleError where a step is not legal or goes beyond `limits`: the steps before it have then been applied.
    """
    if not isinstance(schedule, Iterable):
        raise TypeError(f"a schedule is text, or a list of steps, got {type(schedule).__name__}")
    steps = parse_schedule(schedule) if isinstance(schedule, str) else tuple(schedule)
    limits.require_steps(len(steps))
    lower_to_loops(module)
    context = Context()
    with collector_paused():
        for step in steps:
            if names := open_names(step):
                raise ScheduleError(step, f"'{names[0]}' is not chosen yet, put a number in the place of <{names[0]}>")
            if isinstance(step, Primitive):
                step.run(module)
                if step.makes_loops:
                    limits.require_depth(step, module)
            else:
                step.apply(context, module)


def lower_to_loops(module: ModuleOp) -> bool:
    """Lower `module` to loops where it is on tensors; True where it was."""
    on_tensors = any(
        isinstance(f, FuncOp) and any(isinstance(t, TensorType) for t in f.function_type.outputs) for f in module.ops
    )
    if on_tensors:
        lower_te_to_loop(module)
    return on_tensors


def _plain_step(name: str, options: str) -> ModulePass | None:
    """Parse a step in the plain form; None where anything about it is out of the ordinary."""
    factory = pass_factories().get(name)
    step_class = factory() if factory is not None else installed_primitive(name)
    if step_class is None:
        return None
    kinds, needed = _known(step_class)
    values: dict[str, Any] = {}
    position = 0
    while position < len(options):
        match = _OPTION.match(options, position)
        if match is None:
            return None
        position = match.end()
        key = match[1].replace("-", "_")
        reader = kinds.get(key)
        if reader is None or match[2] is None:
            return None
        value = reader(_ITEM.findall(match[2]))
        if value is None:
            return None
        values[key] = value
    return step_class(**values) if needed <= values.keys() else None


Reader = Callable[[list[str]], Any]


@cache
def _known(step_class: type[ModulePass]) -> tuple[dict[str, Reader], set[str]]:
    """Return what reads each option of a pass, and which must be given."""
    hints = get_type_hints(step_class)
    readers = {f.name: _READERS[hints[f.name]] for f in fields(step_class) if hints[f.name] in _READERS}
    return readers, step_class.required_fields()


def _one_integer(items: list[str]) -> int | None:
    return _integer(items[0]) if len(items) == 1 and _INTEGER.fullmatch(items[0]) else None


def _integer(item: str) -> int:
    return OpenNumber(item[1:-1]) if item[0] == "<" else int(item)


def _one_truth(items: list[str]) -> bool | None:
    return items == ["true"] if items in (["true"], ["false"]) else None


def _one_string(items: list[str]) -> str | None:
    return _string(items[0]) if len(items) == 1 else None


def _integers(items: list[str]) -> tuple[int, ...] | None:
    return tuple(map(_integer, items)) if all(map(_INTEGER.fullmatch, items)) else None


def _strings(items: list[str]) -> tuple[str, ...] | None:
    texts = [_string(item) for item in items]
    return None if None in texts else tuple(t for t in texts if t is not None)


def _string(item: str) -> str | None:
    """Return a quoted string, or a word that is neither a number nor a truth value."""
    if item[0] == '"':
        return item[1:-1]
    return None if item in ("true", "false") or item[0].isdigit() or item[0] in "-<" else item


_READERS: dict[object, Reader] = {
    bool: _one_truth,
    int: _one_integer,
    int | None: _one_integer,
    str: _one_string,
    str | None: _one_string,
    tuple[int, ...]: _integers,
    tuple[str, ...]: _strings,
}


def _parse_slowly(text: str) -> tuple[ModulePass, ...]:
    try:
        return PassPipeline.parse_spec({**pass_factories(), **installed_passes()}, text).passes
    except (ArgSpecParseError, ParseError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"schedule text '{_shortened(text)}': {_shortened(reason, 300)}") from None


def _shortened(text: str, length: int = 80) -> str:
    return text if len(text) <= length else f"{text[:length]}..."
