"""torch.compile by loopwright: parameters, inputs and results lie where PyTorch has them; what is written is seen."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch_watched import (  # noqa: E402
    Watched,
    close,
    hold_parameters_written_in_place,
    hold_results_of_no_input,
    hold_returned_views,
    with_gradients,
)

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.backend import compiled_by  # noqa: E402
from loopwright.frontends.torch.graph import CompiledGraph  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.frontends.torch.region import RegionWarning  # noqa: E402
from loopwright.graph.builders import BuildError  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


def test_weights_are_not_copied() -> None:
    module = nn.Sequential(nn.Embedding(64, 48), nn.LayerNorm(48)).eval()
    watched = Watched(module)
    with torch.no_grad():
        watched(torch.arange(5))
    (region,) = watched.regions
    assert region.compiled is not None
    kept = {array.ctypes.data for array in region.compiled.package.constants}
    assert module[0].weight.data_ptr() in kept


def test_parameters_written_in_place_are_seen() -> None:
    assert hold_parameters_written_in_place("cpu").static == frozenset()


def test_parameters_that_are_replaced_are_seen() -> None:
    module = nn.Linear(8, 8).eval()
    watched, x = Watched(module), torch.randn(2, 8)
    with torch.no_grad():
        close(watched(x), module(x))
        module.weight.data = torch.randn(8, 8)
        close(watched(x), module(x))


def test_parameters_as_inputs() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    watched, x = Watched(module, freeze=False), torch.randn(1, 3, 6, 6)
    with torch.no_grad():
        close(watched(x), module(x))
        module[0].weight.mul_(2)
        close(watched(x), module(x))
    assert watched.regions[0].statistics.compilations == 1


def test_layers_of_one_class_keep_their_own_parameters() -> None:
    """One compiled function may serve several modules: which parameters it is called with is checked in each call."""
    graphs: list[CompiledGraph] = []

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.linear(x)) + x

    layers, backend = [Layer().eval() for _ in range(3)], compiled_by(TorchOptions(), graphs.append)
    for layer in layers:
        layer.compile(backend=backend)
    x = torch.randn(2, 8)
    with torch.no_grad():
        for _ in range(3):
            for layer in layers:
                close(layer(x), torch.relu(nn.functional.linear(x, layer.linear.weight, layer.linear.bias)) + x)
    assert sum(graph.regions[0].statistics.compilations for graph in graphs) == 3
    assert all(graph.regions[0].static for graph in graphs)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last),
        torch.randn(2, 8, 8, 3).permute(0, 3, 1, 2),
        torch.randn(2, 3, 8, 8).transpose(2, 3),
        torch.randn(1, 2, 3, 8, 8)[0],
    ],
    ids=["channels_last", "permuted", "transposed", "offset"],
)
def test_strided_inputs_are_read_where_they_are(x: Any) -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
    watched = Watched(module)
    with torch.no_grad():
        found, wanted = watched(x), module(x)
    close(found, wanted)
    assert found.stride() == wanted.stride()
    assert watched.regions[0].statistics.copied_inputs == 0


def test_input_with_gaps_is_copied() -> None:
    wide = torch.randn(4, 20)
    function = lambda x: torch.softmax(x * 2, -1)  # noqa: E731
    watched = Watched(function)
    close(watched(wide[:, ::2]), function(wide[:, ::2]))
    assert watched.regions[0].statistics.copied_inputs == 1


def test_returned_views_share_memory_as_in_pytorch() -> None:
    hold_returned_views("cpu")


def test_results_of_no_input_are_new_in_each_call() -> None:
    hold_results_of_no_input("cpu")


def test_inputs_that_are_written_are_written() -> None:
    def function(x: Any) -> Any:
        x.mul_(2).add_(1)
        return x.exp() + 1

    ours, theirs = torch.ones(3, 4), torch.ones(3, 4)
    close(Watched(function)(ours), function(theirs))
    close(ours, theirs)


def test_views_of_strides_that_tracing_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing gives normalised data the strides that it had; PyTorch makes it contiguous, and no view of it then."""

    def refused(*_: Any, **__: Any) -> Any:
        raise BuildError("the disk is full")

    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.last = nn.BatchNorm1d(6), nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            return self.last(self.norm(x.transpose(1, 2)).transpose(1, 2).reshape(10, 6)) * 2

    module, x = Patches(), torch.randn(2, 5, 6)
    assert lw.torch.explain(module, x).flops_share == 1
    with_gradients(module, (x,))
    module.eval()
    with torch.no_grad():
        assert lw.torch.explain(module, x).flops_share == 1
        monkeypatch.setattr("loopwright.graph.compiler.compile", refused)
        watched = Watched(module)
        with pytest.warns(RegionWarning):
            close(watched(x), module(x))


def test_a_graph_that_gives_a_parameter_other_memory_runs_in_pytorch() -> None:
    """As PixelCNN's masked convolutions do; AOTAutograd refuses such graphs."""

    class Masked(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            self.weight.data *= mask
            return super().forward(x)

    mask, module, x = torch.tensor([1.0, 0.0, 1.0]), Masked(3, 4), torch.randn(2, 3)
    compiled = torch.compile(module, backend="loopwright")
    with torch.no_grad(), pytest.warns(RegionWarning, match="it gives an input other memory"):
        close(compiled(x), torch.nn.functional.linear(x, module.weight * mask, module.bias))
    assert not module.weight[:, 1].any()
