"""Convolutions of one tap (1x1): those of four networks in both layouts and of drawn lists, with PyTorch's call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from drawn_cases import drawn
from operator_cases import Case, Operator, conv, placeholder

from loopwright import topi
from loopwright.te import Tensor

LAYERS: dict[str, tuple[tuple[int, int, int, int], ...]] = {
    "ResNet-50": (
        (64, 56, 64, 1),
        (64, 56, 256, 1),
        (256, 56, 64, 1),
        (256, 56, 128, 1),
        (256, 56, 512, 2),
        (128, 28, 512, 1),
        (512, 28, 128, 1),
        (512, 28, 256, 1),
        (512, 28, 1024, 2),
        (256, 14, 1024, 1),
        (1024, 14, 256, 1),
        (1024, 14, 512, 1),
        (1024, 14, 2048, 2),
        (512, 7, 2048, 1),
        (2048, 7, 512, 1),
    ),
    "MobileNet v2": (
        (32, 112, 16, 1),
        (16, 112, 96, 1),
        (96, 56, 24, 1),
        (24, 56, 144, 1),
        (144, 56, 24, 1),
        (144, 28, 32, 1),
        (32, 28, 192, 1),
        (192, 28, 32, 1),
        (192, 14, 64, 1),
        (64, 14, 384, 1),
        (384, 14, 64, 1),
        (384, 14, 96, 1),
        (96, 14, 576, 1),
        (576, 14, 96, 1),
        (576, 7, 160, 1),
        (160, 7, 960, 1),
        (960, 7, 160, 1),
        (960, 7, 320, 1),
        (320, 7, 1280, 1),
    ),
    "EfficientNet-B0": (
        (144, 28, 40, 1),
        (40, 28, 240, 1),
        (240, 28, 40, 1),
        (240, 14, 80, 1),
        (80, 14, 480, 1),
        (480, 14, 80, 1),
        (480, 14, 112, 1),
        (112, 14, 672, 1),
        (672, 14, 112, 1),
        (672, 7, 192, 1),
        (192, 7, 1152, 1),
        (1152, 7, 192, 1),
        (1152, 7, 320, 1),
    ),
    "ConvNeXt-T": (
        (96, 56, 384, 1),
        (384, 56, 96, 1),
        (192, 28, 768, 1),
        (768, 28, 192, 1),
        (384, 14, 1536, 1),
        (1536, 14, 384, 1),
        (768, 7, 3072, 1),
        (3072, 7, 768, 1),
    ),
}
"""Channels, pixels along a side, filters and stride of each layer that no network above it has, batch 1."""
SEEDS = range(43, 52)
"""Drawn lists that were looked at while these layers became products."""


def channels_last(n: int, c: int, size: int, out: int, stride: int = 1) -> Operator:
    """2-D convolution of one tap, NHWC, with bias and relu; PyTorch has channels last in memory, too."""

    def tensors() -> list[Tensor]:
        data, kernel = placeholder("data", n, size, size, c), placeholder("kernel", 1, 1, c, out)
        bias = placeholder("bias", out)
        return [data, kernel, bias, topi.nn.relu(topi.add(topi.nn.conv2d_nhwc(data, kernel, stride), bias))]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, kernel, bias = arrays
        pixels, filters = data.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1)
        filters = filters.contiguous(memory_format=torch.channels_last)
        return lambda: torch.relu_(torch.nn.functional.conv2d(pixels, filters, bias, stride))

    return Operator(tensors, peer)


@cache
def one_tap() -> tuple[Case, ...]:
    """The cases, each once."""
    found: dict[str, Case] = {}
    for network, layers in LAYERS.items():
        for c, size, out, stride in layers:
            name = f"{network} {c}x{size}x{size} to {out}/{stride}"
            found[f"{name} NHWC"] = Case(f"{name} NHWC", "conv", "one-tap", channels_last(1, c, size, out, stride))
            found[f"{name} NCHW"] = Case(f"{name} NCHW", "conv", "one-tap", conv(1, c, size, out, 1, stride))
    for case in (case for seed in SEEDS for case in drawn(seed)):
        if case.kind == "conv" and ", 1x1/" in case.name:
            found[case.name] = Case(f"one tap: {case.name}", "conv", "one-tap", case.operator)
    return tuple(found.values())
