"""Put the loops of a nest in another order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.loop import BlockOp, ForOp, blocks_in
from ..analysis.access import order_hazard
from ..analysis.nest import find_block, find_loop, functions, move_body, new_loop, only_child, replace_loop
from ..parametric.nest import Loop, Nest, nested
from ..parametric.sizes import Sizes
from ..primitive import Primitive


@dataclass(frozen=True)
class Plan:
    """The loops from the outside as they stand, and as they shall stand."""

    old: tuple[ForOp, ...]
    new: tuple[ForOp, ...]


@dataclass(frozen=True)
class Reorder(Primitive[Plan]):
    """`for i { for k { for j { S } } }` -> `for k { for j { for i { S } } }` for `loops=k,j,i`

    Loops between the named ones keep their places: the named ones are permuted among the places they hold.

    Requires: no other loop or block between the outermost and the innermost of them; where several blocks stand below,
    all that passes between those stays within one iteration.
    """

    name = "lw-reorder"
    block: str
    loops: tuple[str, ...]

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        named = [find_loop(self, block, name) for name in self.loops]
        if len(set(self.loops)) != len(self.loops) or len(self.loops) < 2:
            raise self.error("two or more different loops are needed", at=block)
        around = block.enclosing_loops
        places = sorted(around.index(loop) for loop in named)
        old = around[places[0] : places[-1] + 1]
        for outer, inner in itertools.pairwise(old):
            if only_child(outer) is not inner:
                rule = f"the loops must be perfectly nested, '{outer.loop_name}' holds more than '{inner.loop_name}'"
                raise self.error(rule, at=outer)
        order = iter(named)
        chosen = set(named)
        new = [next(order) if loop in chosen else loop for loop in old]
        if new != old and (hazard := order_hazard(old)) is not None:
            raise self.error(f"the dependences must allow the order, but {hazard}", at=old[0])
        self._keep_lanes_inside(block, new)
        return Plan(tuple(old), tuple(new))

    def _keep_lanes_inside(self, block: BlockOp, new: list[ForOp]) -> None:
        for outer, inner in itertools.pairwise(new):
            if outer.loop_kind == "vectorized":
                rule = f"a vectorized loop must stay innermost, '{inner.loop_name}' would be in '{outer.loop_name}'"
                raise self.error(rule, at=block)

    def rewrite(self, plan: Plan) -> None:
        if plan.new == plan.old:
            return
        inner: ForOp | None = None
        for loop in reversed(plan.new):
            copy = new_loop(loop.loop_name, loop.size, [inner] if inner is not None else [], loop.loop_kind)
            copy.annotations = loop.annotations
            if inner is None:
                move_body(plan.old[-1], copy.body.block)
            inner = copy
        assert inner is not None
        replace_loop(plan.old[0], inner)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        around = nest.stage(self.block).loops
        named = [nest.loop(self.block, n) for n in self.loops]
        places = sorted(around.index(loop) for loop in named)
        old = around[places[0] : places[-1] + 1]
        order = iter(named)
        new = [next(order) if loop in named else loop for loop in old]
        *outer, innermost = [Loop(x.name, x.extent, x.kind, x.notes) for x in new]
        for child in old[-1].body:
            innermost.add(child)
        old[0].replace(nested(innermost, outer))

    def describe(self) -> str:
        return f"Order the loops of {self.block}, from the outside in: {', '.join(self.loops)}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Reorder, ...]:
        steps: dict[Reorder, None] = {}
        for func in functions(module_op):
            for block in blocks_in(func):
                loops = block.enclosing_loops
                for outer, inner in itertools.pairwise(loops):
                    lanes = "vectorized" in (outer.loop_kind, inner.loop_kind)
                    if only_child(outer) is inner and not lanes and order_hazard([outer, inner]) is None:
                        steps[cls(block.block_name, (inner.loop_name, outer.loop_name))] = None
        return tuple(steps)
