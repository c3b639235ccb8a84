"""Workloads of narrow types that are summed in a wide one: a dense layer, a 1x1 convolution, attention."""

from __future__ import annotations

from .. import te, topi


def dense(m: int, n: int, k: int, dtype: str, summed: str = "float32", transposed: bool = True) -> list[te.Tensor]:
    """A dense layer of `m` rows with a bias and relu, weights of (n, k) or, not `transposed`, (k, n)."""
    a, b = te.placeholder((m, k), dtype, "a"), te.placeholder((n, k) if transposed else (k, n), dtype, "b")
    c = te.placeholder((n,), dtype, "c")
    sums = topi.nn.matmul(a, b, transpose_b=transposed, out_dtype=summed)
    return [a, b, c, topi.nn.relu(topi.add(topi.cast(sums, dtype), c))]


def pointwise(
    size: int, channels: int, filters: int, dtype: str, images: int = 1, channels_last: bool = True
) -> list[te.Tensor]:
    """A 1x1 convolution of images of `size` x `size` with relu."""
    if channels_last:
        x = te.placeholder((images, size, size, channels), dtype, "x")
        w = te.placeholder((1, 1, channels, filters), dtype, "w")
        sums = topi.nn.conv2d_nhwc(x, w, 1, 0, 1, out_dtype="float32")
    else:
        x = te.placeholder((images, channels, size, size), dtype, "x")
        w = te.placeholder((filters, channels, 1, 1), dtype, "w")
        sums = topi.nn.conv2d_nchw(x, w, 1, 0, 1, out_dtype="float32")
    return [x, w, topi.nn.relu(topi.cast(sums, dtype))]


def attention(heads: int, queries: int, keys: int, size: int, dtype: str = "float16") -> list[te.Tensor]:
    """softmax(q k^T) v with scores and weights rounded to the narrow type; heads that share keys are rows of one."""
    q = te.placeholder((heads, queries, size), dtype, "q")
    k, v = (te.placeholder((heads, keys, size), dtype, name) for name in "kv")
    scores = topi.cast(topi.nn.batch_matmul(q, k, False, True, out_dtype="float32"), dtype)
    sums = topi.nn.batch_matmul(topi.nn.softmax(scores), v, out_dtype="float32")
    return [q, k, v, topi.cast(sums, dtype)]
