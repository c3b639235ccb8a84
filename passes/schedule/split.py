"""Split one loop into several."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import ForOp, blocks_in
from ..analysis.nest import (
    find_block,
    find_loop,
    fresh_name,
    functions,
    loop_names_around,
    move_body,
    new_loop,
    replace_loop,
    require_plain,
    simplify_conditions,
)
from ..parametric.index import Cap, Index
from ..parametric.nest import Loop, Nest, nested
from ..parametric.sizes import Size, Sizes, ceil_div, product
from ..primitive import Primitive


@dataclass(frozen=True)
class Plan:
    """The loop, its children as (name, extent) from the outside, and whether they overshoot its extent."""

    loop: ForOp
    children: tuple[tuple[str, int], ...]
    has_tail: bool


@dataclass(frozen=True)
class Split(Primitive[Plan]):
    """`for i in 100 { S(i) }` ->

    `for i0 in 7 { for i1 in 16 { S(i0 * 16 + i1) where 99 - i0 * 16 - i1 >= 0 } }`

    with `factors=0,16`; the factor 0 (one at most) is inferred, rounding up; a product above the extent adds the
    predicate.
    Children are named after the loop: `i0`, `i1`, ...

    Requires: a serial loop without annotations; factors of at least 1 whose product covers the extent.
    """

    name = "lw-split"
    block: str
    loop: str
    factors: tuple[int, ...]

    def check(self, module: ModuleOp) -> Plan:
        loop = find_loop(self, find_block(self, module, self.block), self.loop)
        require_plain(self, loop)
        extents = self._extents(loop)
        names = self._child_names(loop_names_around(loop) - {loop.loop_name})
        return Plan(loop, tuple(zip(names, extents, strict=True)), prod(extents) > loop.size)

    def _child_names(self, taken: set[str]) -> list[str]:
        names: list[str] = []
        for position in range(len(self.factors)):
            wanted = f"{self.loop}{position}"
            names.append(fresh_name(wanted if wanted not in taken else self.loop, {*taken, *names}))
        return names

    def _extents(self, loop: ForOp) -> list[int]:
        if len(self.factors) < 2:
            raise self.error(f"at least two factors are needed, got {len(self.factors)}", at=loop)
        if any(isinstance(f, float) for f in self.factors):
            raise self.error(f"factors must be whole numbers, got {self.factors}", at=loop)
        if any(f < 0 for f in self.factors) or self.factors.count(0) > 1:
            rule = "factors must be positive, and at most one 0 (inferred)"
            raise self.error(f"{rule}, got {','.join(map(str, self.factors))}", at=loop)
        known = prod(f for f in self.factors if f)
        extents = [f or -(-loop.size // known) for f in self.factors]
        if prod(extents) < loop.size:
            fix = Split(self.block, self.loop, (0, *self.factors[1:]))
            rule = f"factors must cover the extent of '{self.loop}', got {known} for extent {loop.size}"
            raise self.error(rule, fix, loop)
        return extents

    def rewrite(self, plan: Plan) -> None:
        index: IndexExpr = constant(0)
        for name, extent in plan.children:
            index = index * extent + axis(name)
        tail = plan.loop.size - 1 - index
        values = {plan.loop.loop_name: index}
        for block in blocks_in(plan.loop):
            where = [e.substitute(values) for e in block.conditions]
            if plan.has_tail:
                where.append(tail)
            block.rebind([e.substitute(values) for e in block.bindings.data], simplify_conditions(where))
        *outer, (innermost, extent) = plan.children
        loop = new_loop(innermost, extent)
        move_body(plan.loop, loop.body.block)
        for name, extent in reversed(outer):
            loop = new_loop(name, extent, [loop])
        replace_loop(plan.loop, loop)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        loop = nest.loop(self.block, self.loop)
        extents = _sized_extents(loop, [sizes.of(f) for f in self.factors])
        names = self._child_names(loop.names_around - {loop.name})
        value = Index.constant(0)
        for child, extent in zip(names, extents, strict=True):
            value = value * extent + Index.axis(child)
        has_tail = _may_have_tail(loop.extent, product(extents))
        for stage in loop.stages():
            stage.substitute_loops({loop.name: value})
            if has_tail:
                stage.caps.append(Cap.of(value, loop.extent - 1))
        *outer, innermost = [Loop(child, extent) for child, extent in zip(names, extents, strict=True)]
        for part in loop.body:
            innermost.add(part)
        loop.replace(nested(innermost, outer))

    def describe(self) -> str:
        known = " x ".join("what is left" if f == 0 else str(f) for f in self.factors)
        return f"Split loop {self.loop} of {self.block} into {len(self.factors)} loops of {known}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Split, ...]:
        steps: dict[Split, None] = {}
        for func in functions(module_op):
            for block in blocks_in(func):
                for loop in block.enclosing_loops:
                    if loop.loop_kind == "serial" and not loop.notes:
                        for factor in (2, 4, 8, 16, 32):
                            if factor < loop.size:
                                steps[cls(block.block_name, loop.loop_name, (0, factor))] = None
        return tuple(steps)


def _may_have_tail(extent: Size, iterations: Size) -> bool:
    """True where there may be more iterations than before."""
    return not (isinstance(extent, int) and isinstance(iterations, int)) or iterations > extent


def _sized_extents(loop: Loop, factors: list[Size]) -> list[Size]:
    """The factors, with the one that is 0 inferred, rounding up."""
    inferred = [isinstance(f, int) and f == 0 for f in factors]
    known = product([f for f, unknown in zip(factors, inferred, strict=True) if not unknown])
    return [ceil_div(loop.extent, known) if unknown else f for f, unknown in zip(factors, inferred, strict=True)]
