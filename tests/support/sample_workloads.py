"""One small workload of every kind of operator, with odd extents, for tests that take each of them all the way."""

from __future__ import annotations

from collections.abc import Callable

from loopwright import te, topi
from loopwright.topi.nn.winograd import pick_row

Tensors = list[te.Tensor]


def _in(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def _conv_nchw(stride: int, pad: int, dilation: int = 1, groups: int = 1, size: int = 11) -> Callable[[], Tensors]:
    def tensors() -> Tensors:
        data, kernel = _in("data", 1, 6, size, size), _in("kernel", 10, 6 // groups, 3, 3)
        bias = _in("bias", 1, 10, 1, 1)
        s, p, d = (stride, stride), (pad, pad), (dilation, dilation)
        conv = topi.nn.conv2d_nchw(data, kernel, s, p, d, groups=groups)
        return [data, kernel, bias, topi.nn.relu(conv + bias)]

    return tensors


def conv_nhwc() -> Tensors:
    data, kernel = _in("data", 2, 9, 10, 7), _in("kernel", 3, 3, 7, 19)
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, (2, 2), (1, 1), (1, 1))]


def depthwise_nchw() -> Tensors:
    data, kernel = _in("data", 1, 5, 17, 19), _in("kernel", 5, 1, 3, 3)
    return [data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, (1, 1), (1, 1), (1, 1))]


def depthwise_nhwc() -> Tensors:
    data, kernel = _in("data", 1, 13, 11, 20), _in("kernel", 3, 3, 20, 1)
    return [data, kernel, topi.nn.relu(topi.nn.depthwise_conv2d_nhwc(data, kernel, (2, 2), (1, 1), (1, 1)))]


def conv3d() -> Tensors:
    data, kernel = _in("data", 1, 3, 5, 9, 9), _in("kernel", 8, 3, 3, 3, 3)
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, (1, 1, 1), (1, 1, 1), (1, 1, 1))]


def conv_transpose() -> Tensors:
    data, kernel = _in("data", 1, 4, 7, 7), _in("kernel", 4, 6, 4, 4)
    return [data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, (2, 2), (1, 1))]


def winograd() -> Tensors:
    data, kernel = _in("data", 1, 5, 9, 9), _in("kernel", 7, 5, 3, 3)
    return [data, kernel, topi.nn.conv2d_winograd_nchw(data, kernel, (1, 1), tile_size=2)]


def winograd_nhwc() -> Tensors:
    data, kernel = _in("data", 1, 7, 10, 5), _in("kernel", 3, 3, 5, 9)
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_winograd_nhwc(data, kernel, (1, 1), tile_size=2))]


def transform_2d() -> Tensors:
    """The Hadamard transform of 4x4 blocks, rows then columns; nothing is reduced."""
    data = _in("data", 4, 4, 37)
    signs = (1, 1, 1, 1), (1, -1, 1, -1), (1, 1, -1, -1), (1, -1, -1, 1)
    rows = te.compute((4, 4, 37), lambda i, j, p: pick_row(i, signs, lambda k: data[k, j, p]), "rows")
    return [data, te.compute((4, 4, 37), lambda i, j, p: pick_row(j, signs, lambda k: rows[i, k, p]), "both")]


def dense() -> Tensors:
    data, weight, bias = _in("data", 3, 37), _in("weight", 41, 37), _in("bias", 41)
    return [data, weight, bias, topi.nn.relu(topi.nn.dense(data, weight, bias))]


def matmul_transposed() -> Tensors:
    a, b = _in("A", 31, 29), _in("B", 31, 33)
    return [a, b, topi.matmul(a, b, transpose_a=True)]


def batch_matmul() -> Tensors:
    a, b = _in("A", 3, 13, 17), _in("B", 3, 19, 17)
    return [a, b, topi.batch_matmul(a, b, transpose_b=True)]


def matmul_int8() -> Tensors:
    a, b = _in("A", 17, 37, dtype="int8"), _in("B", 37, 40, dtype="int8")
    return [a, b, topi.matmul(a, b, out_dtype="int32")]


def matmul_half() -> Tensors:
    """Half precision in multiples of what matrix units multiply, summed in single precision and rounded once."""
    a, b = _in("a", 32, 64, dtype="float16"), _in("b", 48, 64, dtype="float16")
    product = topi.nn.matmul(a, b, transpose_b=True, out_dtype="float32")
    return [a, b, topi.cast(topi.nn.relu(product), "float16")]


def conv_half() -> Tensors:
    """The same as a convolution: rows are pixels, steps of k the elements of a window."""
    data, kernel = _in("data", 1, 7, 7, 16, dtype="float16"), _in("kernel", 3, 3, 16, 24, dtype="float16")
    product = topi.nn.conv2d_nhwc(data, kernel, (1, 1), (1, 1), out_dtype="float32")
    return [data, kernel, topi.cast(product, "float16")]


def matmul_f16() -> Tensors:
    a, b = _in("A", 17, 37, dtype="float16"), _in("B", 37, 40, dtype="float16")
    return [a, b, topi.matmul(a, b, out_dtype="float32")]


def matmul_f64() -> Tensors:
    a, b = _in("A", 19, 23, dtype="float64"), _in("B", 23, 21, dtype="float64")
    return [a, b, topi.matmul(a, b)]


def two_layers() -> Tensors:
    data, first, second = _in("data", 5, 21), _in("first", 33, 21), _in("second", 18, 33)
    hidden = topi.nn.relu(topi.nn.dense(data, first))
    return [data, first, second, topi.nn.softmax(topi.nn.dense(hidden, second), -1)]


def attention() -> Tensors:
    q, k, v = _in("q", 2, 9, 16), _in("k", 2, 9, 16), _in("v", 2, 9, 16)
    scores = topi.nn.softmax(topi.batch_matmul(q, k, transpose_b=True), -1)
    return [q, k, v, topi.batch_matmul(scores, v)]


def _unary(function: Callable[[te.Tensor], te.Tensor], *shape: int) -> Callable[[], Tensors]:
    def tensors() -> Tensors:
        data = _in("data", *shape)
        return [data, function(data)]

    return tensors


def add_broadcast() -> Tensors:
    a, b = _in("a", 3, 1, 37), _in("b", 5, 1)
    return [a, b, topi.multiply(topi.add(a, b), 2.0)]


def layer_norm() -> Tensors:
    data, gamma, beta = _in("data", 5, 7, 67), _in("gamma", 67), _in("beta", 67)
    return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, axis=-1)]


def batch_norm() -> Tensors:
    data = _in("data", 2, 6, 5, 5)
    gamma, beta, mean = (_in(n, 6) for n in ("gamma", "beta", "mean"))
    variance = _in("variance", 6)
    return [data, gamma, beta, mean, variance, topi.nn.batch_norm(data, gamma, beta, mean, topi.exp(variance))]


def concatenate() -> Tensors:
    a, b = _in("a", 3, 5, 7), _in("b", 3, 4, 7)
    return [a, b, topi.concatenate([a, b], axis=1)]


def take_one() -> Tensors:
    data, place = _in("data", 3, 17, 7, 2), te.placeholder((), "int32", "place")
    return [data, place, topi.take(data, place, 2)]


def embedding() -> Tensors:
    table, ids, place = _in("table", 50, 24), te.placeholder((2, 9), "int64", "ids"), _in("place", 9, 24)
    return [table, ids, place, topi.take(table, ids) + place]


def gathered_elements() -> Tensors:
    data, ids = _in("data", 13, 40), te.placeholder((7, 40), "int32", "ids")
    found = te.compute((7, 40), lambda i, j: data[ids[i, j], j], name="found")
    return [data, ids, topi.nn.softmax(found)]


def gathered_product() -> Tensors:
    table, ids, w = _in("table", 60, 32), te.placeholder((24,), "int32", "ids"), _in("w", 32, 40)
    return [table, ids, w, topi.matmul(topi.take(table, ids), w)]


def several_outputs() -> Tensors:
    data = _in("data", 6, 19)
    return [data, topi.exp(data), topi.sum(data, axis=1)]


SAMPLES: dict[str, Callable[[], Tensors]] = {
    "conv_nchw": _conv_nchw(1, 1),
    "conv_nchw_7x7": _conv_nchw(1, 1, size=7),
    "conv_nchw_strided": _conv_nchw(2, 1),
    "conv_nchw_unpadded": _conv_nchw(1, 0),
    "conv_nchw_dilated": _conv_nchw(1, 2, dilation=2),
    "conv_nchw_grouped": _conv_nchw(1, 1, groups=2),
    "conv_nhwc": conv_nhwc,
    "depthwise_nchw": depthwise_nchw,
    "depthwise_nhwc": depthwise_nhwc,
    "conv3d": conv3d,
    "conv_transpose": conv_transpose,
    "winograd": winograd,
    "winograd_nhwc": winograd_nhwc,
    "transform_2d": transform_2d,
    "dense": dense,
    "matmul_transposed": matmul_transposed,
    "batch_matmul": batch_matmul,
    "matmul_int8": matmul_int8,
    "matmul_f16": matmul_f16,
    "matmul_half": matmul_half,
    "conv_half": conv_half,
    "matmul_f64": matmul_f64,
    "two_layers": two_layers,
    "attention": attention,
    "softmax": _unary(lambda x: topi.nn.softmax(x, -1), 7, 67),
    "softmax_axis1": _unary(lambda x: topi.nn.softmax(x, 1), 3, 19, 5),
    "log_softmax": _unary(lambda x: topi.nn.log_softmax(x, -1), 7, 67),
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    "max_pool": _unary(lambda x: topi.nn.max_pool(x, (3, 3), (2, 2), (1, 1)), 1, 5, 13, 35),
    "avg_pool_nhwc": _unary(lambda x: topi.nn.avg_pool(x, (2, 2), (2, 2), (0, 0), layout="NHWC"), 1, 12, 12, 20),
    "global_avg_pool": _unary(lambda x: topi.nn.global_avg_pool(x), 2, 9, 7, 7),
    "gelu": _unary(lambda x: topi.nn.gelu(x), 11, 37),
    "sigmoid_tanh": _unary(lambda x: topi.tanh(topi.sigmoid(x)), 1000),
    "add_broadcast": add_broadcast,
    "sum_rows": _unary(lambda x: topi.sum(x, axis=1), 9, 130),
    "sum_columns": _unary(lambda x: topi.sum(x, axis=0), 130, 37),
    "sum_all": _unary(lambda x: topi.sum(x), 9, 131),
    "mean_middle": _unary(lambda x: topi.mean(x, axis=1), 3, 40, 35),
    "argmax": _unary(lambda x: topi.argmax(x, axis=1), 9, 130),
    "transpose": _unary(lambda x: topi.transpose(x, (1, 0, 2)), 11, 13, 37),
    "reshape": _unary(lambda x: topi.reshape(x, (13, 22)), 11, 26),
    "concatenate": concatenate,
    "take_one": take_one,
    "embedding": embedding,
    "gathered_elements": gathered_elements,
    "gathered_product": gathered_product,
    "lrn": _unary(lambda x: topi.nn.lrn(x, 5), 1, 9, 6, 6),
    "resize_bilinear": _unary(lambda x: topi.resize2d(x, (14, 10), method="bilinear"), 1, 3, 7, 5),
    "several_outputs": several_outputs,
}
"""Name -> a function that gives inputs and outputs."""
