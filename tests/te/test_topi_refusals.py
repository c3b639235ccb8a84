"""Shapes and options that do not fit are refused in one sentence that names the operator and the shapes."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from loopwright import te, topi


def p(*shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, "x")


REFUSALS: list[tuple[str, Callable[[], Any]]] = [
    (
        "conv2d_nchw: data (1, 9, 7, 7) and kernel (4, 3, 3, 3) do not fit with groups=1: 9 input channels, "
        "kernel for 3 per group, 4 output channels",
        lambda: topi.nn.conv2d_nchw(p(1, 9, 7, 7), p(4, 3, 3, 3)),
    ),
    (
        "conv2d_nchw: data (1, 9, 7, 7) and kernel (4, 3, 3, 3) do not fit with groups=3",
        lambda: topi.nn.conv2d_nchw(p(1, 9, 7, 7), p(4, 3, 3, 3), groups=3),
    ),
    (
        "conv2d_nhwc: kernel must have 4 axes, got shape (3, 3, 5)",
        lambda: topi.nn.conv2d_nhwc(p(1, 9, 7, 3), p(3, 3, 5)),
    ),
    (
        "conv2d_nchw: a window of (3, 9) does not fit in the padded extents (7, 7)",
        lambda: topi.nn.conv2d_nchw(p(1, 3, 7, 7), p(4, 3, 3, 9)),
    ),
    (
        "conv2d_nchw: padding takes 1, 2 or 4 integers of at least 0, got (1, 2, 3)",
        lambda: topi.nn.conv2d_nchw(p(1, 3, 7, 7), p(4, 3, 3, 3), 1, (1, 2, 3)),
    ),
    (
        'conv2d_nchw: padding is integers, "SAME" or "VALID", got "FULL"',
        lambda: topi.nn.conv2d_nchw(p(1, 3, 7, 7), p(4, 3, 3, 3), 1, "FULL"),
    ),
    (
        "conv2d_nchw: stride takes 2 positive integers (or one for all), got 0",
        lambda: topi.nn.conv2d_nchw(p(1, 3, 7, 7), p(4, 3, 3, 3), 0),
    ),
    (
        "conv3d_ncdhw: data (1, 2, 5, 5, 5) and kernel (3, 4, 2, 2, 2) do not fit",
        lambda: topi.nn.conv3d_ncdhw(p(1, 2, 5, 5, 5), p(3, 4, 2, 2, 2)),
    ),
    (
        "depthwise_conv2d_nchw: data (1, 9, 7, 7) has 9 channels, kernel (4, 1, 3, 3) is for 4",
        lambda: topi.nn.depthwise_conv2d_nchw(p(1, 9, 7, 7), p(4, 1, 3, 3)),
    ),
    (
        "conv2d_transpose_nchw: data (1, 3, 5, 5) and kernel (4, 2, 3, 3) do not fit with groups=1",
        lambda: topi.nn.conv2d_transpose_nchw(p(1, 3, 5, 5), p(4, 2, 3, 3)),
    ),
    (
        "conv2d_transpose_nchw: output_padding (1, 0) must be at least 0 and below stride (1, 1)",
        lambda: topi.nn.conv2d_transpose_nchw(p(1, 3, 5, 5), p(3, 2, 3, 3), 1, 0, (1, 0)),
    ),
    (
        "winograd_weight_transform: the window must be 3x3, got kernel (4, 3, 5, 5) in OIHW",
        lambda: topi.nn.conv2d_winograd_nchw(p(1, 3, 7, 7), p(4, 3, 5, 5)),
    ),
    (
        "conv2d_winograd_nchw: tile_size is 2 or 4, got 3",
        lambda: topi.nn.conv2d_winograd_nchw(p(1, 3, 7, 7), p(4, 3, 3, 3), tile_size=3),
    ),
    (
        "conv2d_winograd_nhwc: the transforms need floats, got int8",
        lambda: topi.nn.conv2d_winograd_nhwc(p(1, 7, 7, 3, dtype="int8"), p(3, 3, 3, 4, dtype="int8")),
    ),
    (
        "matmul: a (5, 7) and b (6, 3) do not fit: 7 columns against 6 rows",
        lambda: topi.matmul(p(5, 7), p(6, 3)),
    ),
    (
        "matmul: a (5, 7) transposed and b (7, 3) do not fit: 5 columns against 7 rows",
        lambda: topi.matmul(p(5, 7), p(7, 3), transpose_a=True),
    ),
    (
        "batch_matmul: batches of a (2, 5, 7) and b (3, 7, 3) do not agree",
        lambda: topi.batch_matmul(p(2, 5, 7), p(3, 7, 3)),
    ),
    ("dense: bias must have shape (4,), got (3,)", lambda: topi.nn.dense(p(2, 3), p(4, 3), p(3))),
    (
        "max_pool: a window of (9, 9) does not fit data (1, 3, 7, 7)",
        lambda: topi.nn.max_pool(p(1, 3, 7, 7), 9),
    ),
    (
        "avg_pool: data (1, 3, 7) does not have layout NCHW",
        lambda: topi.nn.avg_pool(p(1, 3, 7), 3),
    ),
    ("avg_pool: a mean needs floats, got int8", lambda: topi.nn.avg_pool(p(1, 3, 7, 7, dtype="int8"), 3)),
    ("softmax: axis 2 is out of range for a tensor with 2 axes", lambda: topi.nn.softmax(p(3, 4), 2)),
    (
        "layer_norm: scale and shift over axes (1,) of data (3, 4) have shape (4,), got (3,)",
        lambda: topi.nn.layer_norm(p(3, 4), p(3)),
    ),
    (
        "batch_norm: gamma (3,) does not fit axis 1 of data (2, 4, 5)",
        lambda: topi.nn.batch_norm(p(2, 4, 5), p(3), p(4), p(4), p(4)),
    ),
    ("bias_add: bias (3,) does not fit axis 1 of data (2, 4, 5)", lambda: topi.nn.bias_add(p(2, 4, 5), p(3))),
    ("prelu: slope (3,) does not fit axis 1 of data (2, 4, 5)", lambda: topi.nn.prelu(p(2, 4, 5), p(3))),
    ("add: shapes (3, 4) and (3,) do not broadcast together", lambda: topi.add(p(3, 4), p(3))),
    ("subtract: shapes (3, 4) and (2, 3) do not broadcast", lambda: p(3, 4) - p(2, 3)),
    ("pad: data of shape (3, 4) takes 2 amounts", lambda: topi.nn.pad(p(3, 4), (1,))),
    ("sum: axis 3 is out of range for a tensor with 2 axes", lambda: topi.sum(p(3, 4), 3)),
    ("max: axes repeat in (0, -2)", lambda: topi.max(p(3, 4), (0, -2))),
    ("mean: a mean needs floats, got int32", lambda: topi.mean(p(3, 4, dtype="int32"))),
    ("transpose: axes (0, 0) do not permute data (3, 4)", lambda: topi.transpose(p(3, 4), (0, 0))),
    ("reshape: data (3, 4) has 12 elements, shape (5, 3) does not", lambda: topi.reshape(p(3, 4), (5, 3))),
    ("reshape: data (3, 4) has 12 elements, shape (5, -1) does not", lambda: topi.reshape(p(3, 4), (5, -1))),
    ("squeeze: axis 0 of data (3, 1) has an extent other than 1", lambda: topi.squeeze(p(3, 1), 0)),
    (
        "concatenate: tensors (3, 4) float32, (2, 5) float32 do not fit along axis 0",
        lambda: topi.concatenate([p(3, 4), p(2, 5)]),
    ),
    (
        "stack: tensors (3, 4) float32, (3, 4) int32 do not fit along axis 0",
        lambda: topi.stack([p(3, 4), p(3, 4, dtype="int32")]),
    ),
    ("split: axis 1 of data (3, 4) does not split into 3", lambda: topi.split(p(3, 4), 3, 1)),
    ("split: positions [3, 2] do not rise within axis 1 of data (3, 4)", lambda: topi.split(p(3, 4), [3, 2], 1)),
    ("strided_slice: nothing is left of data (3, 4)", lambda: topi.strided_slice(p(3, 4), (2,), (1,))),
    ("strided_slice: begin (0, 0, 0)", lambda: topi.strided_slice(p(3, 4), (0, 0, 0), (1, 1, 1))),
    ("broadcast_to: data (3, 4) does not stretch to (3, 1)", lambda: topi.broadcast_to(p(3, 4), (3, 1))),
    ("tile: repeats (2,) do not fit data (3, 4)", lambda: topi.tile(p(3, 4), (2,))),
    ("take: indices must be integers, got float32", lambda: topi.take(p(3, 4), p(2))),
    ("resize2d: size takes two extents of at least 1, got (0, 3)", lambda: topi.resize2d(p(1, 3, 4, 4), (0, 3))),
    (
        "resize2d: bilinear needs floats, got int8",
        lambda: topi.resize2d(p(1, 3, 4, 4, dtype="int8"), (8, 8)),
    ),
    ("resize2d: layout is NCHW or NHWC", lambda: topi.resize2d(p(1, 3, 4, 4), (8, 8), method="cubic")),
    ("lrn: size must be at least 1, got 0", lambda: topi.nn.lrn(p(1, 3, 4), 0)),
]


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_one_sentence_names_operator_and_shapes(number: int) -> None:
    message, build = REFUSALS[number]
    with pytest.raises(te.ShapeError, match=re.escape(message)) as caught:
        build()
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
