"""Index arithmetic and masks that nothing uses, which are left out of kernels."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...dialects import kernel

_COMPUTED = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.CmpiOp, arith.AndIOp, kernel.MaskOp)


def erase_unused(func: FuncOp) -> None:
    """Erase masks that no access reads, and what is computed for these alone.

    An access that may touch elements to spare asks no mask, which its address was computed with: a loop around such a
    one was no run of assembly for it.
    """
    waiting: list[Operation] = [op for op in func.walk() if isinstance(op, kernel.MaskOp)]
    while waiting:
        op = waiting.pop()
        if op.parent is None or not isinstance(op, _COMPUTED) or any(result.uses for result in op.results):
            continue
        sources = [operand.owner for operand in op.operands]
        op.detach()  # type: ignore[no-untyped-call]
        op.erase()
        waiting += [source for source in sources if isinstance(source, Operation)]
