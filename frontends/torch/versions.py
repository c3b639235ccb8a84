"""One graph for many shapes, as one compiled graph a shape, up to a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...backends.forkable import ForkableLock
from .buckets import Buckets, Padded, Shapes, padded, results_of, why_not_padded

GraphModule = Any
Compiled = Callable[..., Any]
Key = tuple[Any, ...]
"""Shapes and strides of inputs, and numbers among them."""


class Versions:
    """A graph of open shapes: each shape that it is called with is traced and compiled, the first `most` of them.

    Others run in PyTorch, as the graph is. With `buckets`, shapes are padded to those of a few versions where that is
    shown to change nothing; `compiled` is told how a version is padded, or why it is not.
    """

    def __init__(
        self, gm: GraphModule, compiled: Callable[[GraphModule, str], Compiled], most: int, buckets: Buckets | None
    ) -> None:
        self._gm, self._compiled, self._most, self._buckets = gm, compiled, most, buckets
        self._in_pytorch: Compiled = gm.forward
        self._known: dict[Key, Compiled] = {}
        self._versions: dict[Key, Compiled] = {}
        """Of those known, the ones that are no padding of another."""
        self._lock = ForkableLock()

    def __call__(self, *inputs: Any) -> Any:
        key = _key(inputs)
        found = self._known.get(key)
        if found is None:
            with self._lock:
                found = self._known.get(key) or self._made(inputs)
                if found is not None:
                    self._known[key] = found
        return (found or self._in_pytorch)(*inputs)

    def _made(self, inputs: Sequence[Any]) -> Compiled | None:
        shapes = None if self._buckets is None else self._buckets.shapes(inputs)
        wide_inputs = inputs if shapes is None else padded(inputs, shapes)
        if not self._may_be(_key(inputs)) and not self._may_be(
            _key(wide_inputs)
        ):  # a trace takes longer than the graph
            return None
        graph = self._traced(inputs)
        if shapes is None:
            return self._version(inputs, graph)
        wide = self._traced(wide_inputs)
        reason = why_not_padded(graph, wide)
        if reason is not None:
            return self._version(inputs, graph, f"not padded: {reason}") or self._in_pytorch
        version = self._version(wide_inputs, wide, f"padded: {_shown(inputs, shapes)}")
        return None if version is None else Padded(version, shapes, results_of(graph))

    def _version(self, inputs: Sequence[Any], graph: GraphModule, padding: str = "") -> Compiled | None:
        """Return the graph compiled for the shapes of inputs; None where there are as many versions as may be."""
        key = _key(inputs)
        if key not in self._versions and self._may_be(key):
            self._versions[key] = self._compiled(graph, padding)
        return self._versions.get(key)

    def _may_be(self, key: Key) -> bool:
        """True for a version that is there, or for which there is room."""
        return key in self._versions or len(self._versions) < self._most

    def _traced(self, inputs: Sequence[Any]) -> GraphModule:
        from torch.fx.experimental.proxy_tensor import make_fx

        return make_fx(self._gm, tracing_mode="fake")(*inputs)


def _key(inputs: Sequence[Any]) -> Key:
    return tuple((each.shape, each.stride()) if hasattr(each, "stride") else each for each in inputs)


def _shown(inputs: Sequence[Any], shapes: Shapes) -> str:
    pairs = zip(inputs, shapes, strict=True)
    shown = [f"{[*given.shape]} to {[*shape]}" for given, shape in pairs if getattr(given, "shape", shape) != shape]
    return ", ".join(dict.fromkeys(shown))
