"""MobileNet v1 (Howard et al. 2017) and v2 (Sandler et al. 2018)."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers, scaled

_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Output channels and stride of each depthwise separable convolution."""
_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, output channels, repetitions and first stride of each stage."""


@knows_classic_words
def mobilenet(
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 224,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """MobileNet v1 on `image` x `image` pixels; `width` multiplies channels."""
    net = Layers("mobilenet", layout, seed, dtype)
    x = net.conv_bn(net.image(batch, 3, (image, image)), "conv1", scaled(32, width), 3, 2, 1)
    for number, (channels, stride) in enumerate(_V1, 1):
        count = net.channels(x)
        x = net.conv_bn(x, f"depthwise{number}", count, 3, stride, 1, groups=count)
        x = net.conv_bn(x, f"pointwise{number}", scaled(channels, width), 1)
    return net.classifier(net.global_pool(x), classes)


@knows_classic_words
def mobilenet_v2(
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 224,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """MobileNet v2 on `image` x `image` pixels; `width` multiplies channels."""
    net = Layers("mobilenet_v2", layout, seed, dtype)
    x = net.conv_bn(net.image(batch, 3, (image, image)), "conv1", scaled(32, width), 3, 2, 1, act="relu6")
    for stage, (expansion, channels, count, first) in enumerate(_V2):
        for unit in range(count):
            stride = 1 if unit else first
            x = _inverted(net, x, f"block{stage}.{unit}", expansion, scaled(channels, width), stride)
    x = net.conv_bn(x, "conv_last", scaled(1280, width), 1, act="relu6")
    return net.classifier(net.global_pool(x), classes)


def _inverted(net: Layers, x: Value, name: str, expansion: int, channels: int, stride: int) -> Value:
    count = net.channels(x)
    inner = count * expansion
    y = x if expansion == 1 else net.conv_bn(x, f"{name}_expand", inner, 1, act="relu6")
    y = net.conv_bn(y, f"{name}_depthwise", inner, 3, stride, 1, groups=inner, act="relu6")
    y = net.conv_bn(y, f"{name}_project", channels, 1, act=None)
    return y + x if stride == 1 and count == channels else y
