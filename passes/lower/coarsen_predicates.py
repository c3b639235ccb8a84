"""Coarsen predicates: what is known for a whole step of a loop is not asked of each of its iterations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.attributes import IndicesAttr
from ...dialects.index import IndexExpr, Ranges, constant, linear
from ...dialects.loop import blocks_in
from ...dialects.target import target_of
from ..analysis.nest import functions_on_loops, ranges_of, simplify_conditions
from ._steps import require_none


@dataclass(frozen=True)
class CoarsenPredicates(ModulePass):
    """`for k1 in 64 { for k2 in 4 { block b where (1015 - k1 * 4 - k2 >= 0) } }` ->

    `... block b where (253 - k1 >= 0)`: steps of four divide 1016, so that all of a step is inside, or none.

    On a CPU; a GPU's predicates stay as they are.

    Requires: loops told apart by name (`lw-tell-loops-apart`), buffers not placed yet (`lw-place-buffers`).
    """

    name = "lw-coarsen-predicates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).is_gpu
        for func in functions_on_loops(op):
            require_none(func, self.name)
            coarsen_predicates(func, gpu)


def coarsen_predicates(func: FuncOp, gpu: bool) -> None:
    """Coarsen the predicates of a function's blocks in place; a GPU's stay as they are."""
    for block in () if gpu else blocks_in(func):
        if block.conditions:
            ranges = ranges_of(block.enclosing_loops)
            found = simplify_conditions((coarsened(c, ranges) for c in block.conditions), ranges)
            block.where = IndicesAttr(tuple(found)) if found else None


def coarsened(condition: IndexExpr, ranges: Ranges) -> IndexExpr:
    """The condition `e >= 0` on as few loops as say the same within their ranges.

    Of `e = c + inner + g * outer`, which holds where `outer + floor((c + inner) / g) >= 0`, the inner terms are left
    out where this floor is the same for all their values.
    """
    while (divided := _divided(condition, ranges)) is not None:
        condition = divided
    return condition


def _divided(condition: IndexExpr, ranges: Ranges) -> IndexExpr | None:
    """The condition in steps of the largest factor of a term, less the terms within a step; None where none is."""
    for step in sorted({abs(factor) for _, factor in condition.terms} - {1}, reverse=True):
        outer = [(atom, factor // step) for atom, factor in condition.terms if factor % step == 0]
        inner = IndexExpr(tuple(term for term in condition.terms if term[1] % step), condition.const)
        lowest, highest = (bound // step for bound in inner.bounds(ranges))
        if lowest == highest:
            return linear(outer, 0) + constant(lowest)
    return None
