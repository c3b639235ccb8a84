"""Resizing of feature maps that PyTorch traces as one operator each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
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

    The functions stand in tables of the process, which only tracing reads. Who else traces meanwhile, without the lock
    that torch.compile holds, gets resizes that are whole: other operators, the same results. Several threads may be
    here at once, and one within itself: the last to leave puts the functions back.
    """
    _FUNCTIONS.take()
    try:
        yield
    finally:
        _FUNCTIONS.give_back()


class _PythonFunctions:
    """PyTorch's Python functions for resizing, and how many have them away from its tables."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._takers = 0
        self._taken: list[tuple[Any, Any, Any]] = []
        """Operators, dispatch keys, and the functions that stand there."""

    def take(self) -> None:
        with self._lock:
            if not self._takers:
                self._taken = [*_removed()]
            self._takers += 1

    def give_back(self) -> None:
        with self._lock:
            self._takers -= 1
            if not self._takers:
                for operator, key, function in self._taken:
                    operator.py_kernels[key] = function
                    operator._dispatch_cache.clear()
                self._taken = []


_FUNCTIONS = _PythonFunctions()
"""One for the process, as the tables are."""


def _removed() -> Iterator[tuple[Any, Any, Any]]:
    """Remove the functions from the tables, and say where they were."""
    import torch

    keys = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    for packet in (getattr(torch.ops.aten, name) for name in _NAMES):
        for operator in (getattr(packet, overload) for overload in packet.overloads()):
            found = [(operator, key, operator.py_kernels.pop(key)) for key in keys if key in operator.py_kernels]
            operator._dispatch_cache.clear()
            yield from found
