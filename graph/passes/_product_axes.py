"""Axes of products of two tensors, a letter each."""

from __future__ import annotations

from ...dialects.graph import ApplyOp
from ._rewrite import option


def product_axes(op: ApplyOp) -> tuple[str, str, str] | None:
    """Return the axes of both factors of a product, and of its result; None for an einsum that is none of two tensors.

    Those of dense, matmul and batch_matmul are batch (b), rows (m), columns (n) and terms of sums (k).
    """
    name = op.operator.data
    if name == "einsum":
        factors, _, result = str(option(op, "equation")).replace(" ", "").partition("->")
        first, _, second = factors.partition(",")
        return (first, second, result) if all(map(str.isalpha, (first, second, result))) else None
    if name == "dense":
        return "mk", "nk", "mn"
    first = "km" if option(op, "transpose_a") else "mk"
    second = "nk" if option(op, "transpose_b") else "kn"
    batch = "b" if name == "batch_matmul" else ""
    return batch + first, batch + second, batch + "mn"
