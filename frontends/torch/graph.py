"""A graph of core ATen whose regions are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .complex_numbers import take_complex_numbers_apart
from .folding import fold_constants
from .fx import FxNode, inputs_of, real_tensors
from .options import TorchOptions
from .partition import copied, loosen_views, partitioned
from .parts import Part
from .region import Region
from .written_inputs import COPIED, IN_PLACE, WRITERS, WrittenInputs

GraphModule = Any


class CompiledGraph:
    """A graph as a function: regions in kernels of ours, and PyTorch's operators between them.

    `kind` is inference, forward or backward; `stays` says of each operator that is PyTorch's why it is; `padding` how
    the graph is padded, or why it is not, where that was asked for.
    """

    def __init__(
        self,
        gm: GraphModule,
        kind: str,
        static: frozenset[int],
        options: TorchOptions,
        kernels: bool = True,
        padding: str = "",
    ) -> None:
        self.kind, self.padding = kind, padding
        self.written = WrittenInputs(gm)
        take_complex_numbers_apart(gm)
        fold_constants(gm)
        self.written.write_in_place(gm)
        with real_tensors():
            frozen = _inputs(gm, static) if options.freeze else frozenset()
            self.module, self.stays = partitioned(gm, options, frozen)
        self.regions: list[Region] = []
        kept = _inputs(self.module, static)
        for node in self.module.graph.nodes:
            if node.op == "call_module":
                self._replace(node, kept, options, kernels)
        self.stays |= {node: IN_PLACE for node in self.stays if node.target in WRITERS}
        self.stays |= dict.fromkeys(self.written.put_back(self.module), COPIED)
        runs = self.module if kernels else copied(self.module)  # a report names operators as traced
        loosen_views(runs, ("placeholder", "get_attr", "call_module") if kernels else ())
        self.run: Callable[..., Any] = _plain_forward(runs)
        """The graph as a function of its inputs that returns a tuple."""

    def _replace(self, node: FxNode, kept: frozenset[FxNode], options: TorchOptions, kernels: bool) -> None:
        """Put a region in the place of a submodule."""
        graph = getattr(self.module, node.target)
        static = frozenset(k for k, given in enumerate(node.args) if given in kept or given.op == "get_attr")
        region = Region(f"{node.target}", Part.of(graph), static, options)
        self.regions.append(region)
        if not kernels:
            loosen_views(graph)
        else:
            delattr(self.module, node.target)
            object.__setattr__(self.module, node.target, region)

    def __call__(self, *inputs: Any) -> Any:
        return self.run(*inputs)


def _plain_forward(gm: GraphModule) -> Any:
    """Return a module's generated function, without the checks that a module's own call makes before it."""
    from torch.fx._lazy_graph_module import _LazyGraphModule

    _LazyGraphModule.force_recompile(gm)
    return type(gm).forward.__get__(gm)


def _inputs(gm: GraphModule, places: frozenset[int]) -> frozenset[FxNode]:
    """Return the inputs of a graph at places."""
    return frozenset(node for k, node in enumerate(inputs_of(gm)) if k in places)
