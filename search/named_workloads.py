"""Workloads with names and shapes to choose, for the command line: each function here is one, its defaults a layer."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from .. import te, topi
from ..dialects.shown_text import one_line
from ..te import Tensor
from .records.record import key_of
from .workload import Workload, registered_workloads


def named_workloads() -> dict[str, Workload]:
    """Every workload of this module by name; parameters and their defaults are in the signature."""
    here = vars(sys.modules[__name__]).values()
    functions = [f for f in here if inspect.isfunction(f) and f.__module__ == __name__]
    own = [f for f in functions if inspect.signature(f).return_annotation == "list[Tensor]"]
    return {f.__name__: Workload(f.__name__, f) for f in own}


def find_workload(name: str) -> Workload:
    """The workload of a name, registered or of this module; ValueError where there is none."""
    known = named_workloads() | registered_workloads()
    if name not in known:
        network = "; tasks of a network: lw.extract_tasks(net or 'model.onnx', target)"
        raise ValueError(f"there is no workload '{one_line(name)}'; there are: {', '.join(sorted(known))}{network}")
    return known[name]


def workload_of_key(key: str) -> tuple[Workload, list[Any]]:
    """The workload that a key names, and the arguments in it.

    ValueError where the text is no key, nothing is registered under its name, or that computes something else now.
    """
    parts = key_of(key)
    if parts is None:
        raise ValueError(f"not a workload key: {one_line(key)}; one is JSON: [name, arguments, hash]")
    name, args, digest = parts
    workload = find_workload(name)
    if workload.dag(*args).hash != digest:
        raise ValueError(
            f"workload '{one_line(name)}' computes something else now than when its key was made: {one_line(key)}"
        )
    return workload, args


def parameters(workload: Workload) -> dict[str, Any]:
    """The parameters of a named workload and their defaults: whole numbers, truth values and names of types."""
    return {name: p.default for name, p in inspect.signature(workload.function).parameters.items()}


def arguments(workload: Workload, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return all arguments in order: those given, defaults for the rest. ValueError for one that the workload lacks."""
    known = parameters(workload)
    for name in given:
        if name not in known:
            raise ValueError(f"{workload.name} has no option '{name}'; its options are {', '.join(known)}")
    return tuple({**known, **given}.values())


def conv2d(
    n: int = 1,
    h: int = 7,
    w: int = 7,
    ci: int = 512,
    co: int = 512,
    kh: int = 3,
    kw: int = 3,
    stride: int = 1,
    pad: int = 1,
    dilation: int = 1,
    groups: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Convolution of NCHW data, + bias, relu; the last 3x3 of ResNet-50."""
    data = te.placeholder((n, ci, h, w), dtype, "data")
    kernel = te.placeholder((co, ci // groups, kh, kw), dtype, "kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, pad, dilation, groups)
    bias = te.placeholder((1, co, 1, 1), conv.dtype, "bias")
    return [data, kernel, bias, topi.nn.relu(conv + bias)]


def conv2d_nhwc(
    n: int = 1,
    h: int = 56,
    w: int = 56,
    ci: int = 128,
    co: int = 128,
    kh: int = 1,
    kw: int = 1,
    stride: int = 1,
    pad: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Convolution of NHWC data, + bias, relu; a pointwise one."""
    data = te.placeholder((n, h, w, ci), dtype, "data")
    kernel = te.placeholder((kh, kw, ci // groups, co), dtype, "kernel")
    conv = topi.nn.conv2d_nhwc(data, kernel, stride, pad, dilation, groups)
    bias = te.placeholder((co,), conv.dtype, "bias")
    return [data, kernel, bias, topi.nn.relu(conv + bias)]


def conv2d_winograd(
    n: int = 1,
    h: int = 56,
    w: int = 56,
    ci: int = 64,
    co: int = 64,
    pad: int = 1,
    tile: int = 4,
    dtype: str = "float32",
) -> list[Tensor]:
    """3x3 convolution of NCHW data by Winograd's transforms."""
    data = te.placeholder((n, ci, h, w), dtype, "data")
    kernel = te.placeholder((co, ci, 3, 3), dtype, "kernel")
    return [data, kernel, topi.nn.conv2d_winograd_nchw(data, kernel, pad, tile)]


def conv2d_transpose(
    n: int = 1,
    h: int = 16,
    w: int = 16,
    ci: int = 256,
    co: int = 128,
    kh: int = 4,
    kw: int = 4,
    stride: int = 2,
    pad: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Transposed convolution of NCHW data."""
    data = te.placeholder((n, ci, h, w), dtype, "data")
    kernel = te.placeholder((ci, co, kh, kw), dtype, "kernel")
    return [data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, stride, pad)]


def conv3d(
    n: int = 1,
    d: int = 8,
    h: int = 28,
    w: int = 28,
    ci: int = 32,
    co: int = 64,
    k: int = 3,
    stride: int = 1,
    pad: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Convolution of NCDHW data with a kernel of k in each direction."""
    data = te.placeholder((n, ci, d, h, w), dtype, "data")
    kernel = te.placeholder((co, ci, k, k, k), dtype, "kernel")
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, stride, pad)]


def depthwise(
    n: int = 1,
    h: int = 112,
    w: int = 112,
    c: int = 32,
    kh: int = 3,
    kw: int = 3,
    stride: int = 1,
    pad: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Depthwise convolution of NHWC data."""
    data = te.placeholder((n, h, w, c), dtype, "data")
    kernel = te.placeholder((kh, kw, c, 1), dtype, "kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nhwc(data, kernel, stride, pad)]


def depthwise_nchw(
    n: int = 1,
    h: int = 112,
    w: int = 112,
    c: int = 32,
    kh: int = 3,
    kw: int = 3,
    stride: int = 1,
    pad: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Depthwise convolution of NCHW data."""
    data = te.placeholder((n, c, h, w), dtype, "data")
    kernel = te.placeholder((c, 1, kh, kw), dtype, "kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, stride, pad)]


def matmul(
    m: int = 512,
    n: int = 512,
    k: int = 512,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: str = "float32",
) -> list[Tensor]:
    """Product of an (m, k) and a (k, n) matrix."""
    a = te.placeholder((k, m) if transpose_a else (m, k), dtype, "a")
    b = te.placeholder((n, k) if transpose_b else (k, n), dtype, "b")
    return [a, b, topi.nn.matmul(a, b, transpose_a, transpose_b)]


def batch_matmul(
    b: int = 12,
    m: int = 128,
    n: int = 128,
    k: int = 64,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: str = "float32",
) -> list[Tensor]:
    """Products of b pairs of an (m, k) and a (k, n) matrix."""
    left = te.placeholder((b, k, m) if transpose_a else (b, m, k), dtype, "a")
    right = te.placeholder((b, n, k) if transpose_b else (b, k, n), dtype, "b")
    return [left, right, topi.nn.batch_matmul(left, right, transpose_a, transpose_b)]


def dense(m: int = 64, n: int = 1000, k: int = 2048, dtype: str = "float32") -> list[Tensor]:
    """Data (m, k) times weights (n, k), + bias (n)."""
    data = te.placeholder((m, k), dtype, "data")
    weight = te.placeholder((n, k), dtype, "weight")
    product = topi.nn.dense(data, weight)
    bias = te.placeholder((n,), product.dtype, "bias")
    return [data, weight, bias, product + bias]


def softmax(m: int = 4096, n: int = 1024, dtype: str = "float32") -> list[Tensor]:
    """Softmax of each of m rows of n."""
    data = te.placeholder((m, n), dtype, "data")
    return [data, topi.nn.softmax(data)]


def log_softmax(m: int = 4096, n: int = 1024, dtype: str = "float32") -> list[Tensor]:
    """Logarithm of the softmax of each of m rows of n."""
    data = te.placeholder((m, n), dtype, "data")
    return [data, topi.nn.log_softmax(data)]


def layer_norm(m: int = 4096, n: int = 1024, dtype: str = "float32") -> list[Tensor]:
    """Layer normalisation of each of m rows of n, with scale and shift."""
    data = te.placeholder((m, n), dtype, "data")
    gamma = te.placeholder((n,), dtype, "gamma")
    beta = te.placeholder((n,), dtype, "beta")
    return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta)]


def max_pool(
    n: int = 1,
    h: int = 112,
    w: int = 112,
    c: int = 64,
    k: int = 3,
    stride: int = 2,
    pad: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Largest of each k x k window of NCHW data."""
    data = te.placeholder((n, c, h, w), dtype, "data")
    return [data, topi.nn.max_pool(data, k, stride, pad)]


def avg_pool(
    n: int = 1,
    h: int = 112,
    w: int = 112,
    c: int = 64,
    k: int = 3,
    stride: int = 2,
    pad: int = 1,
    dtype: str = "float32",
) -> list[Tensor]:
    """Mean of each k x k window of NCHW data."""
    data = te.placeholder((n, c, h, w), dtype, "data")
    return [data, topi.nn.avg_pool(data, k, stride, pad)]
