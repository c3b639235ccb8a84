"""Nodes of FX graphs: names of operators, devices of tensors, and a way out of PyTorch's modes."""

from __future__ import annotations

from typing import Any

FxNode = Any
"""A torch.fx.Node, whose `meta["val"]` is a fake tensor, or several."""


def name_of(node: FxNode) -> str:
    """Return the name and overload of the ATen operator of a node: `add.Tensor`; another call's own name."""
    target = node.target
    packet = getattr(target, "_schema", None)
    if packet is None:
        return getattr(target, "__name__", str(target))
    name = str(packet.name)
    return f"{name.removeprefix('aten::')}.{packet.overload_name or 'default'}"


def is_getitem(node: FxNode) -> bool:
    """True for a node that takes one result of several."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def inputs_of(gm: Any) -> list[FxNode]:
    """Return the inputs of a graph module, in order."""
    return [node for node in gm.graph.nodes if node.op == "placeholder"]


def devices_of(node: FxNode) -> set[Any]:
    """Return the devices of the tensors that a node reads and gives."""
    values = [each.meta.get("val") for each in (*node.all_input_nodes, node)]
    flat = [each for value in values for each in (value if isinstance(value, list | tuple) else [value])]
    return {each.device for each in flat if hasattr(each, "device")}


def real_tensors() -> Any:
    """Return a context in which tensors hold values, also where PyTorch calls a compiler among fake ones."""
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()
