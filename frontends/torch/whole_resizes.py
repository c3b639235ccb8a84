"""Resizing of feature maps that PyTorch traces as one operator each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KINDS = ("linear1d", "bilinear2d", "trilinear3d", "bicubic2d", "nearest1d", "nearest2d", "nearest3d")
_NAMES = (
    *(f"upsample_{kind}" for kind in _KINDS),
    *(f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)),
)


@contextmanager
def whole_resizes() -> Iterator[None]:
    """Have PyTorch trace resizing as it stands, for inference.

    It has Python functions for these operators below those of decompositions, which a table does not reach: reads at
    places that are computed, as tensors, which keep a network's layout, and a product, from coming past them. Their
    gradients would be operators that are not ours, so training graphs are traced as ever.
    """
    import torch

    keys = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    taken: list[tuple[Any, Any, Any]] = []
    for packet in (getattr(torch.ops.aten, name) for name in _NAMES):
        for operator in (getattr(packet, overload) for overload in packet.overloads()):
            taken += [(operator, key, operator.py_kernels.pop(key)) for key in keys if key in operator.py_kernels]
            operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, key, function in taken:
            operator.py_kernels[key] = function
            operator._dispatch_cache.clear()
