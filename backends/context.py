"""An xDSL context that knows every dialect a program of ours is written in."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, scf, vector

from ..dialects import graph, kernel, loop, target, te


def create_context() -> Context:
    """Return a context with our dialects and the ones they build on."""
    context = Context()
    for dialect in (
        *(builtin.Builtin, func.Func, arith.Arith, math.Math, scf.Scf, vector.Vector),
        *(target.Lw, graph.LwGraph, te.LwTe, loop.LwLoop, kernel.LwKernel),
    ):
        context.load_dialect(dialect)
    return context
