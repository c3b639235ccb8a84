"""Arguments of the operators that come with templates, which powers of two do not divide."""

from typing import Any

ODD: dict[str, tuple[Any, ...]] = {
    "conv1d_ncw": (2, 19, 6, 5, 3, 2, 1, 1),
    "conv1d_nwc": (2, 19, 6, 5, 3, 1, 2, 2),
    "conv2d_nchw": (2, 7, 9, 6, 5, 3, 3, (1, 1), (1, 1)),
    "conv2d_nhwc": (2, 9, 7, 6, 5, 3, 1, (2, 2), (1, 0)),
    "conv3d_ncdhw": (1, 5, 6, 7, 6, 3, 3, 2, 3, (1, 1, 2), (1, 0, 1)),
    "conv3d_ndhwc": (1, 5, 6, 7, 6, 3, 3, 2, 3, (2, 1, 1), (1, 0, 1)),
    "conv2d_transpose_nchw": (1, 5, 6, 7, 6, 3, 4, (2, 2), (1, 1), (1, 0)),
    "conv2d_transpose_nhwc": (1, 5, 6, 7, 6, 4, 3, (2, 3), (1, 0), (0, 1)),
    "group_conv2d_nchw": (1, 7, 9, 6, 9, 3, 3, 3, (1, 1), (1, 1)),
    "group_conv2d_nhwc": (1, 7, 9, 6, 9, 3, 3, 3, (2, 1), (1, 1)),
    "conv2d_nchw_winograd": (2, 7, 9, 6, 5, 3, 3, (1, 1), (1, 1)),
    "conv2d_nhwc_winograd": (2, 9, 7, 6, 5, 3, 3, (1, 1), (1, 0)),
    "depthwise_conv2d_nchw": (2, 6, 7, 9, 3, 3, (1, 1), (1, 1)),
    "depthwise_conv2d_nhwc": (1, 6, 9, 7, 3, 3, (2, 1), (0, 1)),
    "dense": (6, 15, 21),
    "batch_matmul": (3, 6, 15, 21),
}
