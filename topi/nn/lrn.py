"""Local response normalisation."""

from __future__ import annotations

from ... import te
from ...dialects.numpy_types import working_type
from ...te import ShapeError, Tensor, compute, reduce_axis
from ..arguments import one_axis
from .pad import pad_spatial


def lrn(
    data: Tensor, size: int = 5, axis: int = 1, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """x / (bias + alpha / size * sum of the squares of `size` neighbours along `axis`) ^ beta.

    The neighbours of c are those from c - (size - 1) // 2 to c + size // 2, as far as they exist
    (ONNX's rule).
    """
    channel = one_axis("lrn", axis, data.ndim)
    if size < 1:
        raise ShapeError(f"lrn: size must be at least 1, got {size}")
    before = (size - 1) // 2
    padded = pad_spatial(data, (before,), (size - 1 - before,), channel)
    r, kind = reduce_axis((0, size), "r"), working_type(data.dtype)

    def neighbour(*i: te.Expr) -> te.Expr:
        return padded[(*i[:channel], i[channel] + r, *i[channel + 1 :])].astype(kind)

    squares = compute(data.shape, lambda *i: te.sum(neighbour(*i) * neighbour(*i), axis=r), "lrn_sum")
    result: Tensor = compute(
        data.shape,
        lambda *i: (data[i].astype(kind) / te.power(squares[i] * (alpha / size) + bias, beta)).astype(data.dtype),
        "T_lrn",
    )
    return result
