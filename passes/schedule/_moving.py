"""Moving blocks, shared by primitives that move or remove one: what goes along, what stays, what is needed there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.index import IndexExpr, Ranges
from ...dialects.loop import AllocOp, BlockOp, ForOp, blocks_in, buffer_shape
from ...dialects.loop_notes import PIPELINE_STAGES
from ..analysis.access import writers
from ..analysis.domain import conditions_on_iterators
from ..analysis.nest import buffer_name, function_of, nest_around, only_child, ranges_of, require_plain
from ..analysis.regions import Interval, covers, interval_of
from ..primitive import ScheduleError


@dataclass(frozen=True)
class Move:
    """The block, the operation it comes beside, its loops there as (name, extent), and what its iterators are."""

    block: BlockOp
    beside: Operation
    loops: tuple[tuple[str, int], ...]
    bindings: tuple[IndexExpr, ...]
    where: tuple[IndexExpr, ...]


def move(plan: Move, place: Callable[[Operation], InsertPoint]) -> None:
    """Take the block out of its loops, and put it with those of the plan before or after the operation."""
    take_out(plan.block)
    plan.block.rebind(plan.bindings, plan.where)
    Rewriter.insert_op(nest_around(plan.block, plan.loops), place(plan.beside))


def path_of(loop: ForOp) -> list[ForOp]:
    """Return the loops around `loop` and itself, outermost first."""
    path = [loop]
    while isinstance(parent := path[-1].parent_op(), ForOp):
        path.append(parent)
    path.reverse()
    return path


def own_loops(block: BlockOp) -> list[ForOp]:
    """Return the loops that hold nothing but `block`, outermost first."""
    loops: list[ForOp] = []
    op: Operation = block
    while isinstance(parent := op.parent_op(), ForOp) and only_child(parent) is op:
        loops.append(parent)
        op = parent
    loops.reverse()
    return loops


def take_out(block: BlockOp) -> None:
    """Detach `block`, and drop the loops that held nothing else."""
    loops = own_loops(block)
    _detach(block)
    if loops:
        _detach(loops[0])


def _detach(op: Operation) -> None:
    around = op.parent_block()
    assert around is not None
    around.detach_op(op)


def child_of(loop: ForOp, inside: Operation) -> Operation:
    """Return the operation directly in `loop` that is or holds `inside`."""
    op = inside
    while (parent := op.parent_op()) is not loop:
        assert parent is not None
        op = parent
    return op


def blocks_at(op: Operation) -> list[BlockOp]:
    """Return the blocks in `op`, or `op` itself."""
    return [op] if isinstance(op, BlockOp) else list(blocks_in(op))


def program_order(block: BlockOp) -> dict[BlockOp, int]:
    """Return the position of each block of the function around `block`."""
    return {b: k for k, b in enumerate(blocks_in(function_of(block)))}


def require_unmarked_nest(step: object, block: BlockOp) -> None:
    """Refuse where a loop that would be dropped carries marks, or where the block uses stages of a pipelined loop."""
    for loop in own_loops(block):
        require_plain(step, loop)
    for buffer in (*block.outputs, *(load.buffer for load in block.loads)):
        if any(PIPELINE_STAGES in writer.notes for writer in writers(buffer)):
            rule = f"block '{block.block_name}' must stay in the loop that is pipelined, '{buffer_name(buffer)}' has"
            raise ScheduleError(step, f"{rule} stages there; do this step before pipelining", at=block)


def require_only_writer(step: object, block: BlockOp) -> None:
    """Refuse a block that shares its output with another, or that starts from what another wrote."""
    name = block.block_name
    for output in block.outputs:
        others = [w.block_name for w in writers(output) if w is not block]
        if others:
            rule = f"'{buffer_name(output)}' must be written by '{name}' alone, '{others[0]}' writes it too"
            raise ScheduleError(step, f"{rule}; do this step before decompose_reduction", at=block)
    if any(load.buffer in block.outputs for load in block.loads):
        raise ScheduleError(step, f"block '{name}' must not read what it writes", at=block)


def required_conditions(step: object, block: BlockOp) -> list[IndexExpr]:
    """Return the part of a block's predicate that holds wherever it stands; refuses what only its loops can say."""
    found = conditions_on_iterators(block)
    if found is None:
        rule = f"the predicate of '{block.block_name}' must follow from its iterators"
        raise ScheduleError(step, f"{rule}; do this step before splitting its loops", at=block)
    return found


def require_no_lanes(step: object, path: Iterable[ForOp]) -> None:
    """Refuse a place inside of a vectorized loop."""
    for loop in path:
        if loop.loop_kind == "vectorized":
            rule = f"a vectorized loop must stay innermost, '{loop.loop_name}' is vectorized"
            raise ScheduleError(step, f"{rule}; do this step before marking the loop", at=loop)


def written_axes(block: BlockOp) -> dict[str, int] | None:
    """The dimension that each spatial iterator of `block` writes; None unless these are plain, different and all.

    A dimension of extent 1 may be written at 0 instead. All outputs must be written at the same indices.
    """
    indices = block.write_indices[0]
    if any(other != indices for other in block.write_indices[1:]):
        return None
    found: dict[str, int] = {}
    for dimension, (expr, extent) in enumerate(zip(indices, buffer_shape(block.outputs[0]), strict=True)):
        name = expr.as_axis()
        if name is not None and name not in found:
            found[name] = dimension
        elif extent != 1 or expr.terms:
            return None
    return found if found.keys() == {a.name for a in block.axes if not a.reduce} else None


def require_inputs(
    step: object,
    block: BlockOp,
    bound: Mapping[str, IndexExpr],
    inner: Ranges,
    path: Sequence[ForOp],
    before: int,
    order: Mapping[BlockOp, int],
    without: BlockOp | None = None,
) -> None:
    """Refuse a place where something that `block` reads is not there yet, or not all of it.

    In its new place `block` stands under `path` and, within, loops with the ranges `inner`, its iterators are `bound`,
    and blocks with a position in `order` below `before` have run. What the block `without` writes is not needed.
    """
    require_no_race(step, block, path)
    nested = len(own_loops(block)) < len(block.enclosing_loops)
    for load in block.loads:
        for writer in writers(load.buffer):
            if writer is block or writer is without:
                continue
            if order[writer] >= before:
                rule = f"what '{block.block_name}' reads must be there, but '{writer.block_name}' writes"
                raise ScheduleError(step, f"{rule} '{buffer_name(load.buffer)}' later", at=writer)
            shared = _common(writer.enclosing_loops, path)
            if shared or nested:
                rest = {**ranges_of(path[len(shared) :]), **inner}
                read = [e.substitute(bound) for e in load.indices.data]
                _require_there(step, block, load.buffer, writer, shared, [interval_of(e, rest) for e in read])


def require_no_race(step: object, block: BlockOp, path: Sequence[ForOp]) -> None:
    """Refuse a place under `path` where iterations that run at once would no longer have an input of their own."""
    for load in block.loads:
        for writer in writers(load.buffer):
            for loop in _common(writer.enclosing_loops, block.enclosing_loops):
                if loop not in path and loop.loop_kind not in ("serial", "unrolled", "vectorized"):
                    rule = f"'{writer.block_name}' and '{block.block_name}' must stay together in '{loop.loop_name}'"
                    raise ScheduleError(step, f"{rule}, each iteration of which has its own share of data", at=loop)


def _common(a: Sequence[ForOp], b: Sequence[ForOp]) -> list[ForOp]:
    shared: list[ForOp] = []
    for x, y in zip(a, b, strict=False):
        if x is not y:
            break
        shared.append(x)
    return shared


def _require_there(
    step: object, block: BlockOp, buffer: SSAValue, writer: BlockOp, shared: list[ForOp], read: list[Interval]
) -> None:
    """Refuse where one iteration of the `shared` loops does not finish all of `buffer` that is `read` in it."""
    name = buffer_name(buffer)
    bound = writer.bound
    for axis_ in writer.axes:
        names = bound[axis_.name].axes() if axis_.reduce else ()
        if unfinished := [x for x in shared if x.loop_name in names and x.size > 1]:
            rule = f"'{name}' must be final when it is read, loop '{unfinished[0].loop_name}' still reduces into it"
            raise ScheduleError(step, rule, at=unfinished[0])
    outer = ranges_of(shared)
    inside = ranges_of(writer.enclosing_loops[len(shared) :])
    position = list(writer.outputs).index(buffer)
    written = [interval_of(e.substitute(bound), inside) for e in writer.write_indices[position]]
    for part, wanted, extent in zip(written, read, buffer_shape(buffer), strict=True):
        if not covers(part, wanted, extent, outer):
            rule = f"'{block.block_name}' would read more of '{name}' than '{writer.block_name}' computes there"
            raise ScheduleError(step, f"{rule}; move '{writer.block_name}' afterwards", at=writer)


def drop_buffer(buffer: SSAValue) -> None:
    """Erase an allocation that nothing uses."""
    assert isinstance(buffer.owner, AllocOp)
    _detach(buffer.owner)
    buffer.owner.erase()
