"""Layers of recurrent networks as PyTorch traces them for inference: an operator of ours for each direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from ...backends.forkable import ForkableLock

Tensor = Any
Function = Callable[..., Any]
KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Operators of ATen that take all layers at once, by their overload `input`."""
_SCHEMA = "(Tensor inputs, Tensor[] weights, Tensor[] states, str kind, bool reverse) -> (Tensor, Tensor, Tensor)"


def recurrent_layer() -> Any:
    """Return the operator `loopwright::recurrent_layer`, which is defined when it is first asked for.

    One direction of a layer, of inputs (steps, batch, width) and states (batch, hidden), that of a cell behind that of
    an LSTM: the outputs (steps, batch, hidden), and the last states, of which the second is empty where there is none.
    """
    import torch

    with _LOCK:  # PyTorch refuses to define it twice
        if not _LIBRARIES:
            library = torch.library.Library("loopwright", "FRAGMENT")
            library.define(f"recurrent_layer{_SCHEMA}")
            library.impl("recurrent_layer", _in_pytorch, "CompositeExplicitAutograd")
            library.impl("recurrent_layer", _as_meta, "Meta")
            _LIBRARIES.append(library)
    return torch.ops.loopwright.recurrent_layer.default


_LOCK = ForkableLock()
_LIBRARIES: list[Any] = []
"""The library, as operators are gone with it."""


def _as_meta(inputs: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], kind: str, reverse: bool) -> Any:
    batch, hidden = states[0].shape
    made = [inputs.new_empty(shape) for shape in ((inputs.shape[0], batch, hidden), (batch, hidden))]
    return (*made, inputs.new_empty((batch, hidden) if len(states) > 1 else (0,)))


def _in_pytorch(inputs: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], kind: str, reverse: bool) -> Any:
    import torch

    given = inputs.flip(0) if reverse else inputs
    before = [state.unsqueeze(0) for state in states]
    layer, has_biases = getattr(torch, kind), len(weights) > 2
    made, *after = layer(
        given, before if kind == "lstm" else before[0], weights, has_biases, 1, 0.0, False, False, False
    )
    cell = after[1].squeeze(0) if kind == "lstm" else inputs.new_empty(0)
    return made.flip(0) if reverse else made.clone(), after[0].squeeze(0).clone(), cell


@cache
def whole_layers() -> Mapping[Any, Function]:
    """Return functions that take the place of PyTorch's for recurrent layers, by their operators.

    PyTorch takes the layers apart step by step while it traces: 1,400 steps, as vision networks have, are 20,000
    operators. An LSTM whose states are projected stays as it is.
    """
    import torch

    operators = [getattr(torch.ops.aten, kind).input for kind in KINDS]
    steps = {operator: torch._decomp.decomposition_table[operator] for operator in operators}
    return {operator: partial(_layers, kind, steps[operator]) for kind, operator in zip(KINDS, operators, strict=True)}


def _layers(
    kind: str,
    step_by_step: Function,
    inputs: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """All layers and directions; the states are (layers * directions, batch, hidden)."""
    import torch

    states = list(hx) if kind == "lstm" else [hx]
    if kind == "lstm" and states[0].shape[2] != states[1].shape[2]:
        return step_by_step(inputs, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    layer, own, directions = recurrent_layer(), 4 if has_biases else 2, 2 if bidirectional else 1
    made, ends = inputs.transpose(0, 1) if batch_first else inputs, []
    for number in range(num_layers):
        joined = []
        for direction in range(directions):
            place = number * directions + direction
            weights = list(params[place * own : (place + 1) * own])
            every, *last = layer(made, weights, [state[place] for state in states], kind, direction == 1)
            joined.append(every)
            ends.append(last[: len(states)])
        made = joined[0] if len(joined) == 1 else torch.cat(joined, -1)
        if train and dropout and number < num_layers - 1:
            made = torch.dropout(made, dropout, train=True)
    last_states = [torch.stack(parts, 0) for parts in zip(*ends, strict=True)]
    return made.transpose(0, 1) if batch_first else made, *last_states
