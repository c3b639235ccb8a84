"""Products of warp groups, which go on beside their threads: the nests of them, and the waits for those."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...dialects.intrinsics import find_intrinsic
from ...dialects.kernel import ProxyFenceOp, WarpGroupCommitOp, WarpGroupFenceOp, WarpGroupWaitOp
from ...dialects.loop import BarrierOp, BlockOp, ForOp, blocks_in
from ..analysis.matrix_product import TENSORIZE


def is_of_warp_group(block: BlockOp) -> bool:
    """True for a block in a nest that is a product of a warp group."""
    notes = [loop.notes.get(TENSORIZE) for loop in block.enclosing_loops]
    found = [find_intrinsic(note.data) for note in notes if isinstance(note, StringAttr)]
    return any(intrinsic is not None and intrinsic.reads_shared for intrinsic in found)


def goes_on(nest: Operation) -> bool:
    """True for a nest of nothing but products of warp groups."""
    return isinstance(nest, ForOp) and all(is_of_warp_group(block) for block in blocks_in(nest))


def wait_for_products(func: FuncOp) -> None:
    """Write the fence before, and the wait behind, each outermost nest of products that no pipeline has put one to."""
    for nest in [op for op in func.walk() if isinstance(op, ForOp)]:
        around = nest.parent_op()
        if not goes_on(nest) or (isinstance(around, ForOp) and goes_on(around)):
            continue
        block = nest.parent_block()
        assert block is not None
        if isinstance(nest.prev_op, WarpGroupFenceOp):
            continue
        before = nest.prev_op
        if isinstance(before, BarrierOp):
            block.insert_op_before(ProxyFenceOp(), before)
        else:
            block.insert_ops_before([ProxyFenceOp(), BarrierOp()], nest)
        block.insert_op_before(WarpGroupFenceOp(), nest)
        block.insert_ops_after([WarpGroupCommitOp(), WarpGroupWaitOp(0)], nest)
