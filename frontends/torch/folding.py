"""Folding of what depends on no input: places, masks and tables that a graph computes from numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .fx import FxNode, is_getitem, name_of, real_tensors
from .partition import is_view

GraphModule = Any
Tensor = Any
_MOST_ELEMENTS = 1 << 20
"""Larger results stay operators: as constants they are memory. Masks and places of 1,024 by 1,024 are folded."""


def fold_constants(gm: GraphModule, known: Mapping[FxNode, Tensor] | None = None) -> None:
    """Replace nodes that depend on constants alone by attributes of the graph that hold what PyTorch computes for them.

    `known` are placeholders that never change. Random operators and those that write stay, and so does what is returned
    or shares memory with what is returned: nobody else may hold a constant.
    """
    with real_tensors():
        _fold(gm, dict(known or {}))
    _leave_out_empty(gm)
    gm.graph.eliminate_dead_code()
    gm.recompile()


def _fold(gm: GraphModule, values: dict[FxNode, Tensor]) -> None:
    escaping = _escaping(gm)
    for node in gm.graph.nodes:
        if _is_plain_attribute(gm, node):
            values[node] = getattr(gm, node.target)
        elif _is_foldable(node) and all(given in values for given in node.all_input_nodes):
            values[node] = _evaluated(node, values)
    for node in reversed(list(gm.graph.nodes)):
        if node.op == "call_function" and node in values and node not in escaping:
            _replace(gm, node, values[node])


def _leave_out_empty(gm: GraphModule) -> None:
    """Leave tensors without elements out of joins, as those that a cache of keys and values begins with, and of writes.

    Masks of shifted windows are written piece by piece, of which there is none where an axis is not shifted. Results of
    the graph stay what they are: they are memory of their own.
    """
    escaping = _escaping(gm)
    for node in list(gm.graph.nodes):
        if node.op != "call_function":
            continue
        if name_of(node) == "cat.default":
            parts = [part for part in node.args[0] if part.meta["val"].numel()]
            if parts and len(parts) < len(node.args[0]):
                node.args = (parts, *node.args[1:])
        elif name_of(node) == "slice_scatter.default" and node not in escaping and not node.args[1].meta["val"].numel():
            node.replace_all_uses_with(node.args[0])


def _is_plain_attribute(gm: GraphModule, node: FxNode) -> bool:
    return node.op == "get_attr" and hasattr(getattr(gm, node.target, None), "numel")


def _escaping(gm: GraphModule) -> set[FxNode]:
    """Return the nodes that share memory with what is returned."""
    left, found = list(gm.graph.output_node().all_input_nodes), set()
    while left:
        node = left.pop()
        found.add(node)
        if is_getitem(node) or is_view(node):
            left += node.all_input_nodes
    return found


def _is_foldable(node: FxNode) -> bool:
    import torch

    target, value = node.target, node.meta.get("val")
    if (
        node.op != "call_function"
        or not isinstance(target, torch._ops.OpOverload)
        or not isinstance(value, torch.Tensor)
    ):
        return False
    if (
        target._schema.is_mutable
        or torch.Tag.nondeterministic_seeded in target.tags
        or name_of(node).startswith("empty")
        or (value.device.type == "cuda" and (value.device.index or 0) >= torch.cuda.device_count())  # only looked at
    ):
        return False
    return all(isinstance(n, int) for n in value.shape) and 0 < value.numel() <= _MOST_ELEMENTS


def _evaluated(node: FxNode, values: Mapping[FxNode, Tensor]) -> Tensor:
    import torch
    from torch.fx.node import map_arg

    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda given: values[given])
    with torch.no_grad():
        return node.target(*args, **kwargs)


def _replace(gm: GraphModule, node: FxNode, value: Tensor) -> None:
    """Put an attribute in the place of a node, where something reads it that is not folded itself."""
    if not node.users or not value.is_contiguous():
        return
    name = f"folded_{node.name}"
    gm.register_buffer(name, value.detach().clone(), persistent=False)
    with gm.graph.inserting_before(node):
        constant = gm.graph.get_attr(name)
    constant.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(constant)
    gm.graph.erase_node(node)
