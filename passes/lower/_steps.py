"""The order of the steps from loops to a kernel: each function says which one it has been through last."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from ...dialects.loop_steps import LOWERED_BY


def require_after(func: FuncOp, step: str, before: str) -> None:
    """PassFailedException unless pass `before` was the last one on the function, so that `step` is next."""
    last = func.attributes.get(LOWERED_BY)
    if last != StringAttr(before):
        got = f"{last.data} was the last step" if isinstance(last, StringAttr) else "it is not on its way to a kernel"
        raise PassFailedException(f"{step}: function '{func.sym_name.data}': run {before} right before this, {got}")


def note_step(func: FuncOp, step: str) -> None:
    """Note the last pass that a function has been through."""
    func.attributes[LOWERED_BY] = StringAttr(step)


def require_none(func: FuncOp, step: str) -> None:
    """PassFailedException where a step of lowering has been on the function already, so that `step` is none for it."""
    last = func.attributes.get(LOWERED_BY)
    if isinstance(last, StringAttr):
        rule = f"function '{func.sym_name.data}' has been through {last.data}: run the steps behind that"
        raise PassFailedException(f"{step}: {rule}")
