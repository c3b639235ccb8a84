"""The operators that templates come for, and what their arguments are: shapes, or the text of a network's group."""

from __future__ import annotations

from .. import te, topi
from ..computation import from_shapes

Pair = tuple[int, int]


@from_shapes
def conv2d_nchw(
    n: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kh: int,
    kw: int,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> list[te.Tensor]:
    """`(n, ci, h, w)` data, `(co, ci, kh, kw)` filters."""
    data = te.placeholder((n, ci, h, w), name="data")
    kernel = te.placeholder((co, ci, kh, kw), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation)]


@from_shapes
def conv2d_nhwc(
    n: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kh: int,
    kw: int,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> list[te.Tensor]:
    """`(n, h, w, ci)` data, `(kh, kw, ci, co)` filters."""
    data = te.placeholder((n, h, w, ci), name="data")
    kernel = te.placeholder((kh, kw, ci, co), name="kernel")
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, stride, padding, dilation)]


@from_shapes
def depthwise_conv2d_nchw(
    n: int,
    c: int,
    h: int,
    w: int,
    kh: int,
    kw: int,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> list[te.Tensor]:
    """`(n, c, h, w)` data, `(c, 1, kh, kw)` filters."""
    data = te.placeholder((n, c, h, w), name="data")
    kernel = te.placeholder((c, 1, kh, kw), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, stride, padding, dilation)]


@from_shapes
def depthwise_conv2d_nhwc(
    n: int,
    c: int,
    h: int,
    w: int,
    kh: int,
    kw: int,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> list[te.Tensor]:
    """`(n, h, w, c)` data, `(kh, kw, c, 1)` filters."""
    data = te.placeholder((n, h, w, c), name="data")
    kernel = te.placeholder((kh, kw, c, 1), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nhwc(data, kernel, stride, padding, dilation)]


@from_shapes
def dense(batch: int, out_dim: int, in_dim: int) -> list[te.Tensor]:
    """`(batch, in_dim)` data, `(out_dim, in_dim)` weight."""
    data = te.placeholder((batch, in_dim), name="data")
    weight = te.placeholder((out_dim, in_dim), name="weight")
    return [data, weight, topi.nn.dense(data, weight)]


@from_shapes
def batch_matmul(batch: int, m: int, n: int, k: int) -> list[te.Tensor]:
    """`(batch, m, k)` times `(batch, n, k)`, the second one transposed."""
    x = te.placeholder((batch, m, k), name="x")
    y = te.placeholder((batch, n, k), name="y")
    return [x, y, topi.nn.batch_matmul(x, y, transpose_b=True)]
