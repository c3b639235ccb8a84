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


def hold_returned_views(device: str) -> None:
    """Views that a function returns share memory with what they are of, as in PyTorch."""

    def function(x: Any) -> Any:
        y = torch.relu(x) * 2
        wide = y.view(2, 2, 3)
        return y, wide, wide.sum(0)

    y, wide, total = Watched(function)(torch.ones(4, 3, device=device))
    assert wide.data_ptr() == y.data_ptr() and wide.shape == (2, 2, 3)
    y.zero_()
    assert not wide.any() and (total == 4).all()


def hold_results_of_no_input(device: str) -> None:
    """Results that depend on no input are new memory in each call, so that a caller may write into them."""
    module = torch.nn.Linear(3, 4).eval().to(device)
    watched = Watched(lambda: (module.weight * 2 + 1, torch.arange(3, device=device) * 2 + 1))
    with torch.no_grad():
        for _ in range(2):
            weight, places = watched()
            close(weight, module.weight * 2 + 1)
            close(places, torch.tensor([1, 3, 5], device=device))
            weight.zero_()
            places.zero_()


def hold_parameters_written_in_place(device: str) -> Region:
    """Parameters and running statistics that are written between calls are seen in the next one."""
    nn = torch.nn
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval().to(device)
    watched, x = Watched(module), torch.randn(1, 3, 6, 6, device=device)
    with torch.no_grad():
        for _ in range(5):
            close(watched(x), module(x))
            module[0].weight.mul_(1.5)
            module[1].running_mean.add_(0.25)
    (region,) = compiled_regions(watched)
    assert region.statistics.compilations == 4, "after two updates, parameters are inputs"
    return region
