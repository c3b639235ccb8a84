"""Layers of recurrent networks, unrolled: inputs of all steps are one product, then each step is one and its gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from ....graph.network import Value
from ..node import Node, aten

State: TypeAlias = "tuple[Value, ...]"
"""The state that a step hands to the next: (h,) or (h, c), each (batch, hidden)."""
MOST_STEPS = 512
"""So many steps of a direction are unrolled where PyTorch can run the layer, each up to a dozen operators. A choice."""


@aten("loopwright::recurrent_layer.default")
def recurrent_layer(node: Node) -> list[Value | None]:
    """One direction of a layer; the cell's state is given by an LSTM alone."""
    weights, kind = node["weights"], str(node["kind"])
    every, state = _run(node, node.value("inputs"), weights, tuple(node["states"]), kind, node["reverse"])
    return [every, state[0], state[1] if len(state) > 1 else None]


def _run(node: Node, x: Value, weights: list[Value], state: State, kind: str, is_reverse: bool) -> tuple[Value, State]:
    net, (steps, batch, width), (columns, hidden) = node.net, x.shape, weights[1].shape
    node.require_products("products of matrices", x.dtype, batch * hidden * columns)
    node.prefer_pytorch(steps, MOST_STEPS)
    every, step = node.apply("dense", node.reshaped(x, (steps * batch, width)), weights[0]), _STEPS[kind]
    biases = weights[2:]
    if biases:
        every = net.bias_add(every, biases[0] if kind == "gru" else net.add(*biases), axis=1)
    given = _parts(net, every, steps, 0)
    made: dict[int, Value] = {}
    for time in reversed(range(steps)) if is_reverse else range(steps):
        products = net.dense(state[0], weights[1])
        if kind == "gru" and biases:
            products = net.bias_add(products, biases[1], axis=1)
        state = step(net, given[time], products, state)
        made[time] = state[0]
    outputs = [made[time] for time in range(steps)]
    joined = outputs[0] if steps == 1 else net.concatenate(*outputs, axis=0)
    return node.reshaped(joined, (steps, batch, hidden)), state


def _parts(net: Any, value: Value, count: int, axis: int) -> list[Value]:
    """Equal parts along an axis, as slices: those of one operator would be a kernel of their own."""
    size = value.shape[axis] // count
    return [net.strided_slice(value, begin=[k * size], end=[k * size + size], axes=[axis]) for k in range(count)]


def _lstm(net: Any, given: Value, products: Value, state: State) -> State:
    """C = f * C + i * tanh(new), H = o * tanh(C), the gates i, f, new and o side by side."""
    i, f, new, o = _parts(net, net.add(given, products), 4, 1)
    cell = net.add(net.multiply(net.sigmoid(f), state[1]), net.multiply(net.sigmoid(i), net.tanh(new)))
    return net.multiply(net.sigmoid(o), net.tanh(cell)), cell


def _gru(net: Any, given: Value, products: Value, state: State) -> State:
    """H = new + z * (H - new), the gates r, z and new side by side: r scales the product of the state."""
    (r, z, new), (state_r, state_z, state_new) = (_parts(net, each, 3, 1) for each in (given, products))
    new = net.tanh(net.add(new, net.multiply(net.sigmoid(net.add(r, state_r)), state_new)))
    return (net.add(new, net.multiply(net.sigmoid(net.add(z, state_z)), net.subtract(state[0], new))),)


def _rnn(activation: str, net: Any, given: Value, products: Value, state: State) -> State:
    return (getattr(net, activation)(net.add(given, products)),)


_STEPS: Mapping[str, Callable[[Any, Value, Value, State], State]] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": partial(_rnn, "tanh"),
    "rnn_relu": partial(_rnn, "relu"),
}
"""Steps of the kinds of layers, of what the inputs and the state give, each (batch, gates * hidden)."""
