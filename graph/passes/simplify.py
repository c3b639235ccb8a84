"""The pass that writes networks in fewer operators: what changes nothing goes, what has a simpler form gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp, ConstantOp
from ...topi.arguments import padding_of, spread
from ..operator import Kind, is_view, operator
from ..types import dtype_of, shape_of
from ._arithmetic import ARITHMETIC, join_numbers
from ._rewrite import (
    Before,
    applied,
    is_elementwise,
    option,
    producer,
    replace,
    transposed_order,
    used_once,
    with_options,
)
from ._slices import drop_unit_views, joined_slices
from ._transposes import joined_by_view


@dataclass(frozen=True)
class Simplify(ModulePass):
    """Rewrite operators to simpler ones that mean the same.

    Copies, casts to the same type, reshapes, transposes and broadcasts that change nothing go; chains of them become
    one, and transposes on both sides of a reshape that keeps the axes apart which they move; a transpose that moves
    axes of extent 1 only is a reshape; bias_add is an add, the power of 2 a square; a convolution of as many groups as
    channels is depthwise; zeros around what a convolution reads are its own padding. Equal numbers become one;
    arithmetic with a number that changes nothing goes, a sum by its count is a mean, 1 / (1 + exp(-x)) a sigmoid.
    An einsum gives its axes in the order that they are transposed to. A batch of products by one matrix is one
    product. A slice of a slice is one of what that is of.
    """

    name: ClassVar[str] = "lw-graph-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        join_numbers(op)
        for found in applied(op):
            if is_elementwise(found):
                drop_unit_views(found)
            rule = _RULES.get(_kind(found))
            value = rule(found) if rule is not None else None
            if value is not None:
                replace(found, [value])


def _kind(op: ApplyOp) -> str:
    name = op.operator.data
    return "view" if operator(name).kind is Kind.VIEW else name


def _identity(op: ApplyOp) -> SSAValue:
    return op.inputs[0]


def _broadcast_to(op: ApplyOp) -> SSAValue | None:
    return op.inputs[0] if shape_of(op.inputs[0]) == shape_of(op.outputs[0]) else None


def _cast(op: ApplyOp) -> SSAValue | None:
    return op.inputs[0] if dtype_of(op.inputs[0]) == option(op, "dtype") else None


def _view(op: ApplyOp) -> SSAValue | None:
    source = op.inputs[0]
    while (owner := source.owner) and isinstance(owner, ApplyOp) and is_view(owner):
        source = owner.inputs[0]
    wanted = shape_of(op.outputs[0])
    if shape_of(source) == wanted:
        return source
    if source is op.inputs[0] and op.operator.data == "reshape" and option(op, "shape") == wanted:
        return None
    return Before(op).apply("reshape", source, shape=wanted)


def _transpose(op: ApplyOp) -> SSAValue | None:
    source, order = op.inputs[0], transposed_order(op)
    while (earlier := producer(source, "transpose")) is not None:
        inner = transposed_order(earlier)
        source, order = earlier.inputs[0], tuple(inner[k] for k in order)
    shape = shape_of(source)
    if order == tuple(range(len(order))):
        return source
    moved = [k for k in order if shape[k] > 1]
    if moved == sorted(moved):
        return Before(op).reshape(source, [shape[k] for k in order])
    if (product := producer(source, "einsum")) is not None and source is op.inputs[0] and used_once(source):
        return _turned(op, product, order)
    if source is op.inputs[0] and (joined := joined_by_view(op)) is not None:
        return joined
    same = source is op.inputs[0] and option(op, "axes") == order
    return None if same else Before(op).apply("transpose", source, axes=order)


def _turned(op: ApplyOp, product: ApplyOp, order: tuple[int, ...]) -> SSAValue | None:
    """Return a sum of products that gives its axes in another order."""
    terms, arrow, letters = str(option(product, "equation")).partition("->")
    if not arrow or "." in letters:
        return None
    equation = f"{terms}->{''.join(letters[k] for k in order)}"
    return Before(op).apply("einsum", *product.inputs, equation=equation)


def _bias_add(op: ApplyOp) -> SSAValue:
    data, bias = op.inputs
    rank = len(shape_of(data))
    axis = int(option(op, "axis")) % rank
    shape = [1] * rank
    shape[axis] = shape_of(bias)[0]
    before = Before(op)
    return before.apply("add", data, before.reshape(bias, shape))


def _power(op: ApplyOp) -> SSAValue | None:
    data, exponent = op.inputs
    owner, result = exponent.owner, op.outputs[0]
    if not isinstance(owner, ConstantOp) or owner.value != 2:
        return None
    same = shape_of(data) == shape_of(result) and dtype_of(data) == dtype_of(result)
    return Before(op).apply("square", data) if same else None


def _conv2d(op: ApplyOp) -> SSAValue | None:
    groups, last = int(option(op, "groups")), option(op, "layout") == "NHWC"
    channels = shape_of(op.inputs[0])[3 if last else 1]
    if groups == 1 or groups != channels:
        return _convolution(op)
    data, padding = _unpadded(op)
    weight = op.inputs[1]
    extents = shape_of(weight)
    filters = extents[3] if last else extents[0]
    multiplier = filters // channels
    shape = (*extents[:2], channels, multiplier) if last else (channels, multiplier, *extents[2:])
    before = Before(op)
    options: dict[str, Any] = dict(with_options(op, groups=None, padding=padding))
    return before.apply("depthwise_conv2d", data, before.reshape(weight, shape), **options)


def _convolution(op: ApplyOp) -> SSAValue | None:
    data, padding = _unpadded(op)
    if data is op.inputs[0]:
        return None
    options: dict[str, Any] = dict(with_options(op, padding=padding))
    return Before(op).apply(op.operator.data, data, op.inputs[1], **options)


def _unpadded(op: ApplyOp) -> tuple[SSAValue, Any]:
    """Return a convolution's input without the zeros put around it, and its padding with them.

    In the place of zero, the number that it pads with itself.
    """
    data, padding = op.inputs[0], option(op, "padding")
    first = 1 if str(option(op, "layout")).endswith("C") else 2
    while (pad := producer(data, "pad")) is not None:
        count = len(shape_of(data)) - 2
        before = option(pad, "before")
        after = option(pad, "after") or before
        spatial = slice(first, first + count)
        if option(pad, "value") != option(op, "pad_value") or any(
            sum(ends) - sum(ends[spatial]) for ends in (before, after)
        ):
            break
        own = _padding_of(op, data, padding, spatial)
        padding = tuple(a + b for a, b in zip(own, (*before[spatial], *after[spatial]), strict=True))
        data = pad.inputs[0]
    return data, padding


def _padding_of(op: ApplyOp, data: SSAValue, padding: Any, spatial: slice) -> tuple[int, ...]:
    """Return the padding of a convolution of `data` as numbers: all that are before, then all that are after."""
    name, weight, count = op.operator.data, shape_of(op.inputs[1]), len(shape_of(data)) - 2
    window = weight[:count] if spatial.start == 1 else weight[2:]
    dilation = spread(name, "dilation", option(op, "dilation"), count)
    windows = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
    strides = spread(name, "stride", option(op, "stride"), count)
    before, after = padding_of(name, padding, shape_of(data)[spatial], windows, strides)
    return (*before, *after)


def _batch_matmul(op: ApplyOp) -> SSAValue | None:
    """Return one product of the rows of all batches where each has the same second factor, else without stretching."""
    batches, rows, columns = shape_of(op.outputs[0])
    factors = [_unstretched(value) for value in op.inputs]
    extents = [shape_of(value)[0] for value in factors]
    if batches == 1 or batches not in extents:
        return None
    before = Before(op)
    if extents == [batches, 1] and not option(op, "transpose_a"):
        depth, matrix = shape_of(op.inputs[0])[2], shape_of(op.inputs[1])[1:]
        flat = before.reshape(factors[0], (batches * rows, depth))
        turned = option(op, "transpose_b")
        product = before.apply("matmul", flat, before.reshape(factors[1], matrix), transpose_b=turned)
        return before.reshape(product, (batches, rows, columns))
    options: dict[str, Any] = dict(with_options(op))
    return None if factors == list(op.inputs) else before.apply("batch_matmul", *factors, **options)


def _unstretched(value: SSAValue) -> SSAValue:
    """Return what was stretched along the first axis alone, of extent 1 there; the value itself where nothing was."""
    stretched = producer(value, "broadcast_to")
    if stretched is None:
        return value
    source, (_, *rest) = stretched.inputs[0], shape_of(value)
    once = (1, *rest)
    if shape_of(source) not in (once, tuple(rest)):
        return value
    return _unstretched(Before(stretched).reshape(source, once))


_RULES: dict[str, Callable[[ApplyOp], SSAValue | None]] = {
    "identity": _identity,
    "broadcast_to": _broadcast_to,
    "cast": _cast,
    "view": _view,
    "transpose": _transpose,
    "batch_matmul": _batch_matmul,
    "bias_add": _bias_add,
    "power": _power,
    "strided_slice": joined_slices,
    "conv2d": _conv2d,
    "depthwise_conv2d": _convolution,
    "conv3d": _convolution,
    **ARITHMETIC,
}
