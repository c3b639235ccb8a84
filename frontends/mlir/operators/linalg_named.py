"""linalg's matrix products, convolutions and poolings, whose names say the order of axes."""

from __future__ import annotations

import re

from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from ._generic import product_of
from ._products import Convolution, convolved
from ._reductions import joined
from ._windows import Windows, window_reduced
from .linalg import contraction, operands_of

_PRODUCTS = {
    "matmul": "mk,kn->mn",
    "matmul_transpose_a": "km,kn->mn",
    "matmul_transpose_b": "mk,nk->mn",
    "batch_matmul": "bmk,bkn->bmn",
    "batch_matmul_transpose_a": "bkm,bkn->bmn",
    "batch_matmul_transpose_b": "bmk,bnk->bmn",
    "batch_reduce_matmul": "bmk,bkn->mn",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "dot": "k,k->",
    "mmt4d": "mkij,nklj->mnil",
    "batch_mmt4d": "bmkij,bnklj->bmnil",
    "quantized_matmul": "mk,kn->mn",
    "quantized_batch_matmul": "bmk,bkn->bmn",
}
"""Products by the letters of their axes, as NumPy's einsum has them."""


def _product(name: str) -> Converter:
    left, right, result = re.split(r",|->", _PRODUCTS[name])

    def convert(node: Node) -> Value:
        inputs, starts = operands_of(node)
        maps = node.get("indexing_maps")
        if maps is not None and len(inputs) == 2:
            return contraction(node, inputs, starts[0], maps)
        x, y = _without_zero_points(node, inputs, starts[0])
        axes = [[ord(c) for c in left], [ord(c) for c in right]]
        summed = [ord(c) for c in left if c in right and c not in result]
        made = product_of(node, x, y, axes, summed, [ord(c) for c in result], starts[0].dtype)
        return joined(node.build, "add", made, starts[0])

    return Converter(convert)


def _without_zero_points(node: Node, inputs: list[Value], start: Value) -> tuple[Value, Value]:
    """Return both factors, quantized ones less their zero points, which are behind them."""
    if len(inputs) < 4:
        return inputs[0], inputs[1]
    build = node.build
    wide = [build.cast(v, start.dtype) for v in inputs]
    return build.elementwise("subtract", wide[0], wide[2]), build.elementwise("subtract", wide[1], wide[3])


matmul = _product("matmul")
matmul_transpose_a = _product("matmul_transpose_a")
matmul_transpose_b = _product("matmul_transpose_b")
batch_matmul = _product("batch_matmul")
batch_matmul_transpose_a = _product("batch_matmul_transpose_a")
batch_matmul_transpose_b = _product("batch_matmul_transpose_b")
batch_reduce_matmul = _product("batch_reduce_matmul")
batch_matvec = _product("batch_matvec")
batch_vecmat = _product("batch_vecmat")
matvec = _product("matvec")
vecmat = _product("vecmat")
dot = _product("dot")
mmt4d = _product("mmt4d")
batch_mmt4d = _product("batch_mmt4d")
quantized_matmul = _product("quantized_matmul")
quantized_batch_matmul = _product("quantized_batch_matmul")


def _convolution(data: str, weight: str) -> Converter:
    """Return the converter of a convolution: letters n, g, c, f and those of space, in the order of axes."""

    def convert(node: Node) -> Value:
        inputs, starts = operands_of(node)
        x, w = _without_zero_points(node, inputs, starts[0])
        return joined(node.build, "add", _convolved(node, data, weight, x, w, starts[0]), starts[0])

    return Converter(convert)


def _convolved(node: Node, data: str, weight: str, x: Value, w: Value, start: Value) -> Value:
    build, space = node.build, [c for c in data if c in "dhw"]
    shape = start.shape
    if "n" not in data:  # neither batches nor channels
        x, w = build.reshape(x, (1, 1, *x.shape)), build.reshape(w, (1, 1, *w.shape))
        data, weight = "nc" + data, "fc" + weight
    groups = 1
    result = data.replace("c", "f") if "f" in weight else data
    if "g" in data:
        groups = x.shape[data.index("g")]
        x, data = _joined_axes(node, x, data, "gc")
        w, weight = _joined_axes(node, w, weight, "gf")
        result = data.replace("c", "f")
    elif "f" not in weight:
        groups = x.shape[data.index("c")]
        w, weight = _depthwise(node, w, weight)
        result = data.replace("c", "f")
    count = len(space)
    ones = [1] * count
    how = Convolution(
        (data.index("n"), data.index("c"), tuple(data.index(c) for c in space)),
        (weight.index("f"), weight.index("c"), tuple(weight.index(c) for c in space)),
        (result.index("n"), result.index("f"), tuple(result.index(c) for c in space)),
        node.ints("strides", ones) if len(node.ints("strides", ones)) == count else node.ints("strides") * count,
        [(0, 0)] * count,
        ones,
        node.ints("dilations", ones) if len(node.ints("dilations", ones)) == count else node.ints("dilations") * count,
        groups,
    )
    return build.reshape(convolved(build, x, w, how, start.dtype), shape)


def _joined_axes(node: Node, x: Value, order: str, pair: str) -> tuple[Value, str]:
    """Return a tensor with the axes of groups and channels as one, named after the channels."""
    first, second = pair[0], pair[1]
    rest = [c for c in order if c not in pair]
    place = min(order.index(first), order.index(second))
    wanted = [*rest]
    at = sum(order.index(c) < place for c in rest)
    wanted[at:at] = [first, second]
    x = node.build.transpose(x, [order.index(c) for c in wanted])
    shape = [n for c, n in zip(wanted, x.shape, strict=True) if c not in pair]
    shape.insert(at, x.shape[at] * x.shape[at + 1])
    joined_order = [*rest]
    joined_order.insert(at, second)
    return node.build.reshape(x, shape), "".join(joined_order)


def _depthwise(node: Node, w: Value, weight: str) -> tuple[Value, str]:
    """Return filters (c, space) or (c, m, space) as those of as many groups as channels."""
    space = [c for c in weight if c in "dhw"]
    order = ["c", *(["m"] if "m" in weight else []), *space]
    w = node.build.transpose(w, [weight.index(c) for c in order])
    window = w.shape[len(order) - len(space) :]
    filters = w.shape[0] * (w.shape[1] if "m" in weight else 1)
    return node.build.reshape(w, (filters, 1, *window)), "fc" + "".join(space)


def _pooling(data: str, how: str) -> Converter:
    combiner = {"sum": "add", "max": "max", "min": "min"}[how]

    def convert(node: Node) -> Value:
        inputs, starts = operands_of(node)
        x, sizes = inputs
        space = [k for k, c in enumerate(data) if c in "dhw"]
        rank, ones = len(x.shape), [1] * len(space)
        window, strides, dilations = [1] * rank, [1] * rank, [1] * rank
        for k, axis in enumerate(space):
            window[axis] = sizes.shape[k]
            strides[axis] = (node.ints("strides", ones) * len(space))[k]
            dilations[axis] = (node.ints("dilations", ones) * len(space))[k]
        if x.dtype != starts[0].dtype:
            x = node.build.cast(x, starts[0].dtype)
        made = window_reduced(node.build, combiner, x, Windows(window, strides, dilations, [1] * rank, [(0, 0)] * rank))
        if made.shape != starts[0].shape:
            raise UnsupportedOperation(f"it gives {list(made.shape)}, its output has {list(starts[0].shape)}")
        return joined(node.build, combiner, made, starts[0])

    return Converter(convert)


_CONVOLUTIONS = (
    "conv_1d w w", "conv_2d hw hw", "conv_3d dhw dhw", "conv_1d_ncw_fcw ncw fcw", "conv_1d_nwc_wcf nwc wcf",
    "conv_2d_nchw_fchw nchw fchw", "conv_2d_nhwc_hwcf nhwc hwcf", "conv_2d_nhwc_fhwc nhwc fhwc",
    "conv_2d_nchw_fchw_q nchw fchw", "conv_2d_nhwc_hwcf_q nhwc hwcf", "conv_2d_nhwc_fhwc_q nhwc fhwc",
    "conv_2d_ngchw_fgchw ngchw fgchw", "conv_2d_ngchw_gfchw ngchw gfchw", "conv_2d_ngchw_gfchw_q ngchw gfchw",
    "conv_2d_nhwgc_gfhwc nhwgc gfhwc", "conv_3d_ncdhw_fcdhw ncdhw fcdhw", "conv_3d_ndhwc_dhwcf ndhwc dhwcf",
    "conv_3d_ndhwc_dhwcf_q ndhwc dhwcf", "depthwise_conv_1d_ncw_cw ncw cw", "depthwise_conv_1d_nwc_wc nwc wc",
    "depthwise_conv_1d_nwc_wcm nwc wcm", "depthwise_conv_2d_nchw_chw nchw chw", "depthwise_conv_2d_nhwc_hwc nhwc hwc",
    "depthwise_conv_2d_nhwc_hwc_q nhwc hwc", "depthwise_conv_2d_nhwc_hwcm nhwc hwcm",
    "depthwise_conv_2d_nhwc_hwcm_q nhwc hwcm", "depthwise_conv_3d_ndhwc_dhwc ndhwc dhwc",
    "depthwise_conv_3d_ncdhw_cdhw ncdhw cdhw", "depthwise_conv_3d_ndhwc_dhwcm ndhwc dhwcm",
)  # fmt: skip
"""Names, and the letters of the axes of data and weights."""
for _line in _CONVOLUTIONS:
    _name, _data, _weight = _line.split()
    globals()[_name] = _convolution(_data, _weight)
for _data in ("ncw", "nwc", "nchw", "nhwc", "ncdhw", "ndhwc"):
    for _how in ("sum", "max", "min"):
        globals()[f"pooling_{_data}_{_how}"] = _pooling(_data, _how)
