"""Parts that the classic tutorials share: a layer, arrays for it, short measurements, and how their prints are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from patience import PATIENCE_S

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.testing import conv2d_nchw_python

T = TypeVar("T")
Array = npt.NDArray[Any]

LAST_OF_RESNET = (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1))
"""The layer that the tutorials tune: N, H, W, CO, CI, KH, KW, strides, padding."""
SMALL = (1, 4, 4, 4, 4, 3, 3, (1, 1), (1, 1))
"""One like it that is tuned in a second."""

BUILDER = lw.LocalBuilder(n_parallel=1, timeout=PATIENCE_S)
RUNNER = lw.LocalRunner(repeat=1, min_repeat_ms=1, timeout=PATIENCE_S)


def conv2d_layer(
    N: int, H: int, W: int, CO: int, CI: int, KH: int, KW: int, stride: tuple[int, int], padding: tuple[int, int]
) -> list[te.Tensor]:
    """The computation of "Auto-scheduling a convolution layer for GPU", word for word."""
    data = te.placeholder((N, CI, H, W), name="data")
    kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
    bias = te.placeholder((1, CO, 1, 1), name="bias")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    out = topi.nn.relu(conv + bias)
    return [data, kernel, bias, out]


def layer_arrays(args: tuple[Any, ...]) -> tuple[list[Array], Array]:
    """Random data, weights and bias of a layer, and what comes of them, as the tutorials make both."""
    N, H, W, CO, CI, KH, KW, strides, padding = args
    data_np = np.random.default_rng(0).uniform(size=(N, CI, H, W)).astype(np.float32)
    weight_np = np.random.default_rng(1).uniform(size=(CO, CI, KH, KW)).astype(np.float32)
    bias_np = np.random.default_rng(2).uniform(size=(1, CO, 1, 1)).astype(np.float32)
    conv_np = conv2d_nchw_python(data_np, weight_np, strides, padding)
    return [data_np, weight_np, bias_np], np.maximum(conv_np + bias_np, 0.0)


def printed(call: Callable[[], T]) -> tuple[T, str]:
    """What a call returns, and what it prints to standard output and error."""
    stream = StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        return call(), stream.getvalue()


def stages(graph: str) -> list[tuple[str, str, str]]:
    """Of each line of a printed graph the name with its axes or shape, the assignment, and the words on its right."""
    found = []
    for line in graph.strip().splitlines():
        left, how, right = re.fullmatch(r"(\w+(?:\([^)]*\))?) (=|\+=|max=) (.*)", line).groups()  # type: ignore[union-attr]
        if right.startswith("PLACEHOLDER"):
            found.append((left, how, right.removesuffix(" constant")))
        else:
            words = set(re.findall(r"\b[A-Za-z_]\w*", right.replace("tir.if_then_else", "select")))
            found.append((left, how, " ".join(sorted(words))))
    return found


def run_printed_schedule(text: str, tensors: list[te.Tensor]) -> lw.Schedule:
    """Run the Python that `print_best(mode="python")` prints."""
    names: dict[str, Any] = {"tensors": tensors}
    exec(text, names)
    made = names["sch"]
    assert isinstance(made, lw.Schedule)
    return made


def small_network() -> lw.Network:
    """A pointwise and a depthwise convolution, as MobileNet has them, in NHWC: two tasks that are tuned in seconds."""
    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> Any:
        return net.constant(random.standard_normal(shape, dtype=np.float32), name)

    net = lw.Network("small")
    x = net.input("data", (1, 4, 4, 4))
    y = net.relu(net.conv2d(x, weights("pointwise", 1, 1, 4, 8), layout="NHWC"))
    y = net.relu(net.depthwise_conv2d(y, weights("depthwise", 3, 3, 8, 1), padding=1, layout="NHWC"))
    net.output(y)
    return net
