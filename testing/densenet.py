"""DenseNet-121 (Huang et al. 2016)."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers, scaled

STAGES = {121: (6, 12, 24, 16)}


@knows_classic_words
def densenet(
    layers: int = 121,
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 224,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """DenseNet-121 on `image` x `image` pixels; `width` multiplies channels."""
    if layers not in STAGES:
        raise ValueError(f"densenet has {', '.join(map(str, STAGES))} layers, got {layers}")
    growth = scaled(32, width)
    net = Layers(f"densenet{layers}", layout, seed, dtype)
    x = net.conv_bn(net.image(batch, 3, (image, image)), "conv0", 2 * growth, 7, 2, 3)
    x = net.pool(x, "max", 3, 2, 1)
    for stage, count in enumerate(STAGES[layers], 1):
        for unit in range(1, count + 1):
            x = _dense_layer(net, x, f"block{stage}_{unit}", growth)
        if stage < len(STAGES[layers]):
            x = net.act(net.batch_norm(x, f"transition{stage}_bn"))
            x = net.conv(x, f"transition{stage}", net.channels(x) // 2, 1)
            x = net.pool(x, "avg", 2, 2)
    return net.classifier(net.global_pool(net.act(net.batch_norm(x, "last_bn"))), classes)


def _dense_layer(net: Layers, x: Value, name: str, growth: int) -> Value:
    y = net.act(net.batch_norm(x, f"{name}_bn1"))
    y = net.conv_bn(y, f"{name}_conv1", 4 * growth, 1)
    return net.concatenate(x, net.conv(y, f"{name}_conv2", growth, 3, 1, 1))
