"""The pass that takes batch normalisation, and factors of channels, into the weights of what comes before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import working_type
from ..types import dtype_of, shape_of
from ._channels import CHANNELS, channel_axis, without_bias
from ._rewrite import Before, applied, is_constant, option, producer, replace, used_once


@dataclass(frozen=True)
class FoldBatchNorm(ModulePass):
    """batch_norm(x) -> x * scale + shift, with scale = gamma / sqrt(variance + epsilon), shift = beta - mean * scale.

    Where x is a convolution or a matrix product with constant weights (and a constant added to it) that nothing else
    reads, the scale goes into the weights, and so does any other constant factor, of its channels or of all; constants
    that are added one after the other become one. Scale and shift stay as operators on constants, for
    `lw-graph-fold-constants`.
    """

    name: ClassVar[str] = "lw-graph-fold-batch-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            rule = _RULES.get(found.operator.data)
            value = rule(found) if rule is not None else None
            if value is not None:
                replace(found, [value])


def _batch_norm(op: ApplyOp) -> SSAValue:
    data, *vectors = op.inputs
    before, dtype = Before(op), dtype_of(data)
    wide = working_type(dtype)
    scale, shift = _scale_and_shift(op, [before.cast(vector, wide) for vector in vectors])
    rank = len(shape_of(data))
    axis = int(option(op, "axis")) % rank
    shape = [1] * rank
    shape[axis] = shape_of(scale)[0]
    scale_all, shift_all = before.reshape(scale, shape), before.reshape(shift, shape)
    scaled = _scaled(before, data, axis, scale)
    if scaled is not None:
        return _shifted(before, scaled, before.cast(shift_all, dtype))
    made = before.apply("multiply", before.cast(data, wide), scale_all)
    return before.cast(_shifted(before, made, shift_all), dtype)


def _scale_and_shift(op: ApplyOp, vectors: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
    """Factors and offsets of elements, one number of each a channel, in the type of the vectors."""
    before, (gamma, beta, mean, variance) = Before(op), vectors
    epsilon = before.number(float(option(op, "epsilon")), dtype_of(variance), "epsilon")
    scale = before.apply("multiply", gamma, before.apply("rsqrt", before.apply("add", variance, epsilon)))
    return scale, before.apply("subtract", beta, before.apply("multiply", mean, scale))


def _multiply(op: ApplyOp) -> SSAValue | None:
    """Fold constant factors, one for all or one a channel, into the weights of the product that they are of."""
    for data, factor in (tuple(op.inputs), tuple(op.inputs)[::-1]):
        product = producer(without_bias(data)[0], *CHANNELS)
        if product is None or shape_of(data) != shape_of(op.outputs[0]):
            continue
        axis, shape = channel_axis(product), shape_of(data)
        if not is_constant(factor):
            continue
        before = Before(op)
        if prod(shape_of(factor)) == 1:
            return _scaled(before, data, axis, before.apply("broadcast_to", factor, shape=(shape[axis],)))
        if _along(shape_of(factor), shape, axis):
            return _scaled(before, data, axis, before.reshape(factor, (shape[axis],)))
    return None


def _add(op: ApplyOp) -> SSAValue | None:
    """Fold the second of two constant summands behind a convolution or matrix product into the first."""
    for data, shift in (tuple(op.inputs), tuple(op.inputs)[::-1]):
        source, bias = without_bias(data)
        product = producer(source, *CHANNELS)
        if product is None or bias is None or shape_of(data) != shape_of(op.outputs[0]):
            continue
        axis, shape = channel_axis(product), shape_of(data)
        if all(_along(shape_of(v), shape, axis) for v in (bias, shift)) and is_constant(shift):
            return _shifted(Before(op), data, shift)
    return None


def _along(own: tuple[int, ...], shape: tuple[int, ...], axis: int) -> bool:
    """True where a tensor of shape `own` has one element for each place along `axis` of `shape`, and no others."""
    full = (1,) * (len(shape) - len(own)) + own
    return full == tuple(n if d == axis else 1 for d, n in enumerate(shape))


def _shifted(before: Before, data: SSAValue, shift: SSAValue) -> SSAValue:
    """Add a constant, joined with the bias that is there."""
    source, bias = without_bias(data)
    return before.apply("add", source, shift if bias is None else before.apply("add", bias, shift))


def _scaled(before: Before, data: SSAValue, axis: int, scale: SSAValue) -> SSAValue | None:
    """Scale the output channels of a product, weights and bias, by `scale` (C,); None where that cannot be."""
    source, bias = without_bias(data)
    scaled = _scaled_weights(before, source, axis, scale) if used_once(source) and is_constant(scale) else None
    if scaled is None or bias is None:
        return scaled
    shape = [n if d == axis else 1 for d, n in enumerate(shape_of(data))]
    return before.apply("add", scaled, _times(before, bias, before.reshape(scale, shape)))


def _scaled_weights(before: Before, source: SSAValue, axis: int, scale: SSAValue) -> SSAValue | None:
    """Scale the weights of the product `source` along its output channels; None where that cannot be."""
    op = producer(source, *CHANNELS)
    if op is None or not is_constant(op.inputs[1]):
        return None
    shape = CHANNELS[op.operator.data](op)
    if shape is None or axis != channel_axis(op):
        return None
    weight = _times(before, op.inputs[1], before.reshape(scale, shape))
    label = source.name_hint
    return before.apply(op.operator.data, op.inputs[0], weight, label=label, **op.options.values)


def _times(before: Before, constant: SSAValue, scale: SSAValue) -> SSAValue:
    """The constant by its scale, rounded once, to the type of the constant."""
    made = before.apply("multiply", before.cast(constant, dtype_of(scale)), scale)
    return before.cast(made, dtype_of(constant))


_RULES: dict[str, Callable[[ApplyOp], SSAValue | None]] = {
    "batch_norm": _batch_norm,
    "multiply": _multiply,
    "add": _add,
}
