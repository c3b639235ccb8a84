"""Who reads and who writes a buffer, and whether loops may run in another order or at once."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.interpret.loop import owning_loops
from ...dialects.loop import BlockOp, ForOp, LoadOp, blocks_in
from .nest import buffer_name, function_of


def writers(buffer: SSAValue) -> list[BlockOp]:
    """The blocks that write `buffer`, in no particular order."""
    return [use.operation for use in buffer.uses if isinstance(use.operation, BlockOp)]


def reads(buffer: SSAValue) -> list[LoadOp]:
    """The loads of `buffer`."""
    return [use.operation for use in buffer.uses if isinstance(use.operation, LoadOp)]


def readers(buffer: SSAValue) -> list[BlockOp]:
    """The blocks that read `buffer`, each once."""
    found: dict[BlockOp, None] = {}
    for load in reads(buffer):
        block = load.parent_op()
        assert isinstance(block, BlockOp)
        found[block] = None
    return list(found)


def producers(block: BlockOp) -> list[BlockOp]:
    """The blocks that write what `block` reads, itself excluded."""
    found = {w: None for load in block.loads for w in writers(load.buffer) if w is not block}
    return list(found)


def consumers(block: BlockOp) -> list[BlockOp]:
    """The blocks that read what `block` writes, itself excluded."""
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


def shared_loops(a: BlockOp, b: BlockOp) -> list[ForOp]:
    """The loops around both blocks, outermost first."""
    shared = []
    for x, y in zip(a.enclosing_loops, b.enclosing_loops, strict=False):
        if x is not y:
            break
        shared.append(x)
    return shared


def private_to(loop: ForOp) -> set[SSAValue]:
    """The buffers every use of which is inside `loop`: each of its iterations has its own."""
    func = function_of(loop)
    return {
        b for b, owner in owning_loops(func).items() if owner is not None and (owner is loop or is_under(owner, loop))
    }


def order_hazard(loops: list[ForOp]) -> str | None:
    """Why the perfectly nested `loops` must keep their order, or None.

    One block below may be reordered freely: reductions are free to change their order, and no element is written twice
    otherwise. Several blocks may where everything passed between them stays within one iteration of all the loops.
    """
    innermost = loops[-1]
    inside = list(blocks_in(innermost))
    if len(inside) < 2:
        return None
    private = private_to(innermost)
    for block in inside:
        for load in block.loads:
            if load.buffer in private:
                continue
            for writer in writers(load.buffer):
                if is_under(writer, innermost):
                    name = buffer_name(load.buffer)
                    return f"'{name}' is passed from '{writer.block_name}' to '{block.block_name}' across iterations"
    return None


def parallel_hazard(loop: ForOp) -> str | None:
    """Why the iterations of `loop` must not run at once, or None."""
    name = loop.loop_name
    private: set[SSAValue] | None = None
    for block in blocks_in(loop):
        if any(a.reduce and name in e.axes() for a, e in zip(block.axes, block.bindings.data, strict=True)):
            return f"block '{block.block_name}' reduces over it"
        if loop.size == 1 or any(name in e.axes() for e in block.bindings.data):
            continue
        private = private_to(loop) if private is None else private
        for output in block.outputs:
            if output not in private:
                return f"each of its iterations writes the same elements of '{buffer_name(output)}'"
    return None


def uses_in(func: FuncOp, buffer: SSAValue) -> list[BlockOp]:
    """The blocks that read or write `buffer`, in program order."""
    return [b for b in blocks_in(func) if buffer in b.outputs or any(load.buffer is buffer for load in b.loads)]
