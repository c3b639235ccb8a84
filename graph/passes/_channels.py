"""Output channels of products: their axis, the shape of one number for each beside the weights, and what is added."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ..types import shape_of
from ._rewrite import is_constant, option, producer, used_once


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


def without_bias(data: SSAValue) -> tuple[SSAValue, SSAValue | None]:
    """Split a sum that nothing else reads into source and constant bias; any other value is itself, without one."""
    added = producer(data, "add")
    if added is not None and (used_once(data) or data.first_use is None):
        for source, bias in (tuple(added.inputs), tuple(added.inputs)[::-1]):
            if shape_of(source) == shape_of(data) and is_constant(bias):
                return source, bias
    return data, None
