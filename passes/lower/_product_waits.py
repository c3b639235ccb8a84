"""Products of warp groups, which go on beside their threads: the nests of them, and the waits for those."""

from __future__ import annotations

from collections.abc import Iterator, Set

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.intrinsics import find_intrinsic
from ...dialects.kernel import ProxyFenceOp, WarpGroupCommitOp, WarpGroupFenceOp, WarpGroupWaitOp
from ...dialects.loop import (
    ArrivalsOp,
    AtOp,
    BarrierOp,
    BlockOp,
    ForOp,
    KernelStep,
    blocks_in,
    is_bound,
    loops_in,
    scope_of,
)
from ..analysis.matrix_product import TENSORIZE
from ._block_plan import reduce_loops
from ._run_ahead import BULK, blocks_of
from ._starts import STARTS, starts_before


def is_of_warp_group(block: BlockOp) -> bool:
    """True for a block in a nest that is a product of a warp group."""
    notes = [loop.notes.get(TENSORIZE) for loop in block.enclosing_loops]
    found = [find_intrinsic(note.data) for note in notes if isinstance(note, StringAttr)]
    return any(intrinsic is not None and intrinsic.reads_shared for intrinsic in found)


def goes_on(nest: Operation) -> bool:
    """True for a nest of nothing but products of warp groups."""
    return isinstance(nest, ForOp) and all(is_of_warp_group(block) for block in blocks_in(nest))


STARTED = "started_by_product"
"""The annotation of a block of products, the first of which write sums that others add to."""


def _start_by_product(nest: ForOp) -> None:
    """Drop the zeros before a nest of products, where the first of them are known when they are written."""
    blocks = {block.block_name: block for block in blocks_in(nest)}
    for start in starts_before(nest):
        (zero,) = blocks_of(start)
        reduction = zero.notes[STARTS]
        block = blocks.get(reduction.data) if isinstance(reduction, StringAttr) else None
        if block is not None and _is_written_out(block):
            block.annotations = DictionaryAttr({**block.notes, STARTED: UnitAttr()})
            start.detach()  # type: ignore[no-untyped-call]
            start.erase()


def _is_written_out(block: BlockOp) -> bool:
    """True for a block whose loops of a reduction are unrolled, around an intrinsic that may start sums."""
    marked = next(loop for loop in block.enclosing_loops if TENSORIZE in loop.notes)
    note = marked.notes[TENSORIZE]
    found = find_intrinsic(note.data) if isinstance(note, StringAttr) else None
    reduced = [loop for loop in block.enclosing_loops if loop.loop_name in reduce_loops(block)]
    around = [loop for loop in reduced if marked in loops_in(loop)]
    return found is not None and found.may_start and all(loop.loop_kind == "unrolled" for loop in around)


def _is_shown(nest: Operation) -> bool:
    """True where a fence and a barrier behind it show all that threads have written to shared memory before a nest.

    Copies for later iterations are shown by the fence of these.
    """
    behind = False
    for op in _before(nest):
        if isinstance(op, ProxyFenceOp):
            return behind
        behind = behind or isinstance(op, BarrierOp | ArrivalsOp)
        if isinstance(op, ForOp | BlockOp) and _fills(op):
            return False
    return False


def _before(nest: Operation) -> Iterator[Operation]:
    """The operations before a nest, the last ones first, up to a loop whose other iterations fill shared memory."""
    op: Operation | None = nest
    while isinstance(op, ForOp):
        found = op.prev_op
        while found is not None:
            yield found
            found = found.prev_op
        around = op.parent_op()
        once = isinstance(around, ForOp) and (_is_once(around) or not _fills(around))
        op = around if once else None


def _is_once(loop: ForOp) -> bool:
    """True for a loop that a thread runs once."""
    return loop.size == 1 or is_bound(loop)


def _fills(nest: ForOp | BlockOp) -> bool:
    """True where threads write to shared memory, not the copy engine alone."""
    by_threads = (block for block in blocks_of(nest) if BULK not in block.notes)
    return any(scope_of(buffer) == "shared" for block in by_threads for buffer in block.outputs)


def _show(nest: Operation, block: Block) -> None:
    """Write the fence that shows a nest of products what threads have written, and the barrier behind it."""
    before = nest.prev_op
    if isinstance(before, BarrierOp):
        block.insert_op_before(ProxyFenceOp(), before)
    else:
        block.insert_ops_before([ProxyFenceOp(), BarrierOp()], nest)


def wait_for_products(func: FuncOp) -> None:
    """Write the fence before, and the wait behind, each outermost nest of products that no pipeline has put one to.

    They go on beside what follows, up to what needs them done.
    """
    for nest in list(loops_in(func)):
        around = nest.parent_op()
        if not goes_on(nest) or (isinstance(around, ForOp) and goes_on(around)):
            continue
        block = nest.parent_block()
        assert block is not None
        if isinstance(nest.prev_op, WarpGroupFenceOp):
            continue
        _start_by_product(nest)
        if not _is_shown(nest):
            _show(nest, block)
        block.insert_op_before(WarpGroupFenceOp(), nest)
        commit = WarpGroupCommitOp()
        block.insert_op_after(commit, nest)
        last = _last_beside(nest, commit)
        behind = last.parent_block()
        assert behind is not None
        behind.insert_op_after(WarpGroupWaitOp(0), last)


def _last_beside(nest: ForOp, commit: Operation) -> Operation:
    """The last operation that may run while a nest's products go on: from their commit up to what they meet."""
    blocks = blocks_of(nest)
    sums = {buffer for block in blocks for buffer in block.outputs}
    factors = {load.buffer for block in blocks for load in block.loads}
    last = op = commit
    while True:
        following = op.next_op
        if following is None:
            around = op.parent_op()
            if not isinstance(around, ForOp) or not _is_once(around):
                return last
            op = around
        elif not isinstance(following, ForOp | BlockOp) or _meets(following, sums, factors):
            return last
        else:
            last = op = following


def _meets(nest: ForOp | BlockOp, sums: Set[SSAValue], factors: Set[SSAValue]) -> bool:
    """True where threads meet, multiply, touch sums or write factors."""
    if any(isinstance(op, BarrierOp | AtOp | ArrivalsOp | KernelStep) for op in nest.walk()):
        return True
    blocks = blocks_of(nest)
    touched = {load.buffer for block in blocks for load in block.loads}
    written = {buffer for block in blocks for buffer in block.outputs}
    return any(map(is_of_warp_group, blocks)) or not (touched | written).isdisjoint(sums) or bool(written & factors)
