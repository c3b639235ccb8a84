"""Resizing of feature maps, and recurrent layers, that PyTorch traces as one operator each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ...backends.forkable import ForkableLock
from .recurrent_operator import whole_layers

_KINDS = ("linear1d", "bilinear2d", "trilinear3d", "bicubic2d", "nearest1d", "nearest2d", "nearest3d")
_NAMES = (
    *(f"upsample_{kind}" for kind in _KINDS),
    *(f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)),
)


@contextmanager
def whole_operators() -> Iterator[None]:
    """Have PyTorch trace resizing and recurrent layers as they stand, for inference.

    It has Python functions for these operators below those of decompositions, which a table does not reach: reads at
    places that are computed, as tensors, which keep a network's layout, and a product, from coming past them. Their
    gradients would be operators that are not ours, so training graphs are traced as ever. Those that take a size or
    scales are brought to the ones that take both, as PyTorch's own in C++ know numbers alone, and no open extents.
    Layers are `loopwright::recurrent_layer` for each direction.

    The functions stand in tables of the process, which only tracing reads. Who else traces meanwhile, without the lock
    that torch.compile holds, gets operators that are whole: others, the same results. Several threads may be
    here at once, and one within itself: the last to leave puts the functions back.
    """
    _FUNCTIONS.take()
    try:
        yield
    finally:
        _FUNCTIONS.give_back()


class _PythonFunctions:
    """PyTorch's Python functions, and how many have them away from its tables."""

    def __init__(self) -> None:
        self._lock = ForkableLock()
        self._takers = 0
        self._taken: list[tuple[Any, Any, Any]] = []
        """Operators, dispatch keys, and the functions that stand there, if any."""

    def take(self) -> None:
        with self._lock:
            if not self._takers:
                self._taken = [*_exchanged()]
            self._takers += 1

    def give_back(self) -> None:
        with self._lock:
            self._takers -= 1
            if not self._takers:
                for operator, key, function in self._taken:
                    if function is None:
                        del operator.py_kernels[key]
                    else:
                        operator.py_kernels[key] = function
                    operator._dispatch_cache.clear()
                self._taken = []


_FUNCTIONS = _PythonFunctions()
"""One for the process, as the tables are."""


def _exchanged() -> Iterator[tuple[Any, Any, Any]]:
    """Exchange the functions in the tables, and say where which were, or None where there was none."""
    import torch

    keys = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    for packet in (getattr(torch.ops.aten, name) for name in _NAMES):
        for overload in packet.overloads():
            operator = getattr(packet, overload)
            for key in keys:
                found = operator.py_kernels.pop(key, None)
                if overload == "vec":
                    operator.py_kernels[key] = partial(_of_size_and_scales, packet.default)
                if found is not None or overload == "vec":
                    yield operator, key, found
            operator._dispatch_cache.clear()
    for operator, function in whole_layers().items():
        for key in keys:
            found = operator.py_kernels.get(key)
            operator.py_kernels[key] = function
            yield operator, key, found
        operator._dispatch_cache.clear()


def _of_size_and_scales(operator: Any, data: Any, size: Sequence[Any] | None, *rest: Any) -> Any:
    """Resize to a size, or by scales, the last argument, by the operator that takes both; extents may be open."""
    import torch

    *corners, scales = rest
    extents = data.shape[2:]
    if size is None:
        size = [torch.sym_int(extent * scale) for extent, scale in zip(extents, scales, strict=True)]
    return operator(data, size, *corners, *(scales or [None] * len(extents)))
