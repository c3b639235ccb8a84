"""Layers of networks with random weights, the same numbers in every layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dialects.numpy_types import FLOATS, teach_numpy
from ..graph.network import Network, Value

Array = npt.NDArray[Any]


class Layers:
    """Adds layers to a network; `layout` is NCHW or NHWC (NCDHW or NDHWC with three spatial axes).

    Weights are drawn in single precision, whatever the `dtype`, and rounded to it.
    """

    def __init__(self, name: str, layout: str, seed: int, dtype: str = "float32") -> None:
        if layout not in ("NCHW", "NHWC", "NCDHW", "NDHWC"):
            raise ValueError(f"network {name}: layout is NCHW or NHWC (NCDHW or NDHWC), got '{layout}'")
        if dtype not in FLOATS:
            raise ValueError(f"network {name}: dtype is one of {', '.join(FLOATS)}, got '{dtype}'")
        teach_numpy(dtype)
        self.net = Network(name)
        self.layout = layout
        self.dtype = dtype
        self.last = layout.endswith("C")
        self.axis = len(layout) - 1 if self.last else 1
        self._random = np.random.default_rng(seed)

    def image(self, batch: int, channels: int, extents: Sequence[int], name: str = "data") -> Value:
        """The input: images or videos."""
        shape = (batch, *extents, channels) if self.last else (batch, channels, *extents)
        return self.input(name, shape)

    def input(self, name: str, shape: Sequence[int]) -> Value:
        """An input of the network's element type."""
        return self.net.input(name, shape, self.dtype)

    def channels(self, x: Value) -> int:
        """The number of channels of a feature map."""
        return x.shape[self.axis]

    def spatial(self, x: Value) -> tuple[int, ...]:
        """The spatial extents of a feature map."""
        return x.shape[1:-1] if self.last else x.shape[2:]

    def conv(
        self,
        x: Value,
        name: str,
        filters: int,
        kernel: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> Value:
        """A convolution."""
        count = len(self.layout) - 2
        window = (kernel,) * count if isinstance(kernel, int) else tuple(kernel)
        depth = self.channels(x) // groups
        weight = self.normal((filters, depth, *window), sqrt(2.0 / (depth * prod(window))))
        if self.last:
            weight = np.ascontiguousarray(np.moveaxis(weight, (0, 1), (-1, -2)))
        operator = "conv2d" if count == 2 else "conv3d"
        options = {"stride": stride, "padding": padding, "groups": groups, "layout": self.layout}
        y: Value = self.net.apply(operator, x, self.net.constant(weight, f"{name}_weight"), label=name, **options)
        return self.bias(y, name) if bias else y

    def batch_norm(self, x: Value, name: str, gain: float = 1.0, epsilon: float = 1e-5) -> Value:
        """Batch normalisation by stored statistics; `gain` is the mean of gamma."""
        count = self.channels(x)
        gamma, variance = self.uniform((count,), 0.8 * gain, 1.2 * gain), self.uniform((count,), 0.6, 1.4)
        beta, mean = self.normal((count,), 0.1), self.normal((count,), 0.1)
        statistics = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
        given = [self.net.constant(values, f"{name}_{kind}") for kind, values in statistics.items()]
        y: Value = self.net.apply("batch_norm", x, *given, axis=self.axis, epsilon=epsilon, label=name)
        return y

    def conv_bn(self, x: Value, name: str, *arguments: Any, act: str | None = "relu", **options: Any) -> Value:
        """Convolution, batch normalisation, and the activation `act`; `gain` and `epsilon` go to the second."""
        norm = {key: options.pop(key) for key in ("gain", "epsilon") if key in options}
        y = self.batch_norm(self.conv(x, name, *arguments, **options), f"{name}_bn", **norm)
        return y if act is None else self.act(y, act, f"{name}_{act}")

    def act(self, x: Value, kind: str = "relu", label: str | None = None) -> Value:
        """An activation by its operator's name."""
        y: Value = self.net.apply(kind, x, label=label)
        return y

    def bias(self, x: Value, name: str, axis: int | None = None) -> Value:
        """A number added to each channel."""
        axis = self.axis if axis is None else axis
        values = self.net.constant(self.normal((x.shape[axis],), 0.1), f"{name}_bias")
        y: Value = self.net.apply("bias_add", x, values, axis=axis, label=f"{name}_bias_add")
        return y

    def pool(self, x: Value, kind: str, kernel: int, stride: int, padding: int = 0, **options: Any) -> Value:
        """`max` or `avg` pooling."""
        found = {"kernel": kernel, "stride": stride, "padding": padding, "layout": self.layout, **options}
        y: Value = self.net.apply(f"{kind}_pool", x, **found)
        return y

    def global_pool(self, x: Value, kind: str = "avg") -> Value:
        """The mean (or the largest) of each channel, (N, C)."""
        y: Value = self.net.apply(f"global_{kind}_pool", x, layout=self.layout)
        return self.flat(y)

    def flat(self, x: Value) -> Value:
        """One row a sample."""
        y: Value = self.net.apply("flatten", x)
        return y

    def concatenate(self, *parts: Value) -> Value:
        """Channels of several feature maps, one after the other."""
        y: Value = self.net.apply("concatenate", *parts, axis=self.axis)
        return y

    def dense(self, x: Value, name: str, units: int, map_shape: Sequence[int] = ()) -> Value:
        """A matrix product and a bias; `map_shape` is (C, *extents) of the feature map that was made flat for `x`."""
        depth = x.shape[1]
        weight = self.normal((units, depth), sqrt(1.0 / depth))
        if self.last and map_shape:
            moved = np.moveaxis(weight.reshape(units, *map_shape), 1, -1)
            weight = np.ascontiguousarray(moved.reshape(units, depth))
        y: Value = self.net.apply("dense", x, self.net.constant(weight, f"{name}_weight"), label=name)
        return self.bias(y, name, axis=1)

    def project(self, x: Value, name: str, channels: int, extents: Sequence[int]) -> Value:
        """A feature map of `channels` and spatial `extents` from each row: a matrix product and a bias."""
        map_shape, depth = (channels, *extents), x.shape[1]
        weight = self.normal((prod(map_shape), depth), sqrt(1.0 / depth)).reshape(*map_shape, depth)
        bias = self.normal((prod(map_shape),), 0.1).reshape(map_shape)
        if self.last:
            map_shape = (*extents, channels)
            weight, bias = np.moveaxis(weight, 0, -2), np.moveaxis(bias, 0, -1)
        weight = np.ascontiguousarray(weight.reshape(-1, depth))
        y: Value = self.net.apply("dense", x, self.net.constant(weight, f"{name}_weight"), label=name)
        values = self.net.constant(np.ascontiguousarray(bias.reshape(-1)), f"{name}_bias")
        y = self.net.apply("bias_add", y, values, axis=1, label=f"{name}_bias_add")
        found: Value = self.net.apply("reshape", y, shape=(x.shape[0], *map_shape))
        return found

    def classifier(self, x: Value, classes: int, name: str = "fc") -> Network:
        """A dense layer and a softmax, the output."""
        return self.finish(self.net.apply("softmax", self.dense(x, name, classes), label="prob"))

    def finish(self, *outputs: Value) -> Network:
        """The network with these outputs."""
        self.net.output(*outputs)
        return self.net

    def normal(self, shape: Sequence[int], scale: float) -> Array:
        """Random numbers around 0."""
        values = self._random.standard_normal(tuple(shape), dtype=np.float32)
        values *= np.float32(scale)
        return values.astype(self.dtype, copy=False)

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Array:
        """Random numbers in [low, high)."""
        return self._random.uniform(low, high, tuple(shape)).astype(self.dtype)


def scaled(channels: int, width: float, divisor: int = 1) -> int:
    """A number of channels times `width`, at least 1, a multiple of `divisor`."""
    return max(divisor, int(channels * width + divisor / 2) // divisor * divisor)
