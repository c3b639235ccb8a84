"""Normalisations: over the last axes of each sample, and by stored statistics of each channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import te
from ...dialects.numpy_types import FLOATS, working_type
from ...te import IterVar, ShapeError, Tensor, compute, reduce_axis
from ...te.errors import format_shape
from ...te.expr import Expr
from ...te.reduce import Reduce
from ..arguments import Ints, one_axis, several_axes


def layer_norm(
    data: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, axis: Ints = -1, epsilon: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over `axis`; gamma and beta have the extents of `axis`.

    The variance is the mean of squared deviations, in a second pass; 16-bit floats are computed in float32.
    """
    rows = _Rows("layer_norm", data, axis, (gamma, beta))
    mean: Tensor = compute(rows.shape, rows.total(lambda x, _: x), "layer_norm_sum")
    center = 1.0 / rows.count

    def squared(x: Expr, others: tuple[Expr, ...]) -> Expr:
        deviation = x - mean[others] * center
        return deviation * deviation

    variance: Tensor = compute(rows.shape, rows.total(squared), "layer_norm_var")

    def normal(*i: Expr) -> Expr:
        others = rows.others(i)
        value = (rows.value(i) - mean[others] * center) * te.rsqrt(variance[others] * center + epsilon)
        return rows.affine(value, i, gamma, beta)

    result: Tensor = compute(data.shape, normal, "T_layer_norm")
    return result


def rms_norm(data: Tensor, gamma: Tensor | None = None, axis: Ints = -1, epsilon: float = 1e-5) -> Tensor:
    """x / sqrt(mean(x^2) + epsilon) * gamma over `axis`; gamma has the extents of `axis`."""
    rows = _Rows("rms_norm", data, axis, (gamma,))
    squares: Tensor = compute(rows.shape, rows.total(lambda x, _: x * x), "rms_norm_sum")

    def normal(*i: Expr) -> Expr:
        value = rows.value(i) * te.rsqrt(squares[rows.others(i)] * (1.0 / rows.count) + epsilon)
        return rows.affine(value, i, gamma, None)

    result: Tensor = compute(data.shape, normal, "T_rms_norm")
    return result


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> Tensor:
    """(x - mean[c]) / sqrt(variance[c] + epsilon) * gamma[c] + beta[c], c along `axis`: inference, all four are (C,).

    Written as x * scale[c] + shift[c], with the two vectors as stages of their own; 16-bit floats are computed in
    float32.
    """
    channel = one_axis("batch_norm", axis, data.ndim)
    shape = (data.shape[channel],)
    for name, vector in (("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)):
        if vector.shape != shape:
            raise ShapeError(
                f"batch_norm: {name} {format_shape(vector.shape)} does not fit axis {axis} of "
                f"data {format_shape(data.shape)}"
            )
    wide = working_type(data.dtype)

    def of_channel(c: Expr) -> Expr:
        return gamma[c].astype(wide) * te.rsqrt(variance[c].astype(wide) + epsilon)

    scale = compute(shape, of_channel, "batch_norm_scale")
    shift = compute(shape, lambda c: beta[c].astype(wide) - mean[c].astype(wide) * scale[c], "batch_norm_shift")
    result: Tensor = compute(
        data.shape,
        lambda *i: (data[i].astype(wide) * scale[i[channel]] + shift[i[channel]]).astype(data.dtype),
        "T_batch_norm",
    )
    return result


class _Rows:
    """The axes that one statistic is taken over, and those that number the statistics."""

    def __init__(self, operator: str, data: Tensor, axis: Ints, scales: Sequence[Tensor | None]) -> None:
        if data.dtype not in FLOATS:
            raise ShapeError(f"{operator}: statistics need floats, got {data.dtype}: cast the data first")
        self.data = data
        self.axes = several_axes(operator, axis, data.ndim)
        self.dtype = working_type(data.dtype)
        self.shape = tuple(n for d, n in enumerate(data.shape) if d not in self.axes)
        extents = tuple(data.shape[d] for d in self.axes)
        self.count = 1
        for n in extents:
            self.count *= n
        for scale in scales:
            if scale is not None and scale.shape != extents:
                raise ShapeError(
                    f"{operator}: scale and shift over axes {self.axes} of data {format_shape(data.shape)} have shape "
                    f"{format_shape(extents)}, got {format_shape(scale.shape)}"
                )

    def value(self, indices: Sequence[Expr]) -> Expr:
        return self.data[tuple(indices)].astype(self.dtype)

    def others(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(i for d, i in enumerate(indices) if d not in self.axes)

    def total(self, term: Callable[[Expr, tuple[Expr, ...]], Expr]) -> Callable[..., Reduce]:
        """A function for te.compute that sums `term(x, indices)` over the axes."""
        reduced = [reduce_axis((0, self.data.shape[d]), f"k{n}" if n else "k") for n, d in enumerate(self.axes)]

        def element(*indices: Expr) -> Reduce:
            return te.sum(term(self.value(self._merge(indices, reduced)), indices), axis=reduced)

        return element

    def _merge(self, indices: Sequence[Expr], reduced: Sequence[IterVar]) -> list[Expr]:
        outer, inner = iter(indices), iter(reduced)
        return [next(inner) if d in self.axes else next(outer) for d in range(self.data.ndim)]

    def affine(self, value: Expr, indices: Sequence[Expr], gamma: Tensor | None, beta: Tensor | None) -> Expr:
        own = tuple(indices[d] for d in self.axes)
        if gamma is not None:
            value = value * gamma[own]
        if beta is not None:
            value = value + beta[own]
        return value.astype(self.data.dtype)
