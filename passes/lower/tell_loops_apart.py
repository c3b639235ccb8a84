"""Tell loops apart by name, so that what a lowering knows of one loop is never taken for another one's.

Schedule primitives keep names different along a path only; loops beside each other may share one, with other extents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.index import axis
from ...dialects.loop import THREAD_KINDS, ForOp, is_bound, loops_in
from ...dialects.target import target_of
from ..analysis.access import axis_bound_twice, loops_around
from ..analysis.nest import functions_on_loops, substitute_loops
from ._steps import require_none


@dataclass(frozen=True)
class TellLoopsApart(ModulePass):
    """`for i { ... } for i { ... }` -> `for i { ... } for i$1 { ... }`: each name of a function is that of one loop.

    On a GPU a loop that is bound to an axis of blocks or threads is called by that axis instead, as its value is the
    place of the block or thread on it: `for i in 64 threadIdx.x` -> `for threadIdx.x in 64 threadIdx.x`.
    """

    name = "lw-tell-loops-apart"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_none(func, self.name)
            tell_loops_apart(func, target_of(op).is_gpu)


def tell_loops_apart(func: FuncOp, gpu: bool = False) -> None:
    """Rename the loops of a function in place.

    PassFailedException where two loops on a path are on one axis of a GPU, which its threads do not fill together, or
    where a loop holds blocks of threads, instead of the other way round.
    """
    bound = [loop for loop in loops_in(func) if is_bound(loop)]
    if gpu:
        for loop in bound:
            _require_axis_once(loop)
        for loop in bound:
            _require_outside(loop)
    taken = {loop.loop_name for loop in loops_in(func)}
    seen = set(THREAD_KINDS) if gpu else set()
    for loop in [loop for loop in loops_in(func) if not is_bound(loop)]:
        if loop.loop_name in seen:
            name = spelled(loop.loop_name)
            fresh = next(new for n in count(1) if (new := f"{name}${n}") not in taken)
            rename_loop(loop, fresh)
            taken.add(fresh)
        seen.add(loop.loop_name)
    if gpu:
        for loop in bound:
            rename_loop(loop, loop.loop_kind)


def are_told_apart(func: FuncOp, gpu: bool) -> bool:
    """True where each name of a function is that of one loop, or of one axis."""
    free = [loop.loop_name for loop in loops_in(func) if not is_bound(loop)]
    bound = [loop for loop in loops_in(func) if is_bound(loop)]
    return len(set(free)) == len(free) and (not gpu or all(loop.loop_name == loop.loop_kind for loop in bound))


def rename_loop(loop: ForOp, name: str) -> None:
    """Call a loop `name` instead, in the bindings and predicates below it too."""
    if loop.loop_name == name:
        return
    substitute_loops(loop, {loop.loop_name: axis(name)})
    loop.label = StringAttr(name)


def spelled(name: str) -> str:
    """The name that a person knows a loop by."""
    return re.sub(r"\$\d+$", "", name)


def _require_axis_once(loop: ForOp) -> None:
    """Refuse a loop on an axis that a loop around it is on, unless all threads fill shared memory with it."""
    outer = axis_bound_twice(loop)
    if outer is not None:
        names = f"'{spelled(loop.loop_name)}' and '{spelled(outer.loop_name)}' around it"
        rule = f"loops {names} are both bound to {loop.loop_kind}, which only fills of shared buffers may be"
        raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; bind one of them to another axis")


def _require_outside(loop: ForOp) -> None:
    """Refuse blocks of threads in a loop that is not bound: they hold loops."""
    if not loop.loop_kind.startswith("blockIdx"):
        return
    around = (x for x in loops_around(loop) if x.loop_kind in ("serial", "unrolled") and x.size > 1)
    wrong = next(around, None)
    if wrong is not None:
        where = f"bound to {loop.loop_kind} inside of '{spelled(wrong.loop_name)}'"
        rule = f"loop '{spelled(loop.loop_name)}' is {where}"
        raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; reorder it outside")
