"""Terms of sums that are zero: the conditions without which an instance of a reduction adds nothing."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects.index import IndexExpr
from ...dialects.loop import BlockOp, LoadOp

_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_WIDER = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


def added_where(block: BlockOp) -> tuple[IndexExpr, ...]:
    """Return conditions on the loops around a block, of which none fails where it adds something but zero.

    Zero is what is read beyond padding, and all products with it, where the other factor is a number: a weight that is
    infinite or NaN leaves sums as they are, as in oneDNN's convolutions. None of a block that also starts its sum.
    """
    if block.combiner.data != "add" or block.has_init or len(block.outputs) != 1:
        return ()
    bound = block.bound
    return tuple(c.substitute(bound) for c in dict.fromkeys(_read_where(block.yielded[0])))


def _read_where(value: SSAValue) -> tuple[IndexExpr, ...]:
    """The conditions, over a block's iterators, without which a value is zero."""
    op = value.owner
    if isinstance(op, LoadOp):
        return op.conditions
    if isinstance(op, _PRODUCTS):
        return (*_read_where(op.operands[0]), *_read_where(op.operands[1]))
    return _read_where(op.operands[0]) if isinstance(op, _WIDER) else ()
