"""Functions and modules under torch.compile, with the graphs that the backend took."""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo

from loopwright.frontends.torch.backend import compiled_by
from loopwright.frontends.torch.graph import CompiledGraph
from loopwright.frontends.torch.options import TorchOptions
from loopwright.frontends.torch.recurrent_layers import trace_recurrent_layers
from loopwright.frontends.torch.region import Region


class Watched:
    """A function or a module under torch.compile, and the graphs that it took."""

    def __init__(self, function: Any, *, dynamic: bool | None = None, **options: Any) -> None:
        trace_recurrent_layers()
        self.graphs: list[CompiledGraph] = []
        backend = compiled_by(TorchOptions.of(options), self.graphs.append)
        self.call = torch.compile(function, backend=backend, dynamic=dynamic)

    def __call__(self, *inputs: Any) -> Any:
        return self.call(*inputs)

    @property
    def regions(self) -> list[Region]:
        return [region for graph in self.graphs for region in graph.regions]

    @property
    def stays(self) -> list[str]:
        return sorted(node.name for graph in self.graphs for node in graph.stays)


def compiled_regions(watched: Watched) -> list[Region]:
    """The regions of a function, all of which run in our kernels."""
    failures = [region.failure for region in watched.regions]
    assert failures and failures == [None] * len(failures), failures
    assert all(region.compiled is not None for region in watched.regions)
    return watched.regions


def close(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def with_gradients(module: Any, inputs: Any) -> Watched:
    """Hold the gradients of a module under torch.compile to PyTorch's own."""
    module.train()
    watched = Watched(module)

    def gradients(call: Any) -> list[Any]:
        module.zero_grad()
        call(*inputs).square().sum().backward()
        return [parameter.grad.clone() for parameter in module.parameters()]

    for found, wanted in zip(gradients(watched), gradients(module), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()) + 1e-5)
    return watched
