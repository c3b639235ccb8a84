"""Folding of what a graph computes from numbers alone, and reads at places that stay PyTorch's as they are dear."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S

torch: Any = pytest.importorskip("torch")

from torch_programs import Wrapped  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.backend import compiled_by  # noqa: E402
from loopwright.frontends.torch.fx import name_of  # noqa: E402
from loopwright.frontends.torch.graph import CompiledGraph  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.frontends.torch.recurrent_operator import whole_layers  # noqa: E402
from loopwright.frontends.torch.whole_operators import whole_operators  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional


def compiled(function: Any, *inputs: Any, kernels: bool = True) -> tuple[Any, list[CompiledGraph]]:
    torch._dynamo.reset()
    graphs: list[CompiledGraph] = []
    call = torch.compile(function, backend=compiled_by(TorchOptions(), graphs.append, kernels))
    with torch.no_grad():
        call(*inputs)
    return call, graphs


def operators(graphs: list[CompiledGraph]) -> list[str]:
    """The operators of all regions, and those outside."""
    inside = [node for graph in graphs for region in graph.regions for node in region.graph.graph.nodes]
    outside = [node for graph in graphs for node in graph.module.graph.nodes]
    return [name_of(node) for node in (*inside, *outside) if node.op == "call_function"]


def test_places_and_masks_are_constants_of_a_graph() -> None:
    def function(x: Any) -> Any:
        mask = torch.ones(5, 5).tril().bool() & (torch.arange(5)[:, None] % 2 == 0)
        return (x @ x.T).masked_fill(mask, 0.0).relu()

    x = torch.randn(5, 3)
    call, graphs = compiled(function, x)
    torch.testing.assert_close(call(x), function(x))
    assert not {"arange.start_step", "tril.default", "ge.Tensor", "remainder.Scalar"} & set(operators(graphs))
    assert all(region.failure is None for graph in graphs for region in graph.regions)


def test_a_returned_constant_is_the_callers_own() -> None:
    def function(x: Any) -> tuple[Any, Any]:
        places = torch.arange(3) * 2
        return x.relu() + places, places.view(3, 1)

    call, _ = compiled(function, torch.randn(2, 3))
    call(torch.randn(2, 3))[1].zero_()
    assert call(torch.randn(2, 3))[1].flatten().tolist() == [0, 2, 4]


def test_random_operators_are_not_folded() -> None:
    call, _ = compiled(lambda x: (x + 1).relu() + torch.rand(1000), torch.zeros(1000))
    first, second = call(torch.zeros(1000)), call(torch.zeros(1000))
    assert (first != second).any()


def test_large_constants_stay_operators() -> None:
    _, graphs = compiled(lambda x: (x + torch.ones(2000, 2000)).relu(), torch.zeros(2000), kernels=False)
    assert "full.default" in operators(graphs)


def test_buffers_of_an_exported_program_are_known() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("places", torch.arange(0, 8, 2)[None])

        def forward(self, x: Any) -> Any:
            return x[:, self.places[0] + 1] * 2

    x = torch.randn(2, 8)
    net = lw.from_exported(torch.export.export(Biased(), (x,)))
    assert "map_formula" in str(net.module) and "take" not in str(net.module)
    torch.testing.assert_close(torch.from_numpy(net.evaluate(x=x.numpy())[0]), Biased()(x))


def test_an_embedding_of_many_words_is_one_kernel_with_what_is_behind_it() -> None:
    model, tokens = nn.Sequential(nn.Embedding(5000, 64), nn.LayerNorm(64), nn.Linear(64, 8)), torch.arange(40)
    call, graphs = compiled(model, tokens)
    assert not [node for graph in graphs for node in graph.stays]
    with torch.no_grad():
        torch.testing.assert_close(call(tokens), model(tokens), rtol=1e-4, atol=1e-5)
    net = lw.from_exported(torch.export.export(model, (tokens,)))
    assert "take" in str(net.module)


def test_a_table_read_at_known_places_is_folded_however_large() -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(400, 12))
            self.register_buffer("places", torch.randint(0, 400, (64 * 64,)))

        def forward(self, x: Any) -> Any:
            return x + self.table[self.places].view(64, 64, 12).permute(2, 0, 1)

    model, x = Table(), torch.randn(12, 64, 64)
    call, graphs = compiled(model, x)
    assert not [node for graph in graphs for node in graph.stays]
    with torch.no_grad():
        torch.testing.assert_close(call(x), model(x))


@pytest.mark.parametrize("options", [{"num_layers": 2}, {"bidirectional": True, "batch_first": True}, {"bias": False}])
def test_an_lstm_is_taken_where_dynamo_traces_it(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer, x = nn.LSTM(6, 5, **options).eval(), torch.randn(4, 3, 6)
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        call, graphs = compiled(layer, x)
        names = operators(graphs)
        assert "loopwright::recurrent_layer.default" in names and "mm.default" not in names
        assert not [node for graph in graphs for node in graph.stays if "recurrent" in str(node)]
        torch.testing.assert_close(call(x), layer(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_pytorch_runs_a_traced_recurrent_layer(kind: Any) -> None:
    """Where its region does not compile: by the layer itself, also of several layers, directions and given states."""
    torch.manual_seed(0)
    layer, x, h = kind(6, 5, 2, bidirectional=True).eval(), torch.randn(4, 3, 6), torch.randn(4, 3, 5)
    state = (h, torch.randn(4, 3, 5)) if kind is nn.LSTM else h
    name = {nn.LSTM: "lstm", nn.GRU: "gru", nn.RNN: "rnn_tanh"}[kind]
    whole = whole_layers()[getattr(torch.ops.aten, name).input]
    with torch.no_grad():
        found = whole(x, state, list(layer.parameters()), True, 2, 0.0, False, True, False)
        wanted, last = layer(x, state)
        for got, want in zip(found, (wanted, *(last if kind is nn.LSTM else (last,))), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_an_lstm_whose_states_are_projected_is_taken_apart() -> None:
    torch.manual_seed(0)
    layer, x = nn.LSTM(6, 5, proj_size=3).eval(), torch.randn(4, 3, 6)
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        call, graphs = compiled(layer, x)
        assert "loopwright::recurrent_layer.default" not in operators(graphs)
        torch.testing.assert_close(call(x), layer(x), rtol=1e-4, atol=1e-5)


def test_writes_of_no_elements_are_left_out() -> None:
    """Pieces of a mask of shifted windows, along an axis that is not shifted."""

    def function(x: Any, shift: int = 0) -> Any:
        mask = x.clone()
        for k, piece in enumerate(
            (slice(0, -3), slice(-3, -shift if shift else 0), slice(-shift if shift else 9, None))
        ):
            mask[piece] = k
        return mask * 2 - x

    x = torch.randn(6, 4)
    call, graphs = compiled(function, x)
    assert "slice_scatter.default" in operators(graphs) and not [n for graph in graphs for n in graph.stays]
    torch.testing.assert_close(call(x), function(x))
    net = lw.from_exported(torch.export.export(Wrapped(function), (x,)))
    np.testing.assert_allclose(net.evaluate(**{net.input_names[0]: x.numpy()})[0], function(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", "nearest-exact"])
@pytest.mark.few(2)
def test_resizing_that_pytorch_takes_apart_is_traced_whole_for_inference(mode: str) -> None:
    """AOTAutograd makes of it elements at places that it computes; of graphs with gradients it still does."""
    x, w = torch.randn(1, 3, 6, 7), torch.randn(4, 3, 1, 1)

    def function(x: Any) -> Any:
        return F.conv2d(F.interpolate(x, size=(9, 11), mode=mode), w).relu()

    call, graphs = compiled(function, x)
    torch.testing.assert_close(call(x), function(x), rtol=1e-4, atol=1e-5)
    (region,) = graphs[0].regions
    assert region.compiled is not None and region.failure is None
    assert any("upsample" in name for name in operators(graphs))
    x.requires_grad_()
    (wanted,) = torch.autograd.grad(function(x).sum(), x)
    (found,) = torch.autograd.grad(call(x).sum(), x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_functions_for_resizing_come_back_when_the_last_that_traces_is_done() -> None:
    """Also of several threads, where the first to begin is the first to end, and of one that fails."""
    operator = torch.ops.aten.upsample_bilinear2d.vec
    before = dict(operator.py_kernels)

    def away() -> set[Any]:
        return {key for key, function in before.items() if operator.py_kernels.get(key) is not function}

    with whole_operators(), whole_operators():
        removed = away()
    assert removed and operator.py_kernels == before
    began, ended = threading.Event(), threading.Event()

    def other() -> None:
        with pytest.raises(RuntimeError, match="in the middle"), whole_operators():
            began.set()
            assert ended.wait(PATIENCE_S)
            assert removed <= away()
            raise RuntimeError("in the middle")

    with ThreadPoolExecutor(1) as threads:
        with whole_operators():
            second = threads.submit(other)
            assert began.wait(PATIENCE_S)
        ended.set()
        second.result()
    assert operator.py_kernels == before


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("asked", [{"scale_factor": 2, "recompute_scale_factor": True}, {"scale_factor": 1.5}, {}])
@pytest.mark.few(4)
def test_open_extents_are_resized(mode: str, asked: dict[str, Any]) -> None:
    """The size that a factor is recomputed to is an open one, too."""
    x, wide = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 7, 5)

    def function(x: Any) -> Any:
        size = {} if asked else {"size": (x.shape[2] * 2 + 1, x.shape[3])}
        return F.interpolate(x + 1, mode=mode, **size, **asked).relu() * 2

    torch._dynamo.reset()
    call = torch.compile(function, backend="loopwright", dynamic=True)
    with torch.no_grad():
        for each in (x, wide):
            torch.testing.assert_close(call(each), function(each), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("extents", "asked"),
    [
        *(((20, 33), {"mode": m, "scale_factor": f}) for m in ("nearest", "nearest-exact") for f in (1.7, 0.77)),
        ((6, 14), {"mode": "nearest", "size": (74, 46)}),
        ((6, 14), {"mode": "nearest-exact", "size": (37, 23)}),
    ],
)
@pytest.mark.few(2)
def test_nearest_elements_are_those_that_pytorch_finds(extents: tuple[int, int], asked: dict[str, Any]) -> None:
    """Single precision decides of places between two elements: 8.5 / 1.7 is 5, 37 * 6 / 74 less than 3."""
    x = torch.randn(1, 2, *extents)

    def function(x: Any) -> Any:
        return F.interpolate(x, **asked) * 2

    call, _ = compiled(function, x)
    torch.testing.assert_close(call(x), function(x))


def test_windows_of_known_places_are_no_search() -> None:
    net = lw.from_exported(torch.export.export(Wrapped(lambda x: F.unfold(x, 3)), (torch.randn(1, 2, 20, 20),)))
    assert "map_formula" in str(net.module) and '"take"' not in str(net.module)
