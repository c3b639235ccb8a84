"""Take the initialisation of a reduction out of its loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Region

from ...dialects.loop import BlockOp, ForOp, blocks_in
from ...dialects.te import YieldOp
from ..analysis.disjoint import touched_apart
from ..analysis.nest import block_names, buffer_name, find_block, find_loop, fresh_name, function_of, functions
from ..parametric.nest import Access, Loop, Nest, SizedAxis, Stage, nested
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._reduction import conditions_at_start, loops_to_copy, reduce_loop_names, start_values, wrapped_in


@dataclass(frozen=True)
class Plan:
    """The reduction, the loop to initialise before, the loops to copy and the name of the new block."""

    block: BlockOp
    loop: ForOp
    copied: tuple[ForOp, ...]
    name: str


@dataclass(frozen=True)
class DecomposeReduction(Primitive[Plan]):
    """`for i { for k { for j { block c += S } } }` ->

    `for i { for j { block c_init = identity } for k { for j { block c no_init += S } } }` with `loop=k`

    The loops at or inside `loop` that the reduction's elements depend on are copied with their names and kinds.

    Requires: a reduction that initialises itself; no reduce loop of it outside of `loop`; no element that is computed
    again by another iteration of the loops copied.
    """

    name = "lw-decompose-reduction"
    block: str
    loop: str

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        if not block.has_init:
            reason = "its start is a block of its own already" if block.is_reduction else "it reduces nothing"
            raise self.error(f"block '{self.block}' must be a reduction that initialises itself, {reason}", at=block)
        loop = find_loop(self, block, self.loop)
        loops = block.enclosing_loops
        position = loops.index(loop)
        reducing = reduce_loop_names(block)
        outside = next((x for x in loops[:position] if x.loop_name in reducing), None)
        if outside is not None:
            fix = DecomposeReduction(self.block, outside.loop_name)
            rule = f"initialisation must stand before every reduce loop, '{outside.loop_name}' is around '{self.loop}'"
            raise self.error(rule, fix, outside)
        copied = loops_to_copy(block, loops[position:])
        for inner in loops[position:]:
            if inner.loop_name in reducing:
                continue
            for output, write in zip(block.outputs, block.write_indices, strict=True):
                if inner.size > 1 and not touched_apart(inner, [(block, write)]):
                    rule = "no element may be computed twice behind its initialisation, but iterations of"
                    rule = f"{rule} '{inner.loop_name}' may share elements of '{buffer_name(output)}'"
                    raise self.error(rule, at=inner)
        return Plan(block, loop, tuple(copied), fresh_name(f"{self.block}_init", block_names(function_of(block))))

    def rewrite(self, plan: Plan) -> None:
        block = plan.block
        spatial = [(a, e) for a, e in zip(block.axes, block.bindings.data, strict=True) if not a.reduce]
        values = start_values(block)
        body = Block([*values, YieldOp.create(operands=[v.result for v in values])])
        init = BlockOp(
            plan.name,
            [axis for axis, _ in spatial],
            [expr for _, expr in spatial],
            list(block.outputs),
            block.write_indices,
            Region(body),
            where=conditions_at_start(block),
        )
        block.no_init = UnitAttr()
        parent = plan.loop.parent_block()
        assert parent is not None
        parent.insert_op_before(wrapped_in(init, plan.copied, keep_lanes=True), plan.loop)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        loop = nest.loop(self.block, self.loop)
        loops = stage.loops
        spatial = stage.loop_names(reduce=False)
        axes = [SizedAxis(a.name, a.extent, False, a.bound) for a in stage.iterators if not a.is_reduce]
        writes = [Access(w.buffer, list(w.indices)) for w in stage.writes]
        init = Stage(fresh_name(f"{self.block}_init", nest.stage_names), axes, writes, [])
        copied = [Loop(x.name, x.extent, x.kind) for x in loops[loops.index(loop) :] if x.name in spatial]
        place = loop.parent
        assert place is not None
        place.add(nested(init, copied), place.body.index(loop))

    def describe(self) -> str:
        return f"Set the initial value of {self.block} before loop {self.loop} begins."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[DecomposeReduction, ...]:
        steps: list[DecomposeReduction] = []
        for func in functions(module_op):
            for block in blocks_in(func):
                if block.has_init:
                    steps += [cls(block.block_name, loop.loop_name) for loop in _places(block)]
        return tuple(steps)


def _places(block: BlockOp) -> list[ForOp]:
    """Return the loops before which `block` may be initialised."""
    reducing = reduce_loop_names(block)
    places: list[ForOp] = []
    loops = block.enclosing_loops
    for position, loop in enumerate(loops):
        spatial = [x for x in loops[position:] if x.loop_name not in reducing and x.size > 1]
        if all(touched_apart(x, [(block, w)]) for x in spatial for w in block.write_indices):
            places.append(loop)
        if loop.loop_name in reducing:
            break
    return places
