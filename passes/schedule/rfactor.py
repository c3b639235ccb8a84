"""Split a reduction into independent partial reductions and a final one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis, IndicesAttr
from ...dialects.index import ZERO, IndexExpr, axis
from ...dialects.loop import (
    AllocOp,
    BlockOp,
    ForOp,
    LoadOp,
    blocks_in,
    buffer_shape,
    buffer_type,
    element_of_buffer,
    scope_of,
)
from ...dialects.te import IndexOp, PredicateOp, YieldOp
from ..analysis.access import is_under, readers
from ..analysis.masked import KEPT
from ..analysis.nest import (
    block_names,
    buffer_name,
    buffer_names,
    find_block,
    find_loop,
    fresh_buffer_name,
    fresh_name,
    function_of,
    functions,
    new_loop,
    ranges_of,
    simplify_conditions,
)
from ..parametric.index import Index
from ..parametric.nest import Access, Buffer, Loop, Nest, SizedAxis, Stage, nested
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._reduction import (
    conditions_at_start,
    loops_to_copy,
    reduce_loop_names,
    spatial_loop_names,
    start_values,
    substitute_in_body,
    wrapped_in,
)
from ._staging import insert_alloc, legal_steps

_TRAPPING = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)


@dataclass(frozen=True)
class Plan:
    """The reduction, its loop to factor, the outermost of its reduce loops, and what to call and where to put things.

    `masked` are the conditions that may leave a partial result without any instance.
    """

    block: BlockOp
    loop: ForOp
    outermost: ForOp
    axis: int
    name: str
    buffers: tuple[str, ...]
    masked: tuple[IndexExpr, ...]


@dataclass(frozen=True)
class Rfactor(Primitive[Plan]):
    """`for i { for k0 { for k1 { block c += S } } }` with `loop=k1` ->

    `for i { for k0 { for k1 { block c_rf(k1 spatial) += S } } for k1 { block c += c_rf[i, k1] } }`

    The partial results have a buffer with the loop as one more dimension, at `axis`: by default the last one where the
    loop is innermost (it is then what a vector holds), else the first. The final reduction follows the outermost reduce
    loop, in copies of the other loops in there. A partial result that no instance reaches holds the identity.

    Requires: a reduction, by any combiner, that initialises itself; `loop` one of its reduce loops and of no other
    use to it; nobody who reads the result inside of its reduce loops.
    """

    name = "lw-rfactor"
    block: str
    loop: str
    axis: int | None = None

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        if not block.has_init:
            reason = "its start is a block of its own" if block.is_reduction else "it reduces nothing"
            rule = f"block '{self.block}' must be a reduction that initialises itself, {reason}"
            raise self.error(f"{rule}; rfactor before decompose_reduction" if block.is_reduction else rule, at=block)
        loop = find_loop(self, block, self.loop)
        loops = block.enclosing_loops
        reducing = reduce_loop_names(block)
        if self.loop not in reducing:
            rule = f"the loop must be one that '{self.block}' reduces over, '{self.loop}' is not"
            known = [x.loop_name for x in loops if x.loop_name in reducing]
            raise self.error(rule, Rfactor(self.block, known[-1], self.axis) if known else None, loop)
        if both := reducing & spatial_loop_names(block):
            rule = f"no loop may be bound to both spatial and reduce iterators, '{min(both)}' is"
            raise self.error(rule, at=block)
        outermost = next(x for x in loops if x.loop_name in reducing)
        self._check_readers(block, outermost)
        masked = self._masked(block, reducing)
        func = function_of(block)
        taken = buffer_names(func)
        names: list[str] = []
        for output in block.outputs:
            names.append(fresh_buffer_name(f"{buffer_name(output)}_rf", {*taken, *names}))
        name = fresh_name(f"{self.block}_rf", block_names(func))
        return Plan(block, loop, outermost, self._axis(block, loop), name, tuple(names), masked)

    def _check_readers(self, block: BlockOp, outermost: ForOp) -> None:
        for output in block.outputs:
            for reader in readers(output):
                if is_under(reader, outermost):
                    rule = f"the result must be read behind loop '{outermost.loop_name}' only"
                    raise self.error(f"{rule}, block '{reader.block_name}' reads it inside", at=reader)

    def _axis(self, block: BlockOp, loop: ForOp) -> int:
        ranks = {len(w) for w in block.write_indices}
        rank = min(ranks)
        position = self._position(ranks, block.parent_op() is loop)
        if not 0 <= position <= rank:
            rule = f"axis must be from {-rank - 1} to {rank} for a result with {rank} dimensions, got {self.axis}"
            raise self.error(rule, Rfactor(self.block, self.loop), block)
        return position

    def _position(self, ranks: set[int], innermost: bool) -> int:
        """The dimension of the partial results as it is asked for, else the last or the first."""
        rank = min(ranks)
        if self.axis is None:
            return rank if innermost and len(ranks) == 1 else 0
        return self.axis + rank + 1 if self.axis < 0 else self.axis

    def _masked(self, block: BlockOp, reducing: set[str]) -> tuple[IndexExpr, ...]:
        """Return the conditions that may be false for all instances of one partial result."""
        ranges = ranges_of(block.enclosing_loops)
        start = {name: ZERO for name in reducing if name != self.loop}
        masked = []
        for condition in block.conditions:
            used = condition.axes()
            if not used & reducing:
                continue
            if not simplify_conditions([condition.substitute(start)], ranges):
                continue
            if lost := used - reducing - _iterators_of_loops(block).keys():
                rule = (
                    f"a predicate over reduce loops and '{min(lost)}', which '{self.block}' has no iterator for, cannot"
                )
                raise self.error(f"{rule} be taken apart: '{condition} >= 0'", at=block)
            masked.append(condition)
        if masked and may_trap(block):
            rule = f"a partial result without instances would divide by elements that do not exist, '{masked[0]} >= 0'"
            raise self.error(f"{rule} is false for some", at=block)
        return tuple(masked)

    def rewrite(self, plan: Plan) -> None:
        block = plan.block
        partial = _partial_axis(block, plan.loop)
        buffers: list[SSAValue] = []
        func = function_of(block)
        for name, output in zip(plan.buffers, block.outputs, strict=True):
            shape = list(buffer_shape(output))
            shape.insert(plan.axis, plan.loop.size)
            alloc = AllocOp(name, buffer_type(element_of_buffer(output), shape, scope_of(output)))
            insert_alloc(func, alloc)
            buffers.append(alloc.buffer)
        final = _final_block(block, plan, partial, buffers)
        copied = loops_to_copy(block, block.enclosing_loops[block.enclosing_loops.index(plan.outermost) :])
        nest = wrapped_in(new_loop(plan.loop.loop_name, plan.loop.size, [final]), copied, keep_lanes=False)
        rf = _partial_block(block, plan, partial, buffers)
        parent = block.parent_block()
        assert parent is not None
        parent.insert_op_before(rf, block)
        parent.erase_op(block)
        place = plan.outermost.parent_block()
        assert place is not None
        place.insert_op_after(nest, plan.outermost)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        loop = nest.loop(self.block, self.loop)
        reducing = stage.loop_names(reduce=True)
        outermost = next(x for x in stage.loops if x.name in reducing)
        position = self._position({len(w.indices) for w in stage.writes}, stage.parent is loop)
        buffers: list[Buffer] = []
        for real in [w.buffer for w in stage.writes]:
            label = fresh_buffer_name(f"{real.name}_rf", nest.buffers)
            shape = [*real.shape[:position], loop.extent, *real.shape[position:]]
            nest.buffers[label] = Buffer(label, shape, real.element_bytes, real.scope, False)
            buffers.append(nest.buffers[label])
        spatial = [a for a in stage.iterators if not a.is_reduce]
        partial = fresh_name(loop.name, {a.name for a in spatial})
        places = [[*w.indices[:position], Index.axis(partial), *w.indices[position:]] for w in stage.writes]
        axes = [SizedAxis(a.name, a.extent, False, a.bound) for a in spatial]
        axes.append(SizedAxis(partial, loop.extent, True, Index.axis(loop.name)))
        writes = [Access(w.buffer, list(w.indices)) for w in stage.writes]
        loads = [Access(b, list(p)) for b, p in zip(buffers, places, strict=True)]
        final = Stage(self.block, axes, writes, loads, dict(stage.joining), stage.combiner, dict(stage.joining))
        rf_name = fresh_name(f"{self.block}_rf", nest.stage_names)
        _insert_final(final, stage, loop, outermost)
        _make_partial(stage, loop, partial, reducing, rf_name)
        stage.writes = [Access(b, p) for b, p in zip(buffers, places, strict=True)]

    def describe(self) -> str:
        return f"Compute partial results of {self.block} for loop {self.loop}, and combine them afterwards."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Rfactor, ...]:
        steps: list[Rfactor] = []
        for func in functions(module_op):
            for block in blocks_in(func):
                if block.has_init:
                    reducing = reduce_loop_names(block)
                    names = [x.loop_name for x in block.enclosing_loops if x.loop_name in reducing]
                    steps += [cls(block.block_name, name) for name in names]
        return legal_steps(steps, module_op)


def may_trap(block: BlockOp) -> bool:
    """True where the body divides integers by what may be 0, or -1, where nothing is loaded: by anything computed."""
    return any(isinstance(op, _TRAPPING) and not _is_safe_divisor(op.operands[1]) for op in block.body.block.ops)


def _is_safe_divisor(value: SSAValue) -> bool:
    if not isinstance(value.owner, arith.ConstantOp) or not isinstance(value.owner.value, IntegerAttr):
        return False
    return value.owner.value.value.data not in (0, -1)


def _iterators_of_loops(block: BlockOp) -> dict[str, IndexExpr]:
    """Return the spatial iterator that each loop is, where one is just that."""
    bound = zip(block.axes, block.bindings.data, strict=True)
    plain = ((a.name, e.as_axis()) for a, e in bound if not a.reduce)
    return {loop: axis(name) for name, loop in plain if loop is not None}


def _partial_axis(block: BlockOp, loop: ForOp) -> Axis:
    return Axis(fresh_name(loop.loop_name, {a.name for a in block.axes if not a.reduce}), loop.size)


def _with_partial(write: Sequence[IndexExpr], position: int, partial: Axis) -> tuple[IndexExpr, ...]:
    return (*write[:position], axis(partial.name), *write[position:])


def _partial_block(block: BlockOp, plan: Plan, partial: Axis, buffers: Sequence[SSAValue]) -> BlockOp:
    """Build the block of partial results, with the body of `block`, which is left without one."""
    iterators = [(a, e) for a, e in zip(block.axes, block.bindings.data, strict=True) if not a.reduce]
    iterators.append((partial, axis(plan.loop.loop_name)))
    remaining = _remaining_axes(block, plan.loop, {a.name for a, _ in iterators})
    iterators += [(each, axis(loop)) for loop, each in remaining.items()]
    inside = {plan.loop.loop_name: axis(partial.name), **{loop: axis(each.name) for loop, each in remaining.items()}}
    reduced = {a.name: e.substitute(inside) for a, e in zip(block.axes, block.bindings.data, strict=True) if a.reduce}
    combine = block.combine.clone() if block.combine is not None and remaining else None
    body = block.detach_region(block.body)
    substitute_in_body(body, reduced)
    if plan.masked:
        iterators_of = {**_iterators_of_loops(block), **inside}
        _mask(body, [e.substitute(iterators_of) for e in plan.masked], start_values(block))
    return BlockOp(
        plan.name,
        [a for a, _ in iterators],
        [e for _, e in iterators],
        buffers,
        [_with_partial(w, plan.axis, partial) for w in block.write_indices],
        body,
        block.combiner.data if remaining else "none",
        where=[e for e in block.conditions if e not in plan.masked],
        identity=block.identity.data if block.identity is not None and remaining else None,
        combine=combine,
    )


def _remaining_axes(block: BlockOp, factored: ForOp, taken: set[str]) -> dict[str, Axis]:
    """Return a reduce iterator for each loop that the partial results are still reduced over, by the loop's name."""
    reducing, names, found = reduce_loop_names(block), set(taken), dict[str, Axis]()
    for loop in block.enclosing_loops:
        if loop.loop_name in reducing and loop is not factored:
            found[loop.loop_name] = Axis(fresh_name(loop.loop_name, names), loop.size, True)
            names.add(found[loop.loop_name].name)
    return found


def _mask(body: Region, conditions: list[IndexExpr], starts: Sequence[arith.ConstantOp | IndexOp]) -> None:
    """Let the body give the start values, and load nothing, where a condition fails."""
    block = body.block
    for op in block.ops:
        if isinstance(op, LoadOp):
            op.where = IndicesAttr((*op.conditions, *(c for c in conditions if c not in op.conditions)))
    last = block.last_op
    assert isinstance(last, YieldOp)
    holds = PredicateOp(conditions)
    chosen: list[Operation] = [
        arith.SelectOp(holds.result, value, start.result) for value, start in zip(last.values, starts, strict=True)
    ]
    block.insert_ops_before([holds, *starts, *chosen], last)
    block.insert_op_before(YieldOp.create(operands=[op.results[0] for op in chosen]), last)
    block.erase_op(last)


def _final_block(block: BlockOp, plan: Plan, partial: Axis, buffers: Sequence[SSAValue]) -> BlockOp:
    """Build the block that joins the partial results, under the name of `block`."""
    iterators = [(a, e) for a, e in zip(block.axes, block.bindings.data, strict=True) if not a.reduce]
    iterators.append((Axis(partial.name, partial.extent, True), axis(plan.loop.loop_name)))
    writes = zip(buffers, block.write_indices, strict=True)
    loads = [LoadOp(buffer, _with_partial(write, plan.axis, partial)) for buffer, write in writes]
    return BlockOp(
        block.block_name,
        [a for a, _ in iterators],
        [e for _, e in iterators],
        list(block.outputs),
        block.write_indices,
        Region(Block([*loads, YieldOp.create(operands=[load.result for load in loads])])),
        block.combiner.data,
        where=conditions_at_start(block),
        identity=block.identity.data if block.identity is not None else None,
        combine=block.combine.clone() if block.combine is not None else None,
        annotations={key: note for key, note in block.notes.items() if key != KEPT},
    )


def _insert_final(final: Stage, stage: Stage, loop: Loop, outermost: Loop) -> None:
    """Put the final reduction behind the reduce loops, in copies of the spatial loops in there."""
    loops = stage.loops
    wanted = stage.loop_names(reduce=False)
    around = [x for x in loops[loops.index(outermost) :] if x.name in wanted]
    copied = [Loop(x.name, x.extent, "serial" if x.kind == "vectorized" else x.kind) for x in around]
    place = outermost.parent
    assert place is not None
    place.add(nested(final, [*copied, Loop(loop.name, loop.extent)]), place.body.index(outermost) + 1)


def _make_partial(stage: Stage, loop: Loop, partial: str, reducing: set[str], new_name: str) -> None:
    """Turn the stage into the one of partial results, whose iterators are the reduce loops themselves."""
    axes = [a for a in stage.iterators if not a.is_reduce]
    axes.append(SizedAxis(partial, loop.extent, False, Index.axis(loop.name)))
    names = {a.name for a in axes}
    inside: dict[str, Index] = {loop.name: Index.axis(partial)}
    remaining = False
    for around in stage.loops:
        if around.name in reducing and around is not loop:
            fresh = fresh_name(around.name, names)
            names.add(fresh)
            inside[around.name] = Index.axis(fresh)
            axes.append(SizedAxis(fresh, around.extent, True, Index.axis(around.name)))
            remaining = True
    reduced = {a.name: a.bound.substitute(inside) for a in stage.iterators if a.is_reduce}
    stage.name = new_name
    stage.iterators = axes
    for load in stage.loads:
        load.indices = [e.substitute(reduced) for e in load.indices]
    if not remaining:
        stage.arithmetic = dict(Counter(stage.arithmetic) - Counter(stage.joining))
        stage.combiner, stage.joining = "none", {}
