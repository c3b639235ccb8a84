"""A schedule as the Python code that a person would have written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from xdsl.passes import ModulePass

from ...passes.primitive import Primitive


def as_python(steps: Iterable[ModulePass], target: str) -> str:
    """Code that applies `steps` to `tensors`, the list of inputs and outputs of a workload."""
    lines = ["import loopwright as lw", "", f"sch = lw.Schedule(tensors, target={_quoted(target)})"]
    lines += [f"sch.{call(step)}" for step in steps if isinstance(step, Primitive)]
    return "\n".join(lines)


def call(step: ModulePass) -> str:
    """A step as a method call: `split("c", loop="i", factors=(None, 16))`."""
    arguments = []
    for field in fields(step):
        value = getattr(step, field.name)
        if value == field.default:
            continue
        text = _literal(value) if field.name == "factors" else repr(value)
        arguments.append(text if field.name == "block" else f"{field.name}={text}")
    method = step.name.removeprefix("lw-").replace("-", "_")
    return f"{'software_pipeline' if method == 'pipeline' else method}({', '.join(arguments)})"


def _quoted(text: str) -> str:
    """A string as Python writes it; in double quotes where that says the same."""
    return f'"{text}"' if repr(text) == f"'{text}'" and '"' not in text else repr(text)


def _literal(factors: tuple[int, ...]) -> str:
    return "(" + ", ".join("None" if f == 0 else str(f) for f in factors) + ")"
