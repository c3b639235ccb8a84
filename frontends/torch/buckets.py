"""Graphs of open extents at a few: inputs are padded, where that provably changes nothing, and results are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...graph.network import Network
from ...graph.same_form import difference
from .errors import UnsupportedNode
from .importer import GraphImport, add_input
from .types import Tensor

GraphModule = Any
Symbol = Any
"""A symbol of sympy's: an extent that PyTorch left open."""
Shapes = list[tuple[int, ...]]
"""The shapes of inputs; an input that is a number is its own only extent."""


class Buckets:
    """Extents that open ones are padded to: `steps` are those of each dimension, in increasing order.

    `examples` are a graph's inputs as it was traced. An extent is open where it is a symbol there; of one that stands
    in several dimensions the first counts that has steps.
    """

    def __init__(self, examples: Sequence[Any], steps: Mapping[int, Sequence[int]]) -> None:
        self._extents = [tuple(n.node.expr if hasattr(n, "node") else n for n in _shape(each)) for each in examples]
        self._steps: dict[Symbol, Sequence[int]] = {}
        for example, extents in zip(examples, self._extents, strict=True):
            for dimension, extent in enumerate(extents if hasattr(example, "stride") else ()):
                if dimension in steps and getattr(extent, "is_Symbol", False):
                    self._steps.setdefault(extent, steps[dimension])

    def shapes(self, inputs: Sequence[Any]) -> Shapes | None:
        """Return the shapes that inputs are padded to; None where they stay as they are."""
        found: dict[Symbol, int] = {}
        for extents, given in zip(self._extents, inputs, strict=True):
            pairs = zip(extents, _shape(given), strict=True)
            found.update((extent, n) for extent, n in pairs if getattr(extent, "is_Symbol", False))
        wide = {each: _step(n, self._steps.get(each, ())) for each, n in found.items()}
        if wide == found:
            return None
        return [tuple(int(e.subs(wide)) if hasattr(e, "subs") else e for e in extents) for extents in self._extents]


def _shape(given: Any) -> tuple[Any, ...]:
    return tuple(given.shape) if hasattr(given, "stride") else (given,)


def _step(n: int, steps: Sequence[int]) -> int:
    return next((step for step in steps if step >= n), n)


def padded(inputs: Sequence[Any], shapes: Shapes) -> list[Any]:
    """Return inputs in wider shapes; what is added repeats the last element, so that it is of the values that occur."""
    import torch

    made = []
    for given, shape in zip(inputs, shapes, strict=True):
        if not hasattr(given, "stride"):
            made.append(shape[0])
            continue
        for dimension, (n, wide) in enumerate(zip(given.shape, shape, strict=True)):
            if n != wide:
                given = given.index_select(dimension, torch.arange(wide, device=given.device).clamp_(max=n - 1))
        made.append(given)
    return made


def why_not_padded(graph: GraphModule, wide: GraphModule) -> str | None:
    """Return why results of a graph cannot be cut from those of the same graph at wider extents; None if they can."""
    try:
        return difference(_network(graph), _network(wide))
    except UnsupportedNode as error:
        return str(error)


def _network(gm: GraphModule) -> Network:
    net = Network()
    importer = GraphImport(net, lambda node: add_input(net, node))
    importer.run(gm.graph)
    if importer.reasons:
        raise UnsupportedNode("; ".join(importer.reasons))
    return net


@dataclass(frozen=True)
class Padded:
    """A graph as a function of its inputs, by the same graph at wider extents; `results` are as PyTorch has them."""

    wide: Any
    shapes: Shapes
    results: Sequence[Any]

    def __call__(self, *inputs: Any) -> Any:
        found = self.wide(*padded(inputs, self.shapes))
        return tuple(_cut(each, like) for each, like in zip(found, self.results, strict=True))


def results_of(graph: GraphModule) -> list[Any]:
    """Return the results of a traced graph: fake tensors, and what else it returns."""
    returned = next(iter(reversed(graph.graph.nodes))).args[0]
    return [each.meta["val"] if hasattr(each, "meta") else each for each in returned]


def _cut(given: Any, like: Any) -> Any:
    """Return the part of a tensor that has the shape of another, with its strides; what is no tensor is as it is."""
    import torch

    if not isinstance(like, torch.Tensor):
        return like
    for dimension, (n, wide) in enumerate(zip(like.shape, given.shape, strict=True)):
        if n != wide:
            given = given.narrow(dimension, 0, n)
    return given if given.stride() == like.stride() else _with_strides(given, like.stride())


def _with_strides(given: Tensor, strides: Sequence[int]) -> Tensor:
    import torch

    return torch.empty_strided(given.shape, strides, dtype=given.dtype, device=given.device).copy_(given)
