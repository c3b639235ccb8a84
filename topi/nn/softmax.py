"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from ... import te
from ...dialects.numpy_types import working_type
from ...te import Tensor, compute, reduce_axis
from ...te.expr import Expr
from ...te.tensor import require_tensor
from ..arguments import one_axis


def softmax(data: Tensor, axis: int = -1) -> Tensor:
    """exp(x - max) / sum(exp(x - max)) along `axis`; 16-bit floats are computed in float32."""
    rows = _Rows("softmax", data, axis)
    result: Tensor = compute(
        data.shape,
        lambda *i: (rows.exponential[i] / rows.total[rows.others(i)]).astype(data.dtype),
        "T_softmax_norm",
    )
    return result


def log_softmax(data: Tensor, axis: int = -1) -> Tensor:
    """x - max - log(sum(exp(x - max))) along `axis`; 16-bit floats are computed in float32."""
    rows = _Rows("log_softmax", data, axis)
    result: Tensor = compute(
        data.shape,
        lambda *i: (rows.value(i) - rows.largest[rows.others(i)] - te.log(rows.total[rows.others(i)])).astype(
            data.dtype
        ),
        "T_log_softmax_norm",
    )
    return result


class _Rows:
    """The largest element of each row, the exponentials, and their sum."""

    def __init__(self, operator: str, data: Tensor, axis: int) -> None:
        require_tensor(operator, "data", data)
        self.data = data
        self.axis = one_axis(operator, axis, data.ndim)
        self.dtype = working_type(data.dtype)
        shape = self.others(data.shape)
        k = reduce_axis((0, data.shape[self.axis]), "k")
        self.largest: Tensor = compute(
            shape, lambda *i: te.max(self.value(self.row(i, k)), axis=k), f"T_{operator}_maxelem"
        )
        self.exponential: Tensor = compute(
            data.shape, lambda *i: te.exp(self.value(i) - self.largest[self.others(i)]), f"T_{operator}_exp"
        )
        k = reduce_axis((0, data.shape[self.axis]), "k")
        self.total: Tensor = compute(
            shape, lambda *i: te.sum(self.exponential[self.row(i, k)], axis=k), f"T_{operator}_expsum"
        )

    def value(self, indices: tuple[Expr, ...]) -> Expr:
        return self.data[indices].astype(self.dtype)

    def others(self, indices: tuple[Any, ...]) -> tuple[Any, ...]:
        return indices[: self.axis] + indices[self.axis + 1 :]

    def row(self, indices: tuple[Expr, ...], k: Expr) -> tuple[Expr, ...]:
        return (*indices[: self.axis], k, *indices[self.axis :])
