"""Recurrent layers, unrolled: the inputs of all steps are one product, then each step is a product and its gates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, numpy_type

MOST_STEPS = 2048
"""So many steps are unrolled, over both directions: each is two to four calls of kernels that the plan writes out."""

State: TypeAlias = "tuple[Value, ...]"
"""The state that a step hands to the next: (h,) or (h, c), each (batch, hidden)."""


def RNN(node: Node) -> list[Value]:
    """H = f(X W' + H R' + Wb + Rb)."""

    def step(cell: _Cell, x: Value, state: State) -> State:
        return (cell.gate(0, cell.plus_product(x, state[0], 0)),)

    return _layer(_Layer(node, 1, (1,), ("Tanh",), 1, step))


def GRU(node: Node) -> list[Value]:
    """H = (1 - z) * g(X Wh' + (r * H) Rh') + z * H with the gates z and r; r may scale the product instead."""

    def before(cell: _Cell, x: Value, state: State) -> State:
        net, (h,) = cell.net, state
        pair = cell.plus_product(cell.columns(x, 0, 2), h, 0)
        z, r = (cell.gate(0, cell.columns(pair, k, 1)) for k in range(2))
        new = cell.gate(1, cell.plus_product(cell.columns(x, 2, 1), net.multiply(r, h), 1))
        return (net.add(new, net.multiply(z, net.subtract(h, new))),)

    def after(cell: _Cell, x: Value, state: State) -> State:
        products = cell.net.dense(state[0], cell.products[0])
        if cell.shift is not None:
            products = cell.net.add(products, cell.shift)
        return (cell.net.gru_gates(x, products, state[0], **cell.options),)

    if node.get("linear_before_reset", 0):
        return _layer(_Layer(node, 3, (3,), ("Sigmoid", "Tanh"), 1, after, shifted=True))
    return _layer(_Layer(node, 3, (2, 1), ("Sigmoid", "Tanh"), 1, before))


def LSTM(node: Node) -> list[Value]:
    """C = f * C + i * g(X Wc' + H Rc'), H = o * h(C) with the gates i, o and f, which may look at C (peepholes)."""
    coupled = bool(node.get("input_forget", 0))

    def step(cell: _Cell, x: Value, state: State) -> State:
        h, c = state
        sums = cell.plus_product(x, h, 0)
        made: Any = cell.net.lstm_gates(sums, c, *cell.peepholes, coupled=coupled, **cell.options)
        return tuple(made)

    return _layer(_Layer(node, 4, (4,), ("Sigmoid", "Tanh", "Tanh"), 2, step))


@dataclass(frozen=True)
class _Cell:
    """One direction. `products` are recurrent weights (columns, hidden), `shift` is the bias of the products.

    `options` are those of operators for gates: the activations, their numbers, and where their inputs are clipped.
    """

    net: Any
    hidden: int
    products: Sequence[Value]
    shift: Value | None
    peepholes: Sequence[Value]
    options: dict[str, Any]

    def gate(self, number: int, x: Value) -> Value:
        """Apply one of the activations."""
        options = {word: self.options[f"{word}s"][number] for word in ("function", "alpha", "beta")}
        made: Value = self.net.gate(x, limit=self.options["limit"], **options)
        return made

    def plus_product(self, x: Value, h: Value, number: int) -> Value:
        """Add a product of the state to what the inputs give."""
        made: Value = self.net.add(self.net.dense(h, self.products[number]), x)
        return made

    def columns(self, x: Value, first: int, count: int) -> Value:
        """Columns of some of the gates."""
        begin, end = first * self.hidden, (first + count) * self.hidden
        made: Value = self.net.strided_slice(x, begin=[begin], end=[end], axes=[1])
        return made


@dataclass(frozen=True)
class _Layer:
    """A node, and the shape of its cell: weights of all gates, how many of them each recurrent product has, states."""

    node: Node
    gates: int
    products: tuple[int, ...]
    activations: tuple[str, ...]
    states: int
    step: Callable[[_Cell, Value, State], State]
    shifted: bool = False

    @property
    def hidden(self) -> int:
        return self.node.shape(2)[2]

    def cell(self, direction: int) -> _Cell:
        node, size, width = self.node, self.hidden, self.gates * self.hidden
        bounds = np.cumsum((0, *self.products)) * size
        spans = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        products = [_rows(node, 2, direction, begin, end) for begin, end in spans]
        shift = _rows(node, 3, direction, width, 2 * width) if self.shifted and node.has(3) else None
        peepholes = [_rows(node, 7, direction, 0, 3 * size)] if node.has(7) else []
        return _Cell(node.net, size, products, shift, peepholes, _options(node, self.activations, direction))

    def inputs(self, x: Value, direction: int) -> list[Value]:
        """Multiply the inputs of all steps, (steps, batch, size), at once: a (batch, gates * hidden) for each step."""
        node, net, size = self.node, self.node.net, self.hidden
        steps, batch, width = x.shape
        flat = net.reshape(x, shape=(steps * batch, width))
        every = node.apply("dense", flat, _rows(node, 1, direction, 0, self.gates * size))
        if node.has(3):
            width = self.gates * size
            own, other = (_rows(node, 3, direction, begin, begin + width) for begin in (0, width))
            every = net.add(every, own if self.shifted else net.add(own, other))
        made: Any = net.split(every, sections=steps, axis=0) if steps > 1 else [every]
        return list(made)

    def start(self, direction: int, batch: int) -> State:
        """The states before the first step: zeros unless they are given."""
        node, batched = self.node, bool(self.node.get("layout", 0))
        shape, found = (batch, self.hidden), []
        for position in (5, 6)[: self.states]:
            if node.has(position):
                given, axis = node.value(position), 1 if batched else 0
                part = node.net.strided_slice(given, begin=[direction], end=[direction + 1], axes=[axis])
                found.append(node.net.reshape(part, shape=shape))
            else:
                zeros = np.zeros(shape, numpy_type(node.dtype()))
                found.append(node.net.constant(zeros, f"{node.label}.start"))
        return tuple(found)


_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction, True where it goes backwards."""


def _layer(layer: _Layer) -> list[Value]:
    """Run each direction over all steps; return all h, then the last of each state."""
    node, net = layer.node, layer.node.net
    batched, name = bool(node.get("layout", 0)), node.get("direction", "forward")
    if name not in _DIRECTIONS:
        raise UnsupportedNode(f"direction is {', '.join(_DIRECTIONS)}, got {name}")
    x = net.transpose(node.value(0), axes=(1, 0, 2)) if batched else node.value(0)
    steps, batch, _ = x.shape
    total = steps * len(_DIRECTIONS[name])
    if total > MOST_STEPS:
        raise UnsupportedNode(f"{total:,} steps are more than the {MOST_STEPS:,} that are unrolled")
    every, last = [], []
    for direction, backwards in enumerate(_DIRECTIONS[name]):
        hidden, state = _run(layer, x, direction, backwards)
        every.append(net.reshape(_joined(node, hidden, 0), shape=(steps, 1, batch, layer.hidden)))
        last.append([net.reshape(value, shape=(1, batch, layer.hidden)) for value in state])
    results = [_joined(node, every, 1), *(_joined(node, parts, 0) for parts in zip(*last, strict=True))]
    if not batched:
        return results
    return [net.transpose(results[0], axes=(2, 0, 1, 3)), *(net.transpose(r, axes=(1, 0, 2)) for r in results[1:])]


def _run(layer: _Layer, x: Value, direction: int, backwards: bool) -> tuple[list[Value], State]:
    """Return h of each step, in order of time, and the states after the last step of each sample."""
    node, net, (steps, batch, _) = layer.node, layer.node.net, x.shape
    cell, inputs, state = layer.cell(direction), layer.inputs(x, direction), layer.start(direction, batch)
    hidden: dict[int, Value] = {}
    for time in reversed(range(steps)) if backwards else range(steps):
        new = layer.step(cell, inputs[time], state)
        going = _going(node, time, steps, batch)
        if going is None:
            state, hidden[time] = new, new[0]
        else:
            hidden[time] = net.where(going, new[0], node.number_like(0, new[0]))
            state = tuple(net.where(going, n, s) for n, s in zip(new, state, strict=True))
    return [hidden[time] for time in range(steps)], state


def _going(node: Node, time: int, steps: int, batch: int) -> Value | None:
    """Return a (batch, 1) mask of the samples that have this step; None where all have it."""
    if not node.has(4):
        return None
    lengths = node.operand(4)
    if isinstance(lengths, np.ndarray) and (lengths >= steps).all():
        return None
    column = node.net.reshape(node.value(4), shape=(batch, 1))
    return node.net.greater(column, node.number_like(time, column))


def _joined(node: Node, parts: Sequence[Value], axis: int) -> Value:
    made: Value = parts[0] if len(parts) == 1 else node.net.concatenate(*parts, axis=axis)
    return made


def _rows(node: Node, position: int, direction: int, begin: int, end: int) -> Value:
    """Rows of one direction of an input, cut out here where its values are known."""
    found = node.operand(position)
    known = found.constant if isinstance(found, Value) else found
    if known is not None:
        return node.net.constant(np.ascontiguousarray(known[direction, begin:end]), node.names[position])
    value = node.value(position)
    cut = node.net.strided_slice(value, begin=[direction, begin], end=[direction + 1, end], axes=[0, 1])
    return node.net.reshape(cut, shape=cut.shape[1:])


# -- activations ------------------------------------------------------------------------------------------------------

_ALPHA = {
    "affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0
}  # fmt: skip
"""Activations with a number alpha, and what it is unless told otherwise; `_BETA` likewise."""
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def _options(node: Node, default: Sequence[str], direction: int) -> dict[str, Any]:
    """The activations of a direction, with their numbers, which are listed for those alone that have them."""
    names = [str(name).lower() for name in node.get("activations") or (*default, *default)]
    given = {word: iter(node.get(f"activation_{word}") or ()) for word in ("alpha", "beta")}
    alphas = [float(next(given["alpha"], _ALPHA[name])) if name in _ALPHA else 0.0 for name in names]
    betas = [float(next(given["beta"], _BETA[name])) if name in _BETA else 0.0 for name in names]
    own = slice(direction * len(default), (direction + 1) * len(default))
    limit = float(node.get("clip")) if "clip" in node.attributes else None
    return {"functions": names[own], "alphas": alphas[own], "betas": betas[own], "limit": limit}
