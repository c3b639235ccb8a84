"""ResNet (He et al. 2015), with the stride in the 3x3 convolution of a bottleneck, as torchvision has it."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers, scaled

STAGES = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}
"""Blocks of each stage, by the number of layers; from 50 on they are bottlenecks."""
_RESIDUAL_GAIN = 0.2
"""The mean of gamma in the last normalisation of a block: sums of many blocks stay of the size of one."""


@knows_classic_words
def resnet(
    layers: int = 50,
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 224,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """ResNet-18, 34, 50, 101, 152, 200 or 269 on `image` x `image` pixels; `width` multiplies channels."""
    require_depth("resnet", layers)
    net = Layers(f"resnet{layers}", layout, seed, dtype)
    x = net.conv_bn(net.image(batch, 3, (image, image)), "conv1", scaled(64, width), 7, 2, 3)
    x = net.pool(x, "max", 3, 2, 1)
    return net.classifier(net.global_pool(residual_stages(net, x, layers, width)), classes)


def require_depth(name: str, layers: int) -> None:
    """ValueError with the numbers of layers there are."""
    if layers not in STAGES:
        raise ValueError(f"{name} has {', '.join(map(str, STAGES))} layers, got {layers}")


def residual_stages(net: Layers, x: Value, layers: int, width: float) -> Value:
    """The four stages of blocks, on pictures or videos."""
    block = _basic if layers < 50 else _bottleneck
    for stage, count in enumerate(STAGES[layers]):
        for unit in range(count):
            stride = 2 if stage and not unit else 1
            x = block(net, x, f"layer{stage + 1}.{unit}", scaled(64 << stage, width), stride)
    return x


def _basic(net: Layers, x: Value, name: str, channels: int, stride: int) -> Value:
    y = net.conv_bn(x, f"{name}_conv1", channels, 3, stride, 1)
    y = net.conv_bn(y, f"{name}_conv2", channels, 3, 1, 1, act=None, gain=_RESIDUAL_GAIN)
    return _joined(net, x, y, name, channels, stride)


def _bottleneck(net: Layers, x: Value, name: str, channels: int, stride: int) -> Value:
    y = net.conv_bn(x, f"{name}_conv1", channels, 1)
    y = net.conv_bn(y, f"{name}_conv2", channels, 3, stride, 1)
    y = net.conv_bn(y, f"{name}_conv3", 4 * channels, 1, act=None, gain=_RESIDUAL_GAIN)
    return _joined(net, x, y, name, 4 * channels, stride)


def _joined(net: Layers, x: Value, y: Value, name: str, channels: int, stride: int) -> Value:
    if stride != 1 or net.channels(x) != channels:
        x = net.conv_bn(x, f"{name}_down", channels, 1, stride, act=None)
    return net.act(y + x, "relu", name)
