"""A graph of core ATen whose regions are compiled."""

from __future__ import annotations

from typing import Any

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
        self.module, self.stays = partitioned(gm, options.takes)
        self.regions: list[Region] = []
        inputs = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        kept = {node for k, node in enumerate(inputs) if k in static}
        for node in self.module.graph.nodes:
            if node.op == "call_module":
                self._replace(node, kept, options, kernels)
        self._forward = self.module.forward

    def _replace(self, node: FxNode, kept: set[FxNode], options: TorchOptions, kernels: bool) -> None:
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
