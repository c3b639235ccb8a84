"""SqueezeNet v1.1 (Iandola et al. 2016)."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers, scaled

_FIRES = ((16, 64), (16, 64), (), (32, 128), (32, 128), (), (48, 192), (48, 192), (64, 256), (64, 256))
"""Squeeze and expand channels of each fire module; () is a pooling."""


@knows_classic_words
def squeezenet(
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 224,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """SqueezeNet v1.1 on `image` x `image` pixels; `width` multiplies channels."""
    net = Layers("squeezenet_v1_1", layout, seed, dtype)
    x = net.act(net.conv(net.image(batch, 3, (image, image)), "conv1", scaled(64, width), 3, 2, bias=True))
    x = net.pool(x, "max", 3, 2, ceil_mode=True)
    for number, fire in enumerate(_FIRES, 2):
        if not fire:
            x = net.pool(x, "max", 3, 2, ceil_mode=True)
            continue
        x = _fire(net, x, f"fire{number}", scaled(fire[0], width), scaled(fire[1], width))
    x = net.act(net.conv(x, "conv10", classes, 1, bias=True))
    return net.finish(net.net.apply("softmax", net.global_pool(x), label="prob"))


def _fire(net: Layers, x: Value, name: str, squeeze: int, expand: int) -> Value:
    x = net.act(net.conv(x, f"{name}_squeeze", squeeze, 1, bias=True))
    small = net.act(net.conv(x, f"{name}_expand1", expand, 1, bias=True))
    large = net.act(net.conv(x, f"{name}_expand3", expand, 3, 1, 1, bias=True))
    return net.concatenate(small, large)
