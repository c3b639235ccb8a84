"""A step of a schedule in one sentence."""

from __future__ import annotations

from xdsl.passes import ModulePass

from ...passes.primitive import spelled_out


def explain(step: ModulePass) -> str:
    """Describe a step in one sentence: its own `describe()`, which any pass may have, else its name and options."""
    describe = getattr(step, "describe", None)
    return str(describe()) if describe is not None else spelled_out(step)
