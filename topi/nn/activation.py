"""Activation functions."""

from __future__ import annotations

from math import pi, sqrt

from ... import te
from ...te import ShapeError, Tensor, compute, elementwise
from ...te.errors import format_shape
from ..arguments import one_axis
from ..elementwise import rounded_at_end


def relu(data: Tensor) -> Tensor:
    """max(x, 0)."""
    return elementwise(data, lambda x: te.maximum(x, 0), "T_relu")


def relu6(data: Tensor) -> Tensor:
    """min(max(x, 0), 6)."""
    return elementwise(data, lambda x: te.minimum(te.maximum(x, 0), 6), "T_relu6")


def leaky_relu(data: Tensor, alpha: float = 0.01) -> Tensor:
    """x where x > 0, else alpha * x."""
    return elementwise(data, lambda x: te.select(x > 0, x, x * alpha), "T_leaky_relu")


def prelu(data: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where x > 0, else slope[c] * x, with c the index along `axis`; slope is (C,)."""
    channel = one_axis("prelu", axis, data.ndim)
    if slope.shape != (data.shape[channel],):
        raise ShapeError(
            f"prelu: slope {format_shape(slope.shape)} does not fit axis {axis} of data {format_shape(data.shape)}"
        )
    result: Tensor = compute(
        data.shape, lambda *i: te.select(data[i] > 0, data[i], data[i] * slope[i[channel]]), "T_prelu"
    )
    return result


def gelu(data: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), by erf, or with approximate="tanh" by 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    if approximate == "tanh":
        return rounded_at_end(
            data,
            lambda x: x * 0.5 * (1.0 + te.tanh((x + x * x * x * 0.044715) * sqrt(2 / pi))),
            "T_gelu",
        )
    if approximate != "none":
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', got '{approximate}'")
    return rounded_at_end(data, lambda x: x * 0.5 * (1.0 + te.erf(x * sqrt(0.5))), "T_gelu")


def silu(data: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return rounded_at_end(data, lambda x: x * te.sigmoid(x), "T_silu")


def hard_sigmoid(data: Tensor, alpha: float = 1 / 6, beta: float = 0.5) -> Tensor:
    """min(max(alpha * x + beta, 0), 1)."""
    return elementwise(data, lambda x: te.minimum(te.maximum(x * alpha + beta, 0), 1), "T_hard_sigmoid")


def hard_swish(data: Tensor) -> Tensor:
    """x * min(max(x + 3, 0), 6) / 6."""
    return elementwise(data, lambda x: x * te.minimum(te.maximum(x + 3, 0), 6) * (1 / 6), "T_hard_swish")


def elu(data: Tensor, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return rounded_at_end(data, lambda x: te.select(x > 0, x, (te.exp(x) - 1.0) * alpha), "T_elu")


def softplus(data: Tensor) -> Tensor:
    """log(1 + exp(x)), computed as max(x, 0) + log(1 + exp(-|x|))."""
    return rounded_at_end(data, lambda x: te.maximum(x, 0) + te.log(1.0 + te.exp(-te.abs(x))), "T_softplus")


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """data + bias[c], with c the index along `axis`; bias is (C,)."""
    channel = one_axis("bias_add", axis, data.ndim)
    if bias.shape != (data.shape[channel],):
        raise ShapeError(
            f"bias_add: bias {format_shape(bias.shape)} does not fit axis {axis} of data {format_shape(data.shape)}"
        )
    result: Tensor = compute(data.shape, lambda *i: data[i] + bias[i[channel]], "T_bias_add")
    return result
