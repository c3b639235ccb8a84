"""Output channels of products: the axis they lie along, and the shape of one number for each beside the weights."""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.graph import ApplyOp
from ..types import shape_of
from ._rewrite import option


def channel_axis(op: ApplyOp) -> int:
    """Return the axis of a product's result that its output channels, or columns, lie along."""
    rank = len(shape_of(op.outputs[0]))
    if op.operator.data in ("dense", "matmul"):
        return rank - 1
    return rank - 1 if str(option(op, "layout")).endswith("C") else 1


def _conv_shape(op: ApplyOp) -> tuple[int, ...] | None:
    weight = shape_of(op.inputs[1])
    return (weight[-1],) if channel_axis(op) > 1 else (weight[0], *(1,) * (len(weight) - 1))


def _depthwise_shape(op: ApplyOp) -> tuple[int, ...] | None:
    weight = shape_of(op.inputs[1])
    return weight[2:] if channel_axis(op) > 1 else (*weight[:2], 1, 1)


def _transposed_shape(op: ApplyOp) -> tuple[int, ...] | None:
    weight = shape_of(op.inputs[1])
    if option(op, "groups") != 1:
        return None
    return (weight[-1],) if channel_axis(op) > 1 else (1, weight[1], 1, 1)


def _dense_shape(op: ApplyOp) -> tuple[int, ...] | None:
    return (shape_of(op.inputs[1])[0], 1)


def _matmul_shape(op: ApplyOp) -> tuple[int, ...] | None:
    count = shape_of(op.outputs[0])[1]
    return (count, 1) if option(op, "transpose_b") else (count,)


CHANNELS: dict[str, Callable[[ApplyOp], tuple[int, ...] | None]] = {
    "conv2d": _conv_shape,
    "conv3d": _conv_shape,
    "depthwise_conv2d": _depthwise_shape,
    "conv2d_transpose": _transposed_shape,
    "dense": _dense_shape,
    "matmul": _matmul_shape,
}
"""Operator -> the shape under which one number an output channel multiplies its weights."""
