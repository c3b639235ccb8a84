"""One graph for many shapes, as one compiled graph a shape, up to a bound."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

GraphModule = Any
Compiled = Callable[..., Any]


def has_symbols(inputs: Sequence[Any]) -> bool:
    """True where the shapes of a graph's inputs, or the inputs themselves, are not numbers yet."""
    import torch

    def is_open(value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride(), value.storage_offset()))
        return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)

    return any(map(is_open, inputs))


class Versions:
    """A graph of open shapes: each shape that it is called with is traced and compiled, the first `most` of them.

    Others run in PyTorch, as the graph is.
    """

    def __init__(self, gm: GraphModule, compiled: Callable[[GraphModule], Compiled], most: int) -> None:
        self._gm, self._compiled, self._most = gm, compiled, most
        self._known: dict[tuple[Any, ...], Compiled] = {}
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        key = tuple(map(_key, inputs))
        found = self._known.get(key)
        if found is None:
            found = self._version(key, inputs)
        return found(*inputs)

    def _version(self, key: tuple[Any, ...], inputs: Sequence[Any]) -> Compiled:
        from torch.fx.experimental.proxy_tensor import make_fx

        with self._lock:
            if key not in self._known:
                if len(self._known) >= self._most:
                    return self._gm.forward  # type: ignore[no-any-return]
                self._known[key] = self._compiled(make_fx(self._gm, tracing_mode="fake")(*inputs))
            return self._known[key]


def _key(value: Any) -> Any:
    return (value.shape, value.stride()) if hasattr(value, "stride") else value
