"""Stacked LSTM (Hochreiter and Schmidhuber 1997), unrolled over the steps of its input."""

from __future__ import annotations

from math import sqrt

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers


@knows_classic_words
def lstm(
    batch: int = 1,
    steps: int = 16,
    features: int = 128,
    hidden: int = 256,
    layers: int = 2,
    layout: str = "NCHW",
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """`layers` cells of `hidden` units on (batch, steps, features), states 0 at first; the layout makes no difference.

    The output is (batch, steps, hidden), the states of the last layer. Gates are in the order of PyTorch's: input,
    forget, cell, output.
    """
    if min(steps, features, hidden, layers) < 1:
        raise ValueError(f"lstm: at least 1 step, feature, unit, layer, got {steps}, {features}, {hidden}, {layers}")
    made = Layers("lstm", layout, seed, dtype)
    x = made.input("data", (batch, steps, features))
    for number in range(layers):
        x = _layer(made, x, f"layer{number}", hidden)
    return made.finish(made.net.apply("identity", x, label="hidden"))


def _layer(made: Layers, x: Value, name: str, hidden: int) -> Value:
    """The states of one layer, (batch, steps, hidden): the input's part of the gates in one product for all steps."""
    net, (batch, steps, depth) = made.net, x.shape
    rows = net.apply("reshape", x, shape=(batch * steps, depth))
    given = net.apply("reshape", made.dense(rows, f"{name}_input", 4 * hidden), shape=(batch, steps, 4 * hidden))
    weight = net.constant(made.normal((4 * hidden, hidden), sqrt(1.0 / hidden)), f"{name}_state_weight")
    state, cell, states = None, None, []
    for step in range(steps):
        gates = net.apply("strided_slice", given, begin=(step,), end=(step + 1,), axes=(1,))
        gates = net.apply("reshape", gates, shape=(batch, 4 * hidden))
        if state is not None:
            gates = net.apply("dense", state, weight, label=f"{name}_state{step}") + gates
        state, cell = _cell(made, gates, cell)
        states.append(state)
    stacked: Value = net.apply("stack", *states, axis=1)
    return stacked


def _cell(made: Layers, gates: Value, cell: Value | None) -> tuple[Value, Value]:
    """The next state and cell; a cell of None is 0."""
    enter, forget, new, leave = made.net.apply("split", gates, sections=4, axis=1)
    entering = made.act(enter, "sigmoid") * made.act(new, "tanh")
    cell = entering if cell is None else made.act(forget, "sigmoid") * cell + entering
    return made.act(leave, "sigmoid") * made.act(cell, "tanh"), cell
