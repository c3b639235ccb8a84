"""The key of a module with inputs: what decides the program that torch.export makes of it, without tracing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .code_description import Undescribed, description, tensor_kind
from .dynamo_key import settings, traced_by
from .options import TorchOptions

Key = tuple[str, ...]


def key_of(module: Any, leaves: Sequence[Any], spec: Any, options: TorchOptions) -> Key | None:
    """Return the key of a module for inputs on the CPU, by their leaves and their tree; None for one without."""
    state = settings()
    if state is None or options.tune or options.check or options.precision or _has_global_hooks():
        return None
    try:
        told = description(module)
        given = [_shown(leaf) for leaf in leaves]
    except (Undescribed, RecursionError):
        return None
    return "torch.export", told, "\n".join(given), repr(spec), repr(state), *traced_by(options)


def _shown(leaf: Any) -> str:
    import torch

    if not isinstance(leaf, torch.Tensor):
        return description(leaf)
    if leaf.device.type != "cpu":
        raise Undescribed("a tensor on another device")
    return tensor_kind(leaf)


def _has_global_hooks() -> bool:
    from torch.nn.modules import module

    return any(value for name, value in vars(module).items() if name.startswith("_global_") and name.endswith("_hooks"))
