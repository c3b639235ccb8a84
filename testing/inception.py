"""Inception v3 (Szegedy et al. 2015), without the second classifier, as torchvision has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers, scaled


@knows_classic_words
def inception_v3(
    batch: int = 1,
    layout: str = "NCHW",
    image: int = 299,
    classes: int = 1000,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """Inception v3 on `image` x `image` pixels (at least 75); `width` multiplies channels."""
    net = _Inception(Layers("inception_v3", layout, seed, dtype), width)
    x = net.layers.image(batch, 3, (image, image))
    x = net.conv(x, "conv1a", 32, 3, 2)
    x = net.conv(x, "conv2a", 32, 3)
    x = net.conv(x, "conv2b", 64, 3, 1, 1)
    x = net.layers.pool(x, "max", 3, 2)
    x = net.conv(x, "conv3b", 80, 1)
    x = net.conv(x, "conv4a", 192, 3)
    x = net.layers.pool(x, "max", 3, 2)
    for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = net.block_a(x, f"mixed{name}", pooled)
    x = net.block_b(x, "mixed6a")
    for name, inner in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = net.block_c(x, f"mixed{name}", inner)
    x = net.block_d(x, "mixed7a")
    for name in ("7b", "7c"):
        x = net.block_e(x, f"mixed{name}")
    return net.layers.classifier(net.layers.global_pool(x), classes)


class _Inception:
    """The blocks of Inception v3."""

    def __init__(self, layers: Layers, width: float) -> None:
        self.layers = layers
        self.width = width

    def conv(self, x: Value, name: str, channels: int, kernel: Any, stride: int = 1, padding: Any = 0) -> Value:
        filters = scaled(channels, self.width)
        return self.layers.conv_bn(x, name, filters, kernel, stride, padding, epsilon=1e-3)

    def chain(self, x: Value, name: str, steps: Sequence[tuple[int, Any, int, Any]]) -> Value:
        """Convolutions one after the other, each given by channels, kernel, stride and padding."""
        for number, step in enumerate(steps, 1):
            x = self.conv(x, f"{name}_{number}", *step)
        return x

    def mean(self, x: Value) -> Value:
        return self.layers.pool(x, "avg", 3, 1, 1, count_include_pad=True)

    def block_a(self, x: Value, name: str, pooled: int) -> Value:
        return self.layers.concatenate(
            self.conv(x, f"{name}_1x1", 64, 1),
            self.chain(x, f"{name}_5x5", [(48, 1, 1, 0), (64, 5, 1, 2)]),
            self.chain(x, f"{name}_3x3", [(64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)]),
            self.conv(self.mean(x), f"{name}_pool", pooled, 1),
        )

    def block_b(self, x: Value, name: str) -> Value:
        return self.layers.concatenate(
            self.conv(x, f"{name}_3x3", 384, 3, 2),
            self.chain(x, f"{name}_double", [(64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)]),
            self.layers.pool(x, "max", 3, 2),
        )

    def block_c(self, x: Value, name: str, inner: int) -> Value:
        row, column = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
        single = [(inner, 1, 1, 0), (inner, *row), (192, *column)]
        double = [(inner, 1, 1, 0), (inner, *column), (inner, *row), (inner, *column), (192, *row)]
        return self.layers.concatenate(
            self.conv(x, f"{name}_1x1", 192, 1),
            self.chain(x, f"{name}_7x7", single),
            self.chain(x, f"{name}_double", double),
            self.conv(self.mean(x), f"{name}_pool", 192, 1),
        )

    def block_d(self, x: Value, name: str) -> Value:
        wide = [(192, 1, 1, 0), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, 3, 2, 0)]
        return self.layers.concatenate(
            self.chain(x, f"{name}_3x3", [(192, 1, 1, 0), (320, 3, 2, 0)]),
            self.chain(x, f"{name}_7x7", wide),
            self.layers.pool(x, "max", 3, 2),
        )

    def block_e(self, x: Value, name: str) -> Value:
        narrow = self.conv(x, f"{name}_3x3", 384, 1)
        double = self.chain(x, f"{name}_double", [(448, 1, 1, 0), (384, 3, 1, 1)])
        row, column = ((1, 3), 1, (0, 1)), ((3, 1), 1, (1, 0))
        return self.layers.concatenate(
            self.conv(x, f"{name}_1x1", 320, 1),
            self.conv(narrow, f"{name}_3x3a", 384, *row),
            self.conv(narrow, f"{name}_3x3b", 384, *column),
            self.conv(double, f"{name}_double_a", 384, *row),
            self.conv(double, f"{name}_double_b", 384, *column),
            self.conv(self.mean(x), f"{name}_pool", 192, 1),
        )
