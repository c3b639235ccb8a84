"""Reports of what of a model is compiled, and why the rest stays PyTorch's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from .backend import compiled_by
from .fx import FxNode, is_getitem, name_of
from .options import TorchOptions
from .recurrent_layers import trace_recurrent_layers

if TYPE_CHECKING:
    from .graph import CompiledGraph


@dataclass(frozen=True)
class GraphReport:
    """A graph that torch.compile takes out of a model: operators and operations that are compiled, and all.

    `stays` counts the operators that stay PyTorch's, by name and reason.
    """

    kind: str
    regions: tuple[int, ...]
    """The number of operators of each region."""
    operators: int
    flops: int
    all_flops: int
    stays: Mapping[tuple[str, str], int]
    padding: str = ""
    """The shapes that inputs are padded to, or why they are not; empty where the option `buckets` asks for nothing."""


@dataclass(frozen=True)
class Explanation:
    """A model's graphs, and the reasons why PyTorch broke it into several."""

    graphs: tuple[GraphReport, ...]
    breaks: Mapping[str, int]

    @property
    def flops_share(self) -> float:
        """The part of the floating-point operations of matrix products and convolutions that is compiled; 1 of none."""
        every = sum(graph.all_flops for graph in self.graphs)
        return sum(graph.flops for graph in self.graphs) / every if every else 1.0

    @property
    def stays(self) -> dict[tuple[str, str], int]:
        """The operators that stay PyTorch's, by name and reason."""
        return dict(sum((Counter(graph.stays) for graph in self.graphs), Counter()))

    def __str__(self) -> str:
        if not self.graphs:
            return (
                "torch.compile takes no graph out of the model, which runs in PyTorch: TORCH_LOGS=graph_breaks says why"
            )
        ours = sum(sum(graph.regions) for graph in self.graphs)
        regions = sum(len(graph.regions) for graph in self.graphs)
        lines = [
            f"{_counted(len(self.graphs), 'graph')}: {ours} of {sum(g.operators for g in self.graphs)} operators in "
            f"{_counted(regions, 'region')}, {self.flops_share:.1%} of the floating-point operations"
        ]
        lines += [f"  stays PyTorch's: {n} x {name}: {why}" for (name, why), n in sorted(self.stays.items())]
        lines += [f"  {graph.padding}" for graph in self.graphs if graph.padding]
        lines += [f"  graph break: {n} x {why}" for why, n in sorted(self.breaks.items())]
        return "\n".join(lines)


def explain(model: Callable[..., Any], *inputs: Any, options: Mapping[str, Any] | None = None) -> Explanation:
    """Report what `torch.compile(model, backend="loopwright")` would compile, for inputs; all of it runs in PyTorch.

    Gradients are computed, or not, as they would be: put `torch.no_grad()` around the call to see inference. With the
    option `buckets`, all extents of the inputs are taken to be open (`dynamic=True`).
    """
    import torch
    from torch._dynamo.utils import counters

    trace_recurrent_layers()
    graphs: list[CompiledGraph] = []
    before = Counter(counters["graph_break"])
    known = TorchOptions.of(options)
    is_open = True if known.buckets else None
    torch.compile(model, backend=compiled_by(known, graphs.append, kernels=False), dynamic=is_open)(*inputs)
    breaks = Counter(counters["graph_break"]) - before
    return Explanation(tuple(map(_report, graphs)), {why.splitlines()[0]: n for why, n in breaks.items()})


def _report(graph: CompiledGraph) -> GraphReport:
    regions = [[n for n in region.graph.graph.nodes if _is_operator(n)] for region in graph.regions]
    outside = [node for node in graph.module.graph.nodes if _is_operator(node)]
    ours = sum(map(_flops, chain(*regions)))
    return GraphReport(
        kind=graph.kind,
        regions=tuple(map(len, regions)),
        operators=sum(map(len, regions)) + len(outside),
        flops=ours,
        all_flops=ours + sum(map(_flops, outside)),
        padding=graph.padding,
        stays=Counter((name_of(node), why) for node, why in graph.stays.items()),
    )


def _is_operator(node: FxNode) -> bool:
    return node.op == "call_function" and not is_getitem(node)


def _flops(node: FxNode) -> int:
    """Floating-point operations by PyTorch's own count, which knows matrix products, convolutions and attention."""
    from torch.fx.node import map_arg
    from torch.utils.flop_counter import flop_registry

    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None:
        return 0
    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda given: given.meta["val"])
    return int(formula(*args, **kwargs, out_val=node.meta["val"]))


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
