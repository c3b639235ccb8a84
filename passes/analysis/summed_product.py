"""Blocks that add up products."""

from __future__ import annotations

from xdsl.dialects import arith

from ...dialects.loop import BlockOp

Multiplication = arith.MulfOp | arith.MuliOp


def summed_product(block: BlockOp) -> Multiplication | None:
    """The multiplication whose results a block adds up, all that it computes; None for another block."""
    product = block.yielded[0].owner
    is_sum = block.combiner.data == "add" and len(block.outputs) == 1
    return product if is_sum and isinstance(product, Multiplication) else None
