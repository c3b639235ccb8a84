"""StableHLO's batch normalisation: with statistics that are given, with those of the batch, and its gradient."""

from __future__ import annotations

from math import prod

from ....graph.network import Value
from ..discovery import Converter
from ..node import Builder, Node


@Converter
def batch_norm_inference(node: Node) -> Value:
    made: Value = node.build.apply("batch_norm", *node.operands, axis=_axis(node), epsilon=float(node.need("epsilon")))
    return made


@Converter
def batch_norm_training(node: Node) -> list[Value]:
    x, scale, offset = node.operands
    build, axis = node.build, _axis(node)
    others = tuple(d for d in range(len(x.shape)) if d != axis)
    mean = build.apply("mean", x, axis=others)
    centred = build.elementwise("subtract", x, _along(build, mean, x, axis))
    variance = build.apply("mean", build.elementwise("square", centred), axis=others)
    made = build.apply("batch_norm", x, scale, offset, mean, variance, axis=axis, epsilon=float(node.need("epsilon")))
    return [made, mean, variance]


@Converter
def batch_norm_grad(node: Node) -> list[Value]:
    """Return the gradients of data, scale and offset (StableHLO's specification, batch_norm_grad)."""
    x, scale, mean, variance, given = node.operands
    build, axis = node.build, _axis(node)
    others = tuple(d for d in range(len(x.shape)) if d != axis)
    count = build.like(prod(x.shape[d] for d in others), x)
    wide = build.elementwise("add", variance, build.like(float(node.need("epsilon")), variance))
    root = build.elementwise("rsqrt", wide)
    centred = build.elementwise("subtract", x, _along(build, mean, x, axis))
    of_offset = build.apply("sum", given, axis=others)
    projected = build.apply("sum", build.elementwise("multiply", given, centred), axis=others)
    rest = build.elementwise("multiply", given, count)
    rest = build.elementwise("subtract", rest, _along(build, of_offset, x, axis))
    slope = _along(build, build.elementwise("divide", projected, wide), x, axis)
    rest = build.elementwise("subtract", rest, build.elementwise("multiply", centred, slope))
    factor = build.elementwise("divide", build.elementwise("multiply", scale, root), count)
    of_data = build.elementwise("multiply", rest, _along(build, factor, x, axis))
    return [of_data, build.elementwise("multiply", projected, root), of_offset]


def _axis(node: Node) -> int:
    return node.ints("feature_index")[0]


def _along(build: Builder, vector: Value, x: Value, axis: int) -> Value:
    """Return one number a channel, to be stretched over a tensor."""
    return build.reshape(vector, (vector.shape[0], *(1,) * (len(x.shape) - axis - 1)))
