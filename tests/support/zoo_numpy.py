"""Networks of `lw.testing` in plain NumPy and double precision, from their weights by name; feature maps are NCHW."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Params = dict[str, Array]


def convolve(x: Array, weight: Array, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0) -> Array:
    """A convolution over all axes behind the second: windows of the padded data times the weight."""
    count = x.ndim - 2
    strides = (stride,) * count if isinstance(stride, int) else tuple(stride)
    zeros = (padding,) * count if isinstance(padding, int) else tuple(padding)
    padded = np.pad(x, [(0, 0), (0, 0), *((n, n) for n in zeros)])
    axes = tuple(range(2, 2 + count))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axes)
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    summed = (1, *range(2 + count, 2 + 2 * count))
    return np.moveaxis(np.tensordot(windows, weight, (summed, tuple(range(1, 2 + count)))), -1, 1)


def spread(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """A transposed convolution: each element adds its multiple of the window to the result."""
    (batch, _, height, width), (_, filters, rows, columns) = x.shape, weight.shape
    result = np.zeros((batch, filters, (height - 1) * stride + rows, (width - 1) * stride + columns))
    for i in range(height):
        for j in range(width):
            part = np.einsum("nc,cfyx->nfyx", x[:, :, i, j], weight)
            result[:, :, i * stride : i * stride + rows, j * stride : j * stride + columns] += part
    return result[:, :, padding:-padding, padding:-padding]


def dense(p: Params, x: Array, name: str) -> Array:
    return x @ p[f"{name}_weight"].T + p[f"{name}_bias"]


def relu(x: Array) -> Array:
    return np.where(x > 0, x, 0.0)


def gelu(x: Array) -> Array:
    return x * np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def batch_norm(p: Params, x: Array, name: str) -> Array:
    gamma, beta, mean, variance = (
        p[f"{name}_{kind}"].reshape(-1, *(1,) * (x.ndim - 2)) for kind in ("gamma", "beta", "mean", "variance")
    )
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def layer_norm(p: Params, x: Array, name: str) -> Array:
    deviation = x - x.mean(-1, keepdims=True)
    scale = np.sqrt((deviation**2).mean(-1, keepdims=True) + 1e-5)
    return deviation / scale * p[f"{name}_gamma"] + p[f"{name}_beta"]


def resnet3d(p: Params, data: Array, blocks: Sequence[int], is_bottleneck: bool) -> Array:
    def conv_bn(x: Array, name: str, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0) -> Array:
        return batch_norm(p, convolve(x, p[f"{name}_weight"], stride, padding), f"{name}_bn")

    x = relu(conv_bn(data, "stem", (1, 2, 2), (1, 3, 3)))
    for stage, count in enumerate(blocks, 1):
        for unit in range(count):
            name, stride = f"layer{stage}.{unit}", 2 if stage > 1 and unit == 0 else 1
            short = conv_bn(x, f"{name}_down", stride) if f"{name}_down_weight" in p else x
            if is_bottleneck:
                y = relu(conv_bn(x, f"{name}_conv1"))
                y = relu(conv_bn(y, f"{name}_conv2", stride, 1))
                y = conv_bn(y, f"{name}_conv3")
            else:
                y = relu(conv_bn(x, f"{name}_conv1", stride, 1))
                y = conv_bn(y, f"{name}_conv2", 1, 1)
            x = relu(y + short)
    return softmax(dense(p, x.mean((2, 3, 4)), "fc"))


def dqn(p: Params, data: Array) -> Array:
    x = data
    for name, stride in (("conv1", 4), ("conv2", 2), ("conv3", 1)):
        x = relu(convolve(x, p[f"{name}_weight"], stride) + p[f"{name}_bias"][:, None, None])
    return dense(p, relu(dense(p, x.reshape(len(x), -1), "fc1")), "values")


def dcgan(p: Params, data: Array) -> Array:
    x = dense(p, data, "project").reshape(len(data), -1, 4, 4)
    x = relu(batch_norm(p, x, "project_bn"))
    for number in (1, 2, 3):
        x = spread(x, p[f"deconv{number}_weight"], 2, 1)
        x = relu(batch_norm(p, x, f"deconv{number}_bn"))
    return np.tanh(spread(x, p["deconv4_weight"], 2, 1))


def lstm(p: Params, data: Array, layers: int) -> Array:
    """Step by step, each layer from the states of the one before; gates in PyTorch's order."""
    x = data
    for number in range(layers):
        weight = p[f"layer{number}_state_weight"]
        state = cell = np.zeros((len(x), weight.shape[1]))
        states = []
        for step in range(x.shape[1]):
            gates = dense(p, x[:, step], f"layer{number}_input") + state @ weight.T
            enter, forget, new, leave = np.split(gates, 4, axis=1)
            cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
            state = sigmoid(leave) * np.tanh(cell)
            states.append(state)
        x = np.stack(states, 1)
    return x


def attention(p: Params, x: Array, memory: Array, name: str, heads: int, allowed: Array) -> Array:
    """Head by head; `allowed` (batch, rows of x, rows of memory)."""
    query, key, value = dense(p, x, f"{name}query"), dense(p, memory, f"{name}key"), dense(p, memory, f"{name}value")
    depth, parts = x.shape[-1] // heads, []
    for head in range(heads):
        own = slice(head * depth, (head + 1) * depth)
        scores = query[..., own] @ key[..., own].swapaxes(1, 2) / math.sqrt(depth)
        parts.append(softmax(np.where(allowed, scores, -1e30)) @ value[..., own])
    return dense(p, np.concatenate(parts, -1), f"{name}attention_output")


def transformer(
    p: Params,
    data: Array,
    mask: Array,
    layers: int,
    heads: int,
    norm: str,
    activation: str,
    memory: Array | None = None,
) -> Array:
    """An encoder, or with the memory of one a decoder."""
    act = {"relu": relu, "gelu": gelu}[activation]
    x = data
    keys = np.broadcast_to(mask[:, None, :], (len(x), x.shape[1], mask.shape[1]))
    earlier = np.broadcast_to(np.tri(x.shape[1], dtype=bool), (len(x), x.shape[1], x.shape[1]))

    def block(x: Array, name: str, function: Any) -> Array:
        if norm == "pre":
            return x + function(layer_norm(p, x, name))
        return layer_norm(p, x + function(x), name)

    def attend(x: Array, name: str, other: Array | None, allowed: Array) -> Array:
        def of(y: Array) -> Array:
            return attention(p, y, y if other is None else other, name, heads, allowed)

        return block(x, f"{name}attention_norm", of)

    def feed_forward(name: str) -> Any:
        return lambda y: dense(p, act(dense(p, y, f"{name}intermediate")), f"{name}output")

    for number in range(layers):
        name = f"layer{number}."
        if memory is None:
            x = attend(x, name, None, keys)
        else:
            x = attend(x, f"{name}self_", None, earlier)
            x = attend(x, f"{name}cross_", memory, keys)
        x = block(x, f"{name}output_norm", feed_forward(name))
    return layer_norm(p, x, "last_norm") if norm == "pre" else x
