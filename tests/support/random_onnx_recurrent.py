"""Random recurrent ONNX layers, and what else works along one axis: orders, running products, entries of a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_onnx import Graph, RefusedError, Tensor, words
from random_onnx_values import axis

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_OTHERS = words("Relu Tanh Sigmoid Affine LeakyRelu ScaledTanh HardSigmoid Elu Softsign Softplus")
_NUMBERS = {
    "Affine": (0.5, 0.1),
    "LeakyRelu": (0.1, None),
    "ScaledTanh": (0.8, 0.6),
    "HardSigmoid": (0.3, 0.4),
    "Elu": (0.7, None),
}


def recurrent(g: Graph) -> None:
    """A layer of one direction or two, with lengths, states, peepholes, a clip and activations now and then."""
    operator = g.choose(("RNN", "GRU", "LSTM", "LSTM"))
    x = g.pick(lambda t: t.dtype == "float32" and t.rank == 3 and t.shape[0] <= 9 and t.shape[2] <= 17)
    x = x or g.input((g.number(1, 6), g.choose((1, 2, 3)), g.choose((1, 3, 5, 8))), "float32")
    steps, batch, width = x.shape
    hidden, gates = g.choose((1, 2, 3, 4, 5, 8)), _GATES[operator]
    direction = g.choose(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1

    def weights(*shape: int) -> Tensor:
        return g.weight((ways, *shape), "float32", scale=0.4)

    given: list[Tensor | None] = [x, weights(gates * hidden, width), weights(gates * hidden, hidden)]
    given.append(weights(2 * gates * hidden) if g.chance(0.7) else None)
    given.append(_lengths(g, steps, batch) if g.chance(0.35) else None)
    for _ in range(2 if operator == "LSTM" else 1):
        given.append(weights(batch, hidden) if g.chance(0.5) else None)
    if operator == "LSTM" and g.chance(0.3):
        given.append(weights(3 * hidden))
    while given[-1] is None:
        given.pop()
    outputs = 3 if operator == "LSTM" else 2
    g.add(operator, given, outputs, hidden_size=hidden, direction=direction, **_options(g, operator, ways))


def _lengths(g: Graph, steps: int, batch: int) -> Tensor:
    value = np.asarray(g.rng.integers(1, steps + 1, (batch,))).astype("int32")
    if g.chance(0.5):
        return g.constant(value)
    made = g.input((batch,), "int32")
    g.tensors[made.name] = Tensor(made.name, value, value)
    return g.tensors[made.name]


def _options(g: Graph, operator: str, ways: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if operator == "GRU" and g.chance(0.5):
        found["linear_before_reset"] = 1
    if operator == "LSTM" and g.chance(0.2):
        found["input_forget"] = 1
    if g.chance(0.25):
        found["clip"] = float(g.choose((0.5, 1.0, 3.0)))
    if g.chance(0.35):
        names = [g.choose(_OTHERS) if g.chance(0.6) else name for name in _FUNCTIONS[operator] * ways]
        found["activations"] = names
        numbers = [_NUMBERS.get(name, (None, None)) for name in names]
        for word, place in (("activation_alpha", 0), ("activation_beta", 1)):
            if values := [pair[place] for pair in numbers if pair[place] is not None]:
                found[word] = values
    return found


def order(g: Graph) -> None:
    """The first elements by size; elements that are alike would be in any order, so there are none."""
    x = g.any(("float32", "float32", "float64", "int64"), (1, 2, 3, 4))
    place = axis(g, x.rank)
    rows = np.sort(x.value, axis=place)
    if (np.diff(rows, axis=place) == 0).any():
        raise RefusedError("elements that are alike")
    count = g.constant(np.array([g.number(1, x.shape[place])], np.int64))
    g.add("TopK", [x, count], 2, axis=place, largest=g.number(0, 1), sorted=1)


def running_product(g: Graph) -> None:
    """The log-sum-exp and softmax of a running sum: scans whose results other reductions read."""
    x = g.any(("float32", "float64"), (1, 2, 3))
    place = axis(g, x.rank)
    (sums,) = g.add("CumSum", [x, g.constant(np.array(place, np.int64))], exclusive=g.number(0, 1))
    g.add("Softmax", [sums], axis=place)
