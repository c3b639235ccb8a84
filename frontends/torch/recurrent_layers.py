"""Recurrent layers in graphs of torch.compile: traced as they are, and those of many steps left to PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from .fx import FxNode, inputs_of

GraphModule = Any
Compiled = Callable[..., Any]

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Functions of torch that the modules call, of an input, states, parameters and options."""
MOST_CELLS = 512
"""Steps by layers by directions that are unrolled, each up to a dozen operators that are compiled: the first call of a
GRU of 64 steps in two layers took 14 s of CPU (Xeon, Emerald Rapids) when PyTorch traced them, too. A choice."""


def trace_recurrent_layers() -> None:
    """Have Dynamo trace `nn.LSTM`, `nn.GRU` and `nn.RNN`, at which it breaks graphs unless told otherwise.

    It decides before it calls a backend, and has no setting of one backend's. Where nobody has loaded Dynamo, 2 s
    of CPU, there is nothing to do: who compiles by the backend's name has.
    """
    if "torch._dynamo" in sys.modules:
        import torch

        torch._dynamo.config.allow_rnn = True


def compiled_around_long_layers(
    gm: GraphModule, compile_part: Callable[[GraphModule, Sequence[Any]], Compiled]
) -> Compiled | None:
    """Return a graph as a function, with layers that are not unrolled run by PyTorch and parts between them compiled.

    None for a graph that has no such layer.
    """
    from torch.fx.passes.split_module import split_module

    places, number = {}, 0
    for node in gm.graph.nodes:
        stays = _stays(node)
        number += stays
        places[node] = number
        number += stays
    if not number:
        return None
    whole = split_module(gm, None, lambda node: places[node], keep_original_order=True)
    for name, part in list(whole.named_children()):
        if not any(map(_stays, part.graph.nodes)):
            delattr(whole, name)
            object.__setattr__(whole, name, _compiled_part(part, compile_part))
    run: Compiled = whole.forward
    return run


def _compiled_part(part: GraphModule, compile_part: Callable[[GraphModule, Sequence[Any]], Compiled]) -> Compiled:
    inputs = [node.meta["example_value"] for node in inputs_of(part)]
    output = part.graph.output_node()
    if isinstance(output.args[0], tuple):
        return compile_part(part, inputs)
    output.args = ((output.args[0],),)  # a backend is given graphs that return tuples
    part.recompile()
    made = compile_part(part, inputs)
    return lambda *arguments: made(*arguments)[0]


def _stays(node: FxNode) -> bool:
    """True for a layer of too many steps, of a number that is open, or of packed sequences."""
    import torch

    if node.op != "call_function" or node.target not in [getattr(torch, name) for name in _LAYERS]:
        return False
    data, _, _, has_biases, layers, _, _, bidirectional, batch_first = node.args
    if not isinstance(has_biases, bool):  # of packed sequences, the parameters stand here
        return True
    shape = data.meta["example_value"].shape
    steps = shape[1 if batch_first and len(shape) == _BATCHED else 0]
    return not isinstance(steps, int) or steps * layers * (2 if bidirectional else 1) > MOST_CELLS


_BATCHED = 3
"""The axes of a layer's input that has a batch."""
