"""TOSA: operations on tensors whose channels are last."""

from __future__ import annotations

import numpy as np

from ....dialects.numpy_types import FLOATS
from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node, known_values
from . import _scalar
from ._movement import pad_value, padded, taken
from ._products import Convolution, contracted, convolved
from ._reductions import reduced
from ._scalar import by, same

abs = same("abs")
add = by(_scalar.add)
arithmetic_right_shift = same("shift_right")
bitwise_and = same("bitwise_and")
bitwise_not = same("bitwise_not")
bitwise_or = same("bitwise_or")
bitwise_xor = same("bitwise_xor")
ceil = same("ceil")
clz = by(_scalar.leading_zeros)
cos = same("cos")
equal = same("equal")
erf = same("erf")
exp = same("exp")
floor = same("floor")
greater = same("greater")
greater_equal = same("greater_equal")
identity = same("identity")
int_div = intdiv = by(_scalar.divide)
log = same("log")
logical_and = same("logical_and")
logical_left_shift = same("shift_left")
logical_not = same("logical_not")
logical_or = same("logical_or")
logical_right_shift = by(_scalar.logical_shift)
logical_xor = same("logical_xor")
maximum = same("maximum")
minimum = same("minimum")
pow = by(_scalar.power)
reciprocal = same("reciprocal")
rsqrt = same("rsqrt")
select = same("where")
sigmoid = same("sigmoid")
sin = same("sin")
sub = same("subtract")
tanh = same("tanh")


@Converter
def const(node: Node) -> Value:
    return node.build.constant(node.get("values") if "values" in node.attributes else node.need("value"))


@Converter
def const_shape(node: Node) -> Value:
    return node.build.constant(np.asarray(node.ints("values") or node.ints("value")), "int64")


@Converter
def mul(node: Node) -> Value:
    made = _scalar.multiply(node.build, node.value(0), node.value(1))
    if len(node.operands) > 2 and bool(known_values(node.value(2), "the shift").any()):
        raise UnsupportedOperation("products of integers are not shifted")
    return made


@Converter
def negate(node: Node) -> Value:
    require_no_zero_points(node, 1)
    return _scalar.negate(node.build, node.value())


@Converter
def clamp(node: Node) -> Value:
    low, high = (node.get(f"{side}_val", node.get(f"{side}_fp")) for side in ("min", "max"))
    x = node.value()
    return _scalar.clamp(node.build, node.build.like(low, x), x, node.build.like(high, x))


@Converter
def cast(node: Node) -> Value:
    """Floats become the nearest integers, halves even ones."""
    x = node.value()
    if x.dtype in FLOATS and node.dtype not in FLOATS and node.dtype != "bool":
        x = node.build.elementwise("round", x)
    return node.build.cast(x, node.dtype)


def _reduction(combiner: str) -> Converter:
    def convert(node: Node) -> Value:
        made = reduced(node.build, combiner, node.value(), [node.ints("axis")[0]], None)
        return node.build.reshape(made, node.shape)

    return Converter(convert)


reduce_all = reduce_min = _reduction("min")
reduce_any = reduce_max = _reduction("max")
reduce_prod = reduce_product = _reduction("mul")
reduce_sum = _reduction("add")


@Converter
def argmax(node: Node) -> Value:
    return node.build.cast(node.build.apply("argmax", node.value(), axis=node.ints("axis")[0]), node.dtype)


def require_no_zero_points(node: Node, first: int) -> None:
    """UnsupportedOperation where zero points, operands from `first` on, are not 0."""
    for value in node.operands[first:]:
        if bool(known_values(value, "a zero point").any()):
            raise UnsupportedOperation("zero points other than 0 are not supported")


@Converter
def matmul(node: Node) -> Value:
    require_no_zero_points(node, 2)
    return contracted(node.build, node.value(0), node.value(1), ([0], [0]), ([2], [1]), node.dtype)


@Converter
def fully_connected(node: Node) -> Value:
    require_no_zero_points(node, 3)
    made = contracted(node.build, node.value(0), node.value(1), ([], []), ([1], [1]), node.dtype)
    return node.build.elementwise("add", made, node.value(2))


def _convolution(node: Node, w: Value, groups: int) -> Value:
    """Convolve data (N, space, C) with filters (O, space, I), and add the bias."""
    require_no_zero_points(node, 3)
    x, build, count = node.value(0), node.build, len(w.shape) - 2
    space, pads = tuple(range(1, count + 1)), node.ints("pad")
    how = Convolution(
        (0, count + 1, space),
        (0, count + 1, space),
        (0, count + 1, space),
        node.ints("stride"),
        list(zip(pads[::2], pads[1::2], strict=True)),
        [1] * count,
        node.ints("dilation"),
        groups,
    )
    return build.elementwise("add", convolved(build, x, w, how, node.dtype), build.cast(node.value(2), node.dtype))


@Converter
def conv2d(node: Node) -> Value:
    return _convolution(node, node.value(1), 1)


@Converter
def conv3d(node: Node) -> Value:
    return _convolution(node, node.value(1), 1)


@Converter
def depthwise_conv2d(node: Node) -> Value:
    w = node.value(1)  # (H, W, C, M)
    filters = node.build.reshape(node.build.transpose(w, [2, 3, 0, 1]), (w.shape[2] * w.shape[3], *w.shape[:2], 1))
    return _convolution(node, filters, w.shape[2])


@Converter
def transpose_conv2d(node: Node) -> Value:
    """Convolve data with gaps by turned filters."""
    require_no_zero_points(node, 3)
    x, w, build = node.value(0), node.value(1), node.build
    for axis in (1, 2):
        w = build.apply("flip", w, axis=axis)
    grown = node.ints("out_pad")
    ends = [(k - 1 + grown[2 * d], k - 1 + grown[2 * d + 1]) for d, k in enumerate(w.shape[1:3])]
    places = (0, 3, (1, 2))
    how = Convolution(places, places, places, [1, 1], ends, node.ints("stride"), [1, 1])
    return build.elementwise("add", convolved(build, x, w, how, node.dtype), node.value(2))


@Converter
def max_pool2d(node: Node) -> Value:
    return _pooled(node, "max_pool")


@Converter
def avg_pool2d(node: Node) -> Value:
    require_no_zero_points(node, 1)
    return _pooled(node, "avg_pool")


def _pooled(node: Node, operator: str) -> Value:
    top, bottom, left, right = node.ints("pad")
    options = {"kernel": node.ints("kernel"), "stride": node.ints("stride"), "layout": "NHWC"}
    made: Value = node.build.apply(operator, node.value(), padding=(top, left, bottom, right), **options)
    return made


@Converter
def reshape(node: Node) -> Value:
    return node.build.reshape(node.value(), node.shape)


@Converter
def transpose(node: Node) -> Value:
    return node.build.transpose(node.value(), _given(node, "perms", 1))


def _given(node: Node, name: str, position: int) -> list[int]:
    """Return numbers that are an attribute, or a constant operand in older and newer versions."""
    if name in node.attributes:
        return node.ints(name)
    return [int(n) for n in node.constant(position, name).reshape(-1)]


@Converter
def concat(node: Node) -> Value:
    made: Value = node.build.apply("concatenate", *node.operands, axis=node.ints("axis")[0])
    return made if len(node.operands) > 1 else node.value()


@Converter
def slice(node: Node) -> Value:
    begin, size = _given(node, "start", 1), _given(node, "size", 2)
    return node.build.slice(node.value(), begin, [b + s for b, s in zip(begin, size, strict=True)], [1] * len(begin))


@Converter
def pad(node: Node) -> Value:
    pads = _given(node, "padding", 1)
    value: Value | float = 0.0
    if len(node.operands) > 2:
        value = pad_value(node.value(2))
    return padded(node.build, node.value(), value, pads[::2], pads[1::2])


@Converter
def tile(node: Node) -> Value:
    made: Value = node.build.apply("tile", node.value(), repeats=tuple(_given(node, "multiples", 1)))
    return made


@Converter
def reverse(node: Node) -> Value:
    made: Value = node.build.apply("flip", node.value(), axis=node.ints("axis")[0])
    return made


@Converter
def gather(node: Node) -> Value:
    """Take rows of (N, K, C) at places (N, W)."""
    x, places, build = node.value(0), node.value(1), node.build
    n, k, c = x.shape
    flat = build.cast(places, "int32")
    if n > 1:
        first = build.constant(np.arange(0, n * k, k, dtype="int32")[:, None])
        flat = build.elementwise("add", flat, first)
    return taken(build, build.reshape(x, (n * k, c)), flat, 0)


@Converter
def rescale(node: Node) -> Value:
    raise UnsupportedOperation("integers are not rescaled")


@Converter
def custom(node: Node) -> Value:
    raise UnsupportedOperation(f"it is the operator '{node.get('operator_name')}', which is outside of TOSA")
