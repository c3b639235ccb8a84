"""Readers and writers of buffers, and the dependences by which loops keep their order or may run in parallel."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.index import IndexExpr
from ...dialects.interpret.loop import outside_reduction
from ...dialects.loop import BlockOp, ForOp, LoadOp, blocks_in, scope_of
from .disjoint import Access, touched_apart
from .nest import buffer_name, loops_reduced, reduces_over


def writers(buffer: SSAValue) -> list[BlockOp]:
    """Return the blocks that write `buffer`, in no particular order."""
    return [use.operation for use in buffer.uses if isinstance(use.operation, BlockOp)]


def reads(buffer: SSAValue) -> list[LoadOp]:
    """Return the loads of `buffer`."""
    return [use.operation for use in buffer.uses if isinstance(use.operation, LoadOp)]


def readers(buffer: SSAValue) -> list[BlockOp]:
    """Return the blocks that read `buffer`, each once."""
    found: dict[BlockOp, None] = {}
    for load in reads(buffer):
        block = load.parent_op()
        assert isinstance(block, BlockOp)
        found[block] = None
    return list(found)


def producers(block: BlockOp) -> list[BlockOp]:
    """Return the blocks that write what `block` reads, itself excluded."""
    found = {w: None for load in block.loads for w in writers(load.buffer) if w is not block}
    return list(found)


def consumers(block: BlockOp) -> list[BlockOp]:
    """Return the blocks that read what `block` writes, itself excluded."""
    found = {r: None for output in block.outputs for r in readers(output) if r is not block}
    return list(found)


def is_argument(buffer: SSAValue) -> bool:
    """True for a function argument: seen from outside, so it keeps its shape and stays."""
    return isinstance(buffer.owner, Block)


def is_under(op: Operation, loop: ForOp) -> bool:
    """True where `op` is inside `loop`."""
    parent = op.parent_op()
    while parent is not None:
        if parent is loop:
            return True
        parent = parent.parent_op()
    return False


def loops_around(op: Operation) -> Iterator[ForOp]:
    """Return the loops around `op`, innermost first."""
    parent = op.parent_op()
    while isinstance(parent, ForOp):
        yield parent
        parent = parent.parent_op()


def shared_loops(a: BlockOp, b: BlockOp) -> list[ForOp]:
    """Return the loops around both blocks, outermost first."""
    shared = []
    for x, y in zip(a.enclosing_loops, b.enclosing_loops, strict=False):
        if x is not y:
            break
        shared.append(x)
    return shared


def is_private(loop: ForOp, buffer: SSAValue) -> bool:
    """True for a buffer that is used inside of `loop` only, as `owning_loops` says: each iteration has its own."""
    if is_argument(buffer):
        return False
    for use in buffer.uses:
        block = use.operation if isinstance(use.operation, BlockOp) else use.operation.parent_op()
        assert isinstance(block, BlockOp)
        path = block.enclosing_loops
        if loop not in (outside_reduction(block, path) if block is use.operation else path):
            return False
    return True


def shares_a_block(loop: ForOp) -> bool:
    """True for loops over threads or virtual threads, whose iterations share the thread block's shared memory."""
    return loop.loop_kind == "vthread" or loop.loop_kind.startswith("threadIdx")


def axis_bound_twice(loop: ForOp) -> ForOp | None:
    """Return a loop around `loop` on the same block or thread axis, unless the two are a cooperative fetch."""
    same = _on_same_axis(loop)
    return next((outer for outer in same if not filled_together(loop, outer, loop.loop_kind)), None)


def filled_with_all_threads(buffer: SSAValue) -> ForOp | None:
    """Return a loop by which `buffer` is fetched cooperatively: on a thread axis that a loop around it has as well."""
    around = (loop for block in writers(buffer) for loop in block.enclosing_loops)
    return next((x for x in around if _on_same_axis(x)), None)


def _on_same_axis(loop: ForOp) -> list[ForOp]:
    """Return the loops around `loop` that are bound to the same axis."""
    return [outer for outer in loops_around(loop) if outer.loop_kind == loop.loop_kind and "Idx" in loop.loop_kind]


def filled_together(inner: ForOp, outer: ForOp, axis: str) -> bool:
    """True where `inner`, bound to a thread axis that `outer` around it is bound to, is a cooperative fetch.

    That is so where all that is written in it is shared by the threads of a block, and the same for each of them.
    """
    if not axis.startswith("threadIdx"):
        return False
    for block in blocks_in(inner):
        if any(scope_of(output) != "shared" for output in block.outputs):
            return False
        named = inner.loop_name != outer.loop_name  # where both are called by the axis, the inner one's value is meant
        if named and any(outer.loop_name in e.axes() for e in (*block.bindings.data, *block.conditions)):
            return False
    return True


def split_between_threads(loop: ForOp, buffer: SSAValue) -> bool:
    """True where each iteration of `loop` writes its own part of a buffer that is used inside of it only."""
    if not is_private(loop, buffer):
        return False
    for block in writers(buffer):
        bound = block.bound
        for output, write in zip(block.outputs, block.write_indices, strict=True):
            if output is buffer and any(loop.loop_name in e.substitute(bound).axes() for e in write):
                return True
    return False


def order_hazard(loops: list[ForOp]) -> str | None:
    """The reason why the perfectly nested `loops` must keep their order, or None.

    One block below may be reordered freely, as reductions are free to change their order; but a loop that computes the
    elements of a reduction again must stay outside of the reduce loops. Several blocks may where everything passed
    between them stays within one iteration of all the loops.
    """
    innermost = loops[-1]
    inside = list(blocks_in(innermost))
    for block in inside:
        again = _computed_again(block, loops)
        if again is not None:
            return f"'{again.loop_name}' computes the reduction '{block.block_name}' again"
    if len(inside) < 2:
        return None
    for block in inside:
        for load in block.loads:
            if is_private(innermost, load.buffer):
                continue
            for writer in writers(load.buffer):
                if is_under(writer, innermost):
                    name = buffer_name(load.buffer)
                    return f"'{name}' is passed from '{writer.block_name}' to '{block.block_name}' across iterations"
    return None


def _computed_again(block: BlockOp, loops: list[ForOp]) -> ForOp | None:
    """The first of `loops` whose iterations each reduce to the same elements from the start, if any of them reduces."""
    reducing = loops_reduced(block)
    if not any(loop.loop_name in reducing for loop in loops):
        return None
    for loop in loops:
        if loop.size == 1 or loop.loop_name in reducing:
            continue
        if not all(touched_apart(loop, [(block, write)]) for write in block.write_indices):
            return loop
    return None


def parallel_hazard(loop: ForOp, joined: bool = False) -> str | None:
    """The reason why the iterations of `loop` must not run at once, or None.

    With `joined`, reductions over the loop are no reason: who asks joins the partial results of the iterations.
    """
    reducing = reduces_over(loop)
    if reducing and not joined:
        return f"block '{reducing[0].block_name}' reduces over it"
    if loop.size == 1:
        return None
    inside = list(blocks_in(loop))
    for buffer in {output: None for block in inside for output in block.outputs}:
        if is_private(loop, buffer):
            continue
        accesses = [*_writes_of(buffer, inside), *_reads_of(buffer, inside)]
        if all(block in reducing for block, _ in accesses) or all(_runs_once(loop, block) for block, _ in accesses):
            continue
        if not touched_apart(loop, accesses):
            return f"its iterations may touch the same elements of '{buffer_name(buffer)}'"
    return None


def _runs_once(loop: ForOp, block: BlockOp) -> bool:
    """True where a predicate holds the block back in all iterations of `loop` but the first."""
    ranges = {x.loop_name: (0, x.size - 1) for x in block.enclosing_loops}
    for condition in block.conditions:
        step = condition.coefficient(loop.loop_name)
        if step < 0 and condition.is_linear_in(loop.loop_name):
            rest = condition - IndexExpr(((loop.loop_name, step),), 0)
            if rest.bounds(ranges)[1] + step < 0:
                return True
    return False


def _writes_of(buffer: SSAValue, blocks: list[BlockOp]) -> list[Access]:
    pairs = ((b, o, w) for b in blocks for o, w in zip(b.outputs, b.write_indices, strict=True))
    return [(block, indices) for block, output, indices in pairs if output is buffer]


def _reads_of(buffer: SSAValue, blocks: list[BlockOp]) -> list[Access]:
    return [(block, load.indices.data) for block in blocks for load in block.loads if load.buffer is buffer]
