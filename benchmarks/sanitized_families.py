"""Workloads of other families than products and convolutions of images, of which sanitize.py draws schedules."""

from __future__ import annotations

from collections.abc import Callable

from loopwright import te, topi


def transposed_conv() -> list[te.Tensor]:
    """A phase of the stride at a time."""
    data, kernel = te.placeholder((1, 32, 9, 11), name="data"), te.placeholder((32, 48, 4, 4), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_transpose_nchw(data, kernel, 2, 1))]


def volume() -> list[te.Tensor]:
    """A 3-D convolution, directly and by transforms of its planes."""
    data, kernel = te.placeholder((1, 32, 6, 14, 15), name="data"), te.placeholder((48, 32, 3, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, 1)]


def strided_conv() -> list[te.Tensor]:
    """Groups, strides and dilations, of rows that no vector divides."""
    data, kernel = te.placeholder((2, 24, 23, 21), name="data"), te.placeholder((36, 12, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 2, 2, 2, groups=2)]


def one_tap_conv() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 72, 15, 13), name="data"), te.placeholder((56, 72, 1, 1), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 0))]


def bytes_conv() -> list[te.Tensor]:
    data = te.placeholder((1, 13, 14, 32), "int8", name="data")
    kernel = te.placeholder((3, 3, 32, 48), "int8", name="kernel")
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="int32")]


def large_window() -> list[te.Tensor]:
    """A depthwise window of 49 taps."""
    data, kernel = te.placeholder((1, 24, 15, 17), name="data"), te.placeholder((24, 1, 7, 7), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, 1, 3)]


def row_convolution() -> list[te.Tensor]:
    data, kernel = te.placeholder((2, 40, 101), name="data"), te.placeholder((56, 40, 3), name="kernel")
    return [data, kernel, topi.nn.conv1d_ncw(data, kernel, 1, 1)]


def few_rows() -> list[te.Tensor]:
    a, b = te.placeholder((5, 517), name="a"), te.placeholder((333, 517), name="b")
    return [a, b, topi.matmul(a, b, transpose_b=True)]


def one_row() -> list[te.Tensor]:
    a, b = te.placeholder((1, 1030), "float16", name="a"), te.placeholder((1030, 260), "float16", name="b")
    return [a, b, topi.matmul(a, b, out_dtype="float32")]


def batch() -> list[te.Tensor]:
    a, b = te.placeholder((6, 50, 33), name="a"), te.placeholder((6, 33, 70), name="b")
    return [a, b, topi.nn.gelu(topi.nn.batch_matmul(a, b))]


def long_rows() -> list[te.Tensor]:
    """Few rows, which are divided among blocks of threads."""
    data = te.placeholder((3, 30011), name="data")
    return [data, topi.nn.softmax(data, -1)]


def columns() -> list[te.Tensor]:
    """Softmax along an axis that is not the last."""
    data = te.placeholder((4, 77, 45), name="data")
    return [data, topi.nn.log_softmax(data, 1)]


def normalized() -> list[te.Tensor]:
    data, scale = te.placeholder((37, 770), name="data"), te.placeholder((770,), name="scale")
    return [data, scale, topi.nn.layer_norm(data, scale, None)]


def mean_of_images() -> list[te.Tensor]:
    data = te.placeholder((2, 50, 15, 15), name="data")
    return [data, topi.nn.global_avg_pool(data)]


def pooled() -> list[te.Tensor]:
    data = te.placeholder((2, 20, 27, 29), name="data")
    return [data, topi.nn.max_pool(data, 3, 2, 1, ceil_mode=True)]


def short_rows() -> list[te.Tensor]:
    """Rows that a few threads join, many in a block."""
    data = te.placeholder((2117, 13), name="data")
    return [data, topi.nn.softmax(data, -1)]


def divided_rows() -> list[te.Tensor]:
    """Few long rows: parts on many blocks, which those behind them join."""
    data = te.placeholder((3, 50001), name="data")
    return [data, topi.nn.softmax(data, -1)]


def divided_groups() -> list[te.Tensor]:
    """The same of several axes, with a scale of one of them and an activation."""
    data, gamma = te.placeholder((2, 3, 5, 10007), name="data"), te.placeholder((3, 5, 1), name="gamma")
    scaled = topi.multiply(topi.nn.layer_norm(data, axis=(2, 3)), gamma)
    return [data, gamma, topi.multiply(scaled, topi.sigmoid(scaled))]


def places() -> list[te.Tensor]:
    data = te.placeholder((45, 700), name="data")
    return [data, topi.argmax(data, axis=1)]


def running() -> list[te.Tensor]:
    data = te.placeholder((19, 515), name="data")
    return [data, topi.cumsum(data, axis=1)]


def turned() -> list[te.Tensor]:
    data = te.placeholder((130, 5, 77), name="data")
    return [data, topi.transpose(data, (2, 1, 0))]


def joined() -> list[te.Tensor]:
    a, b = te.placeholder((2, 13, 19, 21), name="a"), te.placeholder((2, 6, 19, 21), name="b")
    return [a, b, topi.nn.relu(topi.concatenate([a, b], axis=1))]


def resized() -> list[te.Tensor]:
    data = te.placeholder((1, 12, 15, 17), name="data")
    return [data, topi.resize2d(data, (29, 35))]


def taken() -> list[te.Tensor]:
    data, which = te.placeholder((50, 130), name="data"), te.placeholder((70,), "int32", name="which")
    inside = topi.clip(topi.cast(which, "float32"), 0, 49)
    return [data, which, topi.take(data, topi.cast(inside, "int32"), axis=0)]


FAMILIES: tuple[Callable[[], list[te.Tensor]], ...] = (
    *(transposed_conv, volume, strided_conv, one_tap_conv, bytes_conv, large_window, row_convolution),
    *(few_rows, one_row, batch, long_rows, short_rows, divided_rows, divided_groups, columns, normalized),
    *(mean_of_images, pooled, places, running, turned, joined, resized, taken),
)
