"""VGG (Simonyan and Zisserman 2014), without batch normalisation."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network
from ._layers import Layers, scaled

STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


@knows_classic_words
def vgg(
    layers: int = 16,
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 224,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """VGG-11, 13, 16 or 19 on `image` x `image` pixels; `width` multiplies channels and hidden units."""
    if layers not in STAGES:
        raise ValueError(f"vgg has {', '.join(map(str, STAGES))} layers, got {layers}")
    net = Layers(f"vgg{layers}", layout, seed, dtype)
    x = net.image(batch, 3, (image, image))
    for stage, (count, channels) in enumerate(zip(STAGES[layers], _CHANNELS, strict=True), 1):
        for unit in range(1, count + 1):
            x = net.act(net.conv(x, f"conv{stage}_{unit}", scaled(channels, width), 3, 1, 1, bias=True))
        x = net.pool(x, "max", 2, 2)
    shape = (net.channels(x), *net.spatial(x))
    x = net.act(net.dense(net.flat(x), "fc6", scaled(4096, width), shape))
    x = net.act(net.dense(x, "fc7", scaled(4096, width)))
    return net.classifier(x, classes, "fc8")
