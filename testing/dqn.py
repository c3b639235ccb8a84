"""The network of deep Q-learning (Mnih et al. 2015): the value of each action from four pictures of a game."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network
from ._layers import Layers, scaled

_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, window and stride."""


@knows_classic_words
def dqn(
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 84,
    actions: int = 18,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """The network on four pictures of `image` x `image` pixels (at least 36); `width` multiplies channels and units."""
    net = Layers("dqn", layout, seed, dtype)
    x = net.image(batch, 4, (image, image))
    for number, (channels, window, stride) in enumerate(_CONVOLUTIONS, 1):
        x = net.act(net.conv(x, f"conv{number}", scaled(channels, width), window, stride, bias=True))
    shape = (net.channels(x), *net.spatial(x))
    x = net.act(net.dense(net.flat(x), "fc1", scaled(512, width), shape))
    return net.finish(net.dense(x, "values", actions))
