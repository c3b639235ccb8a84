"""The workloads of the comparison: ours as tensor expressions, the peer's as PyTorch calls on the same arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright import te, topi
from loopwright.te import Tensor


@dataclass(frozen=True)
class Case:
    """One workload; `torch_call(torch, arrays)` returns a function that runs the peer on the same operands.

    `bytes` is the memory that must move at least once (inputs and outputs), 0 where arithmetic is the limit.
    """

    name: str
    tensors: Callable[[], Sequence[Tensor]]
    torch_call: Callable[[Any, Sequence[Any]], Callable[[], Any]]
    goal: float
    bytes: int = 0


def seed_convolution() -> list[Tensor]:
    """The last 3x3 convolution of ResNet-50, with bias and relu."""
    data = te.placeholder((1, 512, 7, 7), name="data")
    kernel = te.placeholder((512, 512, 3, 3), name="kernel")
    bias = te.placeholder((1, 512, 1, 1), name="bias")
    conv = topi.nn.conv2d_nchw(data, kernel, (1, 1), (1, 1), dilation=1, out_dtype="float32")
    return [data, kernel, bias, topi.nn.relu(conv + bias)]


def _seed_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    data, kernel, bias = arrays
    flat = bias.reshape(-1)
    return lambda: torch.relu_(torch.nn.functional.conv2d(data, kernel, flat, padding=1))


def _matmul(n: int) -> Callable[[], list[Tensor]]:
    def tensors() -> list[Tensor]:
        a = te.placeholder((n, n), name="A")
        b = te.placeholder((n, n), name="B")
        return [a, b, topi.nn.matmul(a, b)]

    return tensors


def _matmul_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    a, b = arrays
    return lambda: torch.matmul(a, b)


def convolution_56() -> list[Tensor]:
    """A 3x3 convolution of ResNet-50's second stage, NCHW."""
    data = te.placeholder((1, 64, 56, 56), name="data")
    kernel = te.placeholder((64, 64, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, (1, 1), (1, 1), dilation=1)]


def _convolution_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    data, kernel = arrays
    return lambda: torch.nn.functional.conv2d(data, kernel, padding=1)


def pointwise() -> list[Tensor]:
    """A 1x1 convolution in NHWC, 56x56, 128 to 128 channels."""
    data = te.placeholder((1, 56, 56, 128), name="data")
    kernel = te.placeholder((1, 1, 128, 128), name="kernel")
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, (1, 1), (0, 0), dilation=1)]


def _pointwise_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    data = arrays[0].permute(0, 3, 1, 2)  # channels_last strides
    kernel = arrays[1].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(data, kernel)


def depthwise() -> list[Tensor]:
    """A 3x3 depthwise convolution in NHWC, 112x112, 32 channels (MobileNet's first)."""
    data = te.placeholder((1, 112, 112, 32), name="data")
    kernel = te.placeholder((3, 3, 32, 1), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nhwc(data, kernel, (1, 1), (1, 1), (1, 1))]


def _depthwise_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    data = arrays[0].permute(0, 3, 1, 2)
    kernel = arrays[1].permute(2, 3, 0, 1).contiguous()
    return lambda: torch.nn.functional.conv2d(data, kernel, padding=1, groups=32)


def softmax() -> list[Tensor]:
    """Softmax over the rows of 4096x1024."""
    data = te.placeholder((4096, 1024), name="data")
    return [data, topi.nn.softmax(data, -1)]


def _softmax_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    return lambda: torch.softmax(arrays[0], -1)


def layer_norm() -> list[Tensor]:
    """Layer normalisation of the rows of 4096x1024, with scale and shift."""
    data = te.placeholder((4096, 1024), name="data")
    gamma = te.placeholder((1024,), name="gamma")
    beta = te.placeholder((1024,), name="beta")
    return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, axis=-1)]


def _layer_norm_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    data, gamma, beta = arrays
    return lambda: torch.nn.functional.layer_norm(data, (1024,), gamma, beta)


def _rows(n: int, k: int) -> tuple[Callable[[], list[Tensor]], Callable[[], list[Tensor]]]:
    def softmax_rows() -> list[Tensor]:
        data = te.placeholder((n, k), name="data")
        return [data, topi.nn.softmax(data, -1)]

    def layer_norm_rows() -> list[Tensor]:
        data = te.placeholder((n, k), name="data")
        gamma, beta = te.placeholder((k,), name="gamma"), te.placeholder((k,), name="beta")
        return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, axis=-1)]

    return softmax_rows, layer_norm_rows


def _layer_norm_wide_peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
    data, gamma, beta = arrays
    return lambda: torch.nn.functional.layer_norm(data, (data.shape[-1],), gamma, beta)


def _with_bias(convolution: Callable[[], list[Tensor]], axis: int) -> Callable[[], list[Tensor]]:
    """The convolution as networks have it: its output channels, along `axis`, get a bias, and relu follows."""

    def tensors() -> list[Tensor]:
        data, kernel, out = convolution()
        shape = tuple(int(n) if d == axis else 1 for d, n in enumerate(out.shape))
        bias = te.placeholder(shape, name="bias")
        return [data, kernel, bias, topi.nn.relu(out + bias)]

    return tensors


def _with_bias_peer(
    kernel: Callable[[Any], Any], nhwc: bool, **options: int
) -> Callable[[Any, Sequence[Any]], Callable[[], Any]]:
    """The peer of a convolution with bias and relu; `kernel` puts the filter into PyTorch's order."""

    def call(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data = arrays[0].permute(0, 3, 1, 2) if nhwc else arrays[0]  # channels_last strides
        weight, bias = kernel(arrays[1]), arrays[2].reshape(-1)
        return lambda: torch.relu_(torch.nn.functional.conv2d(data, weight, bias, **options))

    return call


def _last(array: Any) -> Any:
    """PyTorch's name for channels_last, without importing it."""
    import torch

    return torch.channels_last


_ROWS_BYTES = 2 * 4096 * 1024 * 4

CASES = (
    Case("seed_conv", seed_convolution, _seed_peer, 0.8),
    Case("matmul_512", _matmul(512), _matmul_peer, 0.8),
    Case("matmul_1024", _matmul(1024), _matmul_peer, 0.8),
    Case("conv_64x56x56", convolution_56, _convolution_peer, 0.7),
    Case("pointwise_nhwc", pointwise, _pointwise_peer, 0.8),
    Case("depthwise_nhwc", depthwise, _depthwise_peer, 1.0, 2 * 112 * 112 * 32 * 4),
    Case("softmax", softmax, _softmax_peer, 1.0, _ROWS_BYTES),
    Case("layer_norm", layer_norm, _layer_norm_peer, 1.0, _ROWS_BYTES),
)

_SOFTMAX_WIDE, _LAYER_NORM_WIDE = _rows(8192, 4096)
_WIDE_BYTES = 2 * 8192 * 4096 * 4

GPU_CASES = (
    Case("seed_conv", seed_convolution, _seed_peer, 5.0),
    Case("matmul_1024", _matmul(1024), _matmul_peer, 1.0),
    Case(
        "pointwise_nhwc",
        _with_bias(pointwise, 3),
        _with_bias_peer(lambda w: w.permute(3, 2, 0, 1).contiguous(memory_format=_last(w)), nhwc=True),
        2.0,
    ),
    Case("conv_64x56x56", _with_bias(convolution_56, 1), _with_bias_peer(lambda w: w, nhwc=False, padding=1), 1.2),
    Case(
        "depthwise_nhwc",
        _with_bias(depthwise, 3),
        _with_bias_peer(lambda w: w.permute(2, 3, 0, 1).contiguous(), nhwc=True, padding=1, groups=32),
        1.3,
    ),
    Case("depthwise_alone", depthwise, _depthwise_peer, 1.3),
    Case("softmax_8192x4096", _SOFTMAX_WIDE, _softmax_peer, 1.0, _WIDE_BYTES),
    Case("layer_norm_8192x4096", _LAYER_NORM_WIDE, _layer_norm_wide_peer, 1.0, _WIDE_BYTES),
    Case("matmul_4096", _matmul(4096), _matmul_peer, 0.85),
)
