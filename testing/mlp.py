"""A multi-layer perceptron for pictures of 28 x 28 pixels."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network
from ._layers import Layers


@knows_classic_words
def mlp(batch: int = 1, layout: str = "NCHW", classes: int = 10, seed: int = 0, dtype: str = "float32") -> Network:
    """784 - 128 - 64 - `classes` units, relu between them, softmax behind; the layout makes no difference."""
    net = Layers("mlp", layout, seed, dtype)
    x = net.flat(net.image(batch, 1, (28, 28)))
    x = net.act(net.dense(x, "fc1", 128))
    x = net.act(net.dense(x, "fc2", 64))
    return net.classifier(x, classes, "fc3")
