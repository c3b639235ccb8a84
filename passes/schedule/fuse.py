"""Fuse neighbouring loops into one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.index import ZERO, IndexExpr, axis
from ...dialects.loop import ForOp, blocks_in
from ..analysis.nest import (
    find_block,
    find_loop,
    fresh_name,
    functions,
    is_reduce_loop,
    loop_names_around,
    move_body,
    new_loop,
    only_child,
    replace_loop,
    require_plain,
    simplify_conditions,
)
from ..parametric.index import Index
from ..parametric.nest import Loop, Nest
from ..parametric.sizes import Size, Sizes, equal, less, negated, product
from ..primitive import Primitive


@dataclass(frozen=True)
class Plan:
    """The loops from the outside, and the name of the loop they become."""

    loops: tuple[ForOp, ...]
    name: str


@dataclass(frozen=True)
class Fuse(Primitive[Plan]):
    """`for i in 4 { for j in 8 { S(i, j) } }` -> `for i_j in 32 { S(i_j floordiv 8, i_j mod 8) }`

    A loop of one iteration stays at 0, also where later steps give the fused loop more than its extent: `for i in 1 {
    for j in 8 { S(i, j) } }` -> `for i_j in 8 { S(0, i_j) }`.

    Requires: two or more serial loops, each directly in the one before and alone there, all of them over reduce
    iterators or none of them.
    """

    name = "lw-fuse"
    block: str
    loops: tuple[str, ...]

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        if len(self.loops) < 2:
            raise self.error(f"at least two loops are needed, got {len(self.loops)}", at=block)
        loops = [find_loop(self, block, name) for name in self.loops]
        for loop in loops:
            require_plain(self, loop)
        for outer, inner in itertools.pairwise(loops):
            if only_child(outer) is not inner:
                rule = f"each loop must be directly in the one before and alone there, '{inner.loop_name}' is not in"
                raise self.error(f"{rule} '{outer.loop_name}'; reorder first", at=outer)
        kinds = [is_reduce_loop(loop) for loop in loops]
        if any(kinds) and not all(kinds):
            reduce = next(x.loop_name for x, k in zip(loops, kinds, strict=True) if k)
            rule = f"loops over reduce iterators fuse with their like only, '{reduce}' is one and others are not"
            raise self.error(rule, at=loops[0])
        taken = loop_names_around(loops[0]) - set(self.loops)
        return Plan(tuple(loops), fresh_name("_".join(self.loops), taken))

    def rewrite(self, plan: Plan) -> None:
        fused = axis(plan.name)
        values: dict[str, IndexExpr] = {}
        below = 1
        total = prod(loop.size for loop in plan.loops)
        for loop in reversed(plan.loops):
            whole = fused // below
            below *= loop.size
            values[loop.loop_name] = ZERO if loop.size == 1 else whole if below == total else whole % loop.size
        for block in blocks_in(plan.loops[-1]):
            bindings = [e.substitute(values) for e in block.bindings.data]
            where = [e.substitute(values) for e in block.conditions]
            block.rebind(bindings, simplify_conditions(where))
        loop = new_loop(plan.name, total)
        move_body(plan.loops[-1], loop.body.block)
        replace_loop(plan.loops[0], loop)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        loops = [nest.loop(self.block, n) for n in self.loops]
        fused = fresh_name("_".join(self.loops), loops[0].names_around - set(self.loops))
        values: dict[str, Index] = {}
        below: Size = 1
        total = product([x.extent for x in loops])
        for position in range(len(loops) - 1, -1, -1):
            loop = loops[position]
            outermost = equal(product([x.extent for x in loops[:position]]), 1)
            digit = _digit(Index.axis(fused) // below, loop.extent, outermost)
            values[loop.name] = digit.times_where(less(1, loop.extent))
            below = below * loop.extent
        for stage in loops[-1].stages():
            stage.substitute_loops(values)
        new = Loop(fused, total)
        for child in loops[-1].body:
            new.add(child)
        loops[0].replace(new)

    def describe(self) -> str:
        return f"Make one loop of {', '.join(self.loops)} of {self.block}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Fuse, ...]:
        steps: dict[Fuse, None] = {}
        for func in functions(module_op):
            for block in blocks_in(func):
                loops = block.enclosing_loops
                for outer, inner in itertools.pairwise(loops):
                    plain = all(x.loop_kind == "serial" and not x.notes for x in (outer, inner))
                    if plain and only_child(outer) is inner and is_reduce_loop(outer) == is_reduce_loop(inner):
                        steps[cls(block.block_name, (outer.loop_name, inner.loop_name))] = None
        return tuple(steps)


def _digit(value: Index, extent: Size, outermost: Size) -> Index:
    """The value of a loop; that of the outermost one with more than one iteration goes on beyond its extent."""
    if isinstance(outermost, int | float):
        return value if outermost else value % extent
    return value.times_where(outermost) + (value % extent).times_where(negated(outermost))
