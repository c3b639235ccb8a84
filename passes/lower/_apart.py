"""Loops told apart by name: what a lowering knows of one loop is never taken for another one's.

Schedule primitives keep names different along a path only; loops beside each other may share one, with other extents.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from ...dialects.index import axis
from ...dialects.loop import ForOp, loops_in
from ..analysis.nest import NOT_IN_NAMES, made_up, substitute_loops


def tell_loops_apart(func: FuncOp) -> None:
    """Rename loops in place until each name of a function on loops is that of one loop, or of one axis of threads.

    Bound loops are left alone: loops bound to one axis have the same value, the thread's place on it.
    """
    taken: dict[str, int] = {}
    for loop in list(loops_in(func)):
        if "Idx" in loop.loop_kind:
            continue
        name = loop.loop_name
        taken[name] = number = taken.get(name, -1) + 1
        if number:
            rename_loop(loop, made_up(name, number))


def rename_loop(loop: ForOp, name: str) -> None:
    """Call a loop `name` instead, in the bindings and predicates below it too."""
    substitute_loops(loop, {loop.loop_name: axis(name)})
    loop.label = StringAttr(name)


def spelled(name: str) -> str:
    """The name that a person knows a loop by."""
    return name.partition(NOT_IN_NAMES)[0]
