"""A graph of core ATen whose regions are compiled."""

from __future__ import annotations

from typing import Any

from .folding import fold_constants, real_tensors
from .importer import FxNode
from .options import TorchOptions
from .partition import partitioned
from .region import Region

GraphModule = Any


class CompiledGraph:
    """A graph as a function: regions in kernels of ours, and PyTorch's operators between them.

    `kind` is inference, forward or backward; `stays` says of each operator that is PyTorch's why it is.
    """

    def __init__(
        self, gm: GraphModule, kind: str, static: frozenset[int], options: TorchOptions, kernels: bool = True
    ) -> None:
        self.kind = kind
        fold_constants(gm)
        with real_tensors():
            self.module, self.stays = partitioned(gm, _inputs(gm, static) if options.freeze else frozenset())
        self.regions: list[Region] = []
        kept = _inputs(self.module, static)
        for node in self.module.graph.nodes:
            if node.op == "call_module":
                self._replace(node, kept, options, kernels)
        self._forward = self.module.forward

    def _replace(self, node: FxNode, kept: frozenset[FxNode], options: TorchOptions, kernels: bool) -> None:
        """Put a region in the place of a submodule."""
        graph = getattr(self.module, node.target)
        static = frozenset(k for k, given in enumerate(node.args) if given in kept or given.op == "get_attr")
        region = Region(f"{node.target}", graph, static, options)
        self.regions.append(region)
        if kernels:
            delattr(self.module, node.target)
            object.__setattr__(self.module, node.target, region)

    def __call__(self, *inputs: Any) -> Any:
        return self._forward(*inputs)


def _inputs(gm: GraphModule, places: frozenset[int]) -> frozenset[FxNode]:
    """Return the inputs of a graph at places."""
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    return frozenset(node for k, node in enumerate(inputs) if k in places)
