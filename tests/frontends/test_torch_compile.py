"""The backend of torch.compile: results, memory, shapes and gradients as PyTorch has them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch_models import NAMES, model  # noqa: E402
from torch_watched import Watched, close, compiled_regions, with_gradients  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.backends.targets import resolve_target  # noqa: E402
from loopwright.dialects.target import parse_target  # noqa: E402
from loopwright.frontends.torch import partition, recurrent_layers  # noqa: E402
from loopwright.frontends.torch.backend import compiled_by  # noqa: E402
from loopwright.frontends.torch.decompositions import decompositions, export_decompositions  # noqa: E402
from loopwright.frontends.torch.discovery import converters  # noqa: E402
from loopwright.frontends.torch.graph import CompiledGraph  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.frontends.torch.region import RegionWarning  # noqa: E402
from loopwright.frontends.torch.versions import Versions  # noqa: E402
from loopwright.graph.builders import BuildError  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


@pytest.mark.few(3)
@pytest.mark.parametrize("name", NAMES)
def test_model_is_one_region(name: str) -> None:
    module, inputs = model(name)
    watched = Watched(module)
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))
        close(watched(*inputs), module(*inputs))
    (region,) = watched.regions
    assert region.failure is None and region.statistics.compilations == 1
    assert all(name.startswith("view") for name in watched.stays)


def test_backend_is_found_by_its_name() -> None:
    assert "loopwright" in torch._dynamo.list_backends()
    compiled = torch.compile(lambda x: torch.softmax(x * 2, -1), backend="loopwright", options={"versions": 2})
    x = torch.randn(3, 4)
    close(compiled(x), torch.softmax(x * 2, -1))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tuned": 1}, "has no option 'tuned'; it has target, records, tune, freeze, versions, buckets, check"),
        ({"target": "opencl"}, "for targets of kind llvm or cuda, got target 'opencl'"),
        ({"tune": "beside"}, "option tune is seconds or 'background', got 'beside'"),
        ({"tune": -1.0}, "option tune is seconds or 'background', got -1.0"),
        ({"buckets": {0: (8, 1)}}, "option buckets is extents of at least 1 in increasing order"),
        ({"versions": 0}, "option versions is a number of at least 1, got 0"),
    ],
)
def test_wrong_options_are_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TorchOptions.of(options)


def test_unsupported_operators_stay_between_maximal_regions() -> None:
    def function(x: Any, w: Any) -> Any:
        y = torch.relu(x @ w + 1)
        return torch.tanh(torch.lgamma(y + 1) @ w) * 2

    x, w = torch.randn(4, 8), torch.randn(8, 8)
    watched = Watched(function)
    close(watched(x, w), function(x, w))
    assert len(watched.regions) == 2 and watched.stays == ["lgamma"]
    report = lw.torch.explain(function, x, w)
    assert [len(graph.regions) for graph in report.graphs] == [2]
    assert report.flops_share == 1.0
    assert report.stays == {("lgamma.default", "operator lgamma.default is not supported"): 1}
    assert str(report).splitlines() == [
        "1 graph: 7 of 8 operators in 2 regions, 100.0% of the floating-point operations",
        "  stays PyTorch's: 1 x lgamma.default: operator lgamma.default is not supported",
    ]


def test_explanation_counts_what_pytorch_computes() -> None:
    def function(x: Any) -> Any:
        return torch.relu(x @ x + 1), x.half() @ x.half()

    report = lw.torch.explain(function, torch.randn(8, 8))
    assert report.flops_share == 0.5
    assert (
        "mm.default",
        "products of matrices of float16 stay PyTorch's, for want of matrix units that schedules use",
    ) in report.stays


def test_explanation_names_operators_as_they_were_traced() -> None:
    report = lw.torch.explain(lambda x: (x @ x + 1).view(2, -1), torch.randn(8, 8))
    assert report.stays == {("view.default", "a view that PyTorch makes of a result"): 1}


def test_features_of_images_replace_embeddings_in_one_region() -> None:
    """As models of images and text have it; the mask is one value a row, and counted by rows."""

    def function(tokens: Any, table: Any, features: Any) -> Any:
        embedded = torch.nn.functional.embedding(tokens, table) * 2
        return embedded.masked_scatter((tokens == 9).unsqueeze(-1).expand_as(embedded), features.relu()).sin()

    tokens = torch.tensor([[1, 9, 9, 2, 3], [9, 4, 5, 9, 9]])
    table, features = torch.randn(10, 6), torch.randn(1, 5, 6)
    report = lw.torch.explain(function, tokens, table, features)
    assert not report.stays and len(report.graphs[0].regions) == 1
    gm = make_fx(function, decomposition_table=dict(decompositions()))(tokens, table, features)
    assert [node.meta["val"].shape for node in gm.graph.nodes if "cumsum" in str(node.target)] == [(10,)]
    compiled = torch.compile(function, backend="loopwright")
    for given in (tokens, tokens.flip(0), torch.full_like(tokens, 3)):
        close(compiled(given, table, features), function(given, table, features))


def test_explanation_names_graph_breaks() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x) + 1
        torch._dynamo.graph_break()
        return torch.relu(y - 2) * 3

    report = lw.torch.explain(function, torch.randn(3))
    assert len(report.graphs) == 2 and sum(report.breaks.values()) == 1
    assert "graph break: 1 x" in str(report)


def test_explanation_of_what_torch_compile_does_not_take() -> None:
    eager = torch._dynamo.disable(torch.tanh)
    report = lw.torch.explain(lambda x: eager(x), torch.randn(3, 2, 4))
    assert str(report).startswith("torch.compile takes no graph out of the model, which runs in PyTorch")


def test_operators_of_one_form_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To see what can be: another type, another shape, and memory in another order are other forms."""
    seen: list[str] = []
    refusal = partition.refusal
    monkeypatch.setattr(partition, "refusal", lambda node, *others: seen.append(node.name) or refusal(node, *others))

    def function(x: Any) -> Any:
        y = torch.relu(torch.relu(torch.relu(x) * 2) * 2) * 3
        return torch.relu(y.t()) + torch.relu(y[1:]).sum() + torch.relu(y.double()).sum()

    x = torch.randn(4, 4)
    report = lw.torch.explain(function, x)
    assert not report.stays
    assert sum(name.startswith("relu") for name in seen) == 4
    assert sum(name.startswith("mul") for name in seen) == 2
    close(torch.compile(function, backend="loopwright")(x), function(x))


def test_composite_operators_are_taken_apart_by_tracing() -> None:
    """PyTorch's table of their decompositions, which takes long to fill, changes nothing."""
    module, inputs = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (torch.randn(2, 5, 8),)

    def function(x: Any) -> Any:
        images = nn.functional.interpolate(module(x)[None], scale_factor=2, mode="bilinear")
        return nn.functional.pad(nn.functional.normalize(images, dim=-1), (1, 1, 1, 1), mode="reflect").flatten(1)

    operators = []
    for table in (decompositions(), export_decompositions()):
        with torch.no_grad():
            gm = make_fx(function, decomposition_table=dict(table))(*inputs)
        operators.append([str(node.target) for node in gm.graph.nodes])
    assert len(decompositions()) < len(export_decompositions()) and operators[0] == operators[1]


def test_random_operators_are_pytorchs() -> None:
    function = lambda x: nn.functional.dropout(torch.relu(x) + 1, 0.5) * 2  # noqa: E731
    x = torch.randn(100)
    watched = Watched(function)
    torch.manual_seed(3)
    found = watched(x)
    assert 20 < (found == 0).sum() < 80
    assert "rand" in " ".join(watched.stays) or "dropout" in " ".join(watched.stays)


def test_tensors_of_other_devices_stay_pytorchs() -> None:
    def function(x: Any) -> Any:
        return torch.relu(x.to("meta") * 2) + torch.arange(4, device="meta")

    report = lw.torch.explain(function, torch.ones(3, 4))
    assert report.graphs[0].regions == ()
    assert {why for _, why in report.stays} == {"tensors on meta stay PyTorch's"}


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
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    watched, x = Watched(module), torch.randn(1, 3, 6, 6)
    with torch.no_grad():
        for _ in range(5):
            close(watched(x), module(x))
            module[0].weight.mul_(1.5)
            module[1].running_mean.add_(0.25)
    (region,) = watched.regions
    assert region.statistics.compilations == 4, "after two updates, parameters are inputs"
    assert region.static == frozenset()


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
    def function(x: Any) -> Any:
        y = torch.relu(x) * 2
        wide = y.view(2, 2, 3)
        return y, wide, wide.sum(0)

    watched = Watched(function)
    y, wide, total = watched(torch.ones(4, 3))
    assert wide.data_ptr() == y.data_ptr() and wide.shape == (2, 2, 3)
    y.zero_()
    assert not wide.any() and (total == 4).all()


def test_results_of_no_input_are_new_in_each_call() -> None:
    module = nn.Linear(3, 4).eval()
    watched = Watched(lambda: (module.weight * 2 + 1, torch.arange(3) * 2 + 1))
    with torch.no_grad():
        for _ in range(2):
            weight, places = watched()
            close(weight, module.weight * 2 + 1)
            close(places, torch.tensor([1, 3, 5]))
            weight.zero_()
            places.zero_()


def test_inputs_that_are_written_are_written() -> None:
    def function(x: Any) -> Any:
        x.mul_(2).add_(1)
        return x.exp() + 1

    ours, theirs = torch.ones(3, 4), torch.ones(3, 4)
    close(Watched(function)(ours), function(theirs))
    close(ours, theirs)


def test_integer_and_boolean_tensors() -> None:
    def function(x: Any, mask: Any) -> Any:
        return torch.where(mask & (x > 2), x * 2, -x), (x % 3 == 0) | mask

    x, mask = torch.arange(12).view(3, 4), torch.arange(12).view(3, 4) % 2 == 0
    watched = Watched(function)
    close(watched(x, mask), function(x, mask))
    assert len(watched.regions) == 1


def test_shapes_have_a_version_each_up_to_a_bound() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU()).eval()
    watched = Watched(module, dynamic=True, versions=2)
    with torch.no_grad():
        for rows in (2, 3, 4, 5, 3):
            x = torch.randn(rows, 6)
            close(watched(x), module(x))
    assert len(watched.graphs) == 2


@pytest.mark.parametrize("buckets", [{}, {0: (8, 16)}])
def test_shapes_beyond_the_bound_are_not_traced(
    buckets: dict[int, tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces: list[None] = []
    traced = Versions._traced

    def counted(*given: Any) -> Any:
        traces.append(None)
        return traced(*given)

    monkeypatch.setattr(Versions, "_traced", counted)
    watched = Watched(lambda x: torch.softmax(x * 2, 0) + 1, dynamic=True, versions=2, buckets=buckets)
    with torch.no_grad():
        for rows in (2, 3, 4, 5, 4, 5):
            x = torch.randn(rows, 6)
            close(watched(x), torch.softmax(x * 2, 0) + 1)
        before = len(traces)
        for rows in (4, 5, 9):
            watched(torch.randn(rows, 6))
    assert len(watched.graphs) == 2 and len(traces) == before


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["gpt", "conv1d", "mlp"])
def test_gradients_are_those_of_pytorch(name: str) -> None:
    module, inputs = model(name)
    watched = with_gradients(module, inputs)
    assert {graph.kind for graph in watched.graphs} == {"forward", "backward"}
    assert all(graph.regions for graph in watched.graphs)


class Tagger(nn.Module):
    """A recurrent layer between others."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.first, self.body, self.head = nn.Linear(3, 4), kind(4, 5, bidirectional=True), nn.Linear(10, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(torch.relu(self.first(x)))[0]).log_softmax(-1)


@pytest.mark.few(2)
@pytest.mark.parametrize(("kind", "most"), [(nn.RNN, 512), (nn.GRU, 5), (nn.LSTM, 512), (nn.LSTM, 5), (nn.GRU, 512)])
def test_recurrent_layers_are_unrolled_and_long_ones_stay(
    kind: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent_layers, "MOST_CELLS", most)
    module, x = Tagger(kind).eval(), torch.randn(3, 2, 3)
    watched = Watched(module)
    with torch.no_grad():
        close(watched(x), module(x))
    assert len(watched.regions) == len(watched.graphs) == (1 if most > 6 else 2) and not watched.stays


@pytest.mark.slow(1.2)
def test_layers_of_packed_sequences_and_of_open_lengths_stay() -> None:
    layer, rows = nn.LSTM(3, 4, batch_first=True), torch.randn(3, 5, 3)

    def packed(x: Any) -> Any:
        given = nn.utils.rnn.pack_padded_sequence(x * 2, torch.tensor([5, 3, 1]), batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(layer(given)[0], batch_first=True)[0] * 2

    with torch.no_grad():
        close(Watched(packed)(rows), packed(rows))
        watched = Watched(lambda x: torch.tanh(layer(x * 2)[0] * 3))
        for steps in (5, 4):
            close(watched(rows[:, :steps]), torch.tanh(layer(rows[:, :steps] * 2)[0] * 3))
    assert watched.regions


def test_recurrent_layers_are_traced_where_the_backend_is_asked_for_by_its_name() -> None:
    with torch._dynamo.config.patch(allow_rnn=False):
        torch._dynamo.backends.registry._COMPILER_FNS.pop("loopwright", None)
        torch.compile(nn.GRU(3, 4), backend="loopwright")
        assert torch._dynamo.config.allow_rnn


@pytest.mark.parametrize(("kind", "gates"), [(nn.LSTMCell, 4), (nn.GRUCell, 3)])
def test_cells_of_cuda_devices_are_taken_apart(kind: Any, gates: int) -> None:
    """On CUDA devices PyTorch has an operator for what is behind a cell's products, with their biases."""
    layer, x, state = kind(3, 5), torch.randn(2, 3), torch.randn(2, 5)
    name = "_thnn_fused_lstm_cell" if gates == 4 else "_thnn_fused_gru_cell"
    taken_apart = decompositions()[getattr(torch.ops.aten, name).default]
    products, biases = (x @ layer.weight_ih.t(), state @ layer.weight_hh.t()), (layer.bias_ih, layer.bias_hh)
    made = taken_apart(*products, state, *biases)
    wanted = layer(x, (state, state)) if gates == 4 else [layer(x, state)]
    close(list(made[: len(wanted)]), list(wanted))
    assert getattr(torch.ops.aten, name).default not in decompositions(True)


def test_gradients_of_an_lstm_that_dynamo_traces() -> None:
    """The data of the first layer needs no gradient, and PyTorch would take an operator for inference there."""

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.LSTM(4, 5, 2, bidirectional=True), nn.Linear(10, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x)[0][-1])

    watched = with_gradients(Last(), (torch.randn(3, 2, 4),))
    assert {graph.kind for graph in watched.graphs} == {"forward", "backward"}
    assert torch._C._get_mkldnn_enabled() and not [name for name in watched.stays if "rnn" in name]


def test_training_and_evaluation_in_turn() -> None:
    module = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU())
    watched, x = Watched(module), torch.randn(4, 6)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(3):
        module.train()
        optimizer.zero_grad()
        watched(x).sum().backward()
        optimizer.step()
        module.eval()
        with torch.no_grad():
            close(watched(x), module(x))


def test_inference_mode() -> None:
    module, inputs = model("mlp")
    watched = Watched(module)
    with torch.inference_mode():
        close(watched(*inputs), module(*inputs))


def test_autocast_falls_back_where_no_instruction_multiplies_its_type() -> None:
    module, inputs = model("mlp")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found, wanted = Watched(module)(*inputs), module(*inputs)
        report = lw.torch.explain(module, *inputs, options={"target": "llvm model=haswell"})
    torch.testing.assert_close(found, wanted, rtol=5e-2, atol=5e-2)
    assert (
        "addmm.default",
        "products of matrices of bfloat16 stay PyTorch's, for want of matrix units that schedules use",
    ) in report.stays


def test_products_of_bfloat16_are_ours_on_cpus_with_instructions_for_them() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 5)).bfloat16().eval()
    x = torch.randn(2, 3, 8, 8).bfloat16()
    with torch.no_grad():
        report = lw.torch.explain(module, x, options={"target": "llvm model=sapphirerapids"})
        assert len(report.graphs[0].regions) == 1 and report.flops_share == 1 and not report.stays
        torch.testing.assert_close(Watched(module)(x), module(x), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("layer", [nn.ConvTranspose2d(8, 8, 3), nn.Conv3d(8, 8, (1, 3, 3))], ids=["transposed", "3-D"])
def test_convolutions_of_bfloat16_that_pytorch_is_faster_at_stay_its(layer: nn.Module) -> None:
    x = torch.randn(1, 8, 1, 8, 8) if isinstance(layer, nn.Conv3d) else torch.randn(1, 8, 8, 8)
    module = nn.Sequential(layer, nn.ReLU()).bfloat16().eval()
    with torch.no_grad():
        report = lw.torch.explain(module, x.bfloat16(), options={"target": "llvm model=sapphirerapids"})
    reason = "convolutions that are transposed or over three axes of bfloat16 stay PyTorch's"
    assert any(name == "convolution.default" and why.startswith(reason) for name, why in report.stays)


def test_convolutions_of_float16_are_ours_on_cpus() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 5)).half().eval()
    x = torch.randn(2, 3, 8, 8).half()
    with torch.no_grad():
        report = lw.torch.explain(module, x)
        assert {name for name, why in report.stays if "a view" not in why} == {"addmm.default"}
        torch.testing.assert_close(Watched(module)(x), module(x), rtol=1e-2, atol=1e-2)


class Norms(nn.Module):
    """A norm by stored statistics, and one over channels with a scale alone, of each image."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(16) if kind == "batch" else nn.LayerNorm(16, bias=False)
        for name, values in self.norm.state_dict().items():
            if values.ndim:
                values.uniform_(0.3, 2) if "mean" not in name else values.normal_()

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(x) if isinstance(self.norm, nn.BatchNorm2d) else self.norm(x.transpose(1, 3)))


@pytest.mark.parametrize("kind", ["batch", "layer"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_of_halves_are_rounded_once(kind: str, dtype: Any) -> None:
    torch.manual_seed(0)
    module = Norms(kind).eval().to(dtype)
    x = torch.randn(4, 16, 20, 20).to(dtype)
    watched = Watched(module)
    with torch.no_grad():
        found, own = watched(x), module(x)
        exact = module.double()(x.double())
    assert len(watched.regions) == 1 and not watched.stays
    assert (found - exact).abs().mean() < 1.1 * (own - exact).abs().mean()


def test_exceptions_of_a_model_pass_through() -> None:
    def function(x: Any) -> Any:
        if x.shape[0] > 2:
            raise KeyError("too long")
        return x.relu() + 1

    watched = Watched(function)
    with pytest.raises(KeyError, match="too long"):
        watched(torch.ones(3))
    close(watched(torch.ones(2)), torch.full((2,), 2.0))


def test_threads_share_a_compiled_model() -> None:
    module, inputs = model("mlp")
    watched = Watched(module)
    with torch.no_grad():
        wanted = watched(*inputs)

    def call(_: int) -> Any:
        with torch.no_grad():
            return watched(*inputs)

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(call, range(50)):
            close(found, wanted)
    bound = watched.regions[0]._bound
    assert bound is not None and len(bound.frames) <= 3, "memory for each thread that ran at once"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (BuildError("kernel k does not compile: no"), "kernel k does not compile: no"),
        (KeyError("k"), "a bug of loopwright, KeyError: 'k'"),
    ],
)
def test_region_that_does_not_compile_runs_in_pytorch(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, own_cache: Any
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("loopwright.graph.compiler.compile", fail)
    module, inputs = model("mlp")
    with torch.no_grad(), pytest.warns(RegionWarning, match=f"fused_0 runs in PyTorch: {sentence}"):
        watched = Watched(module)
        close(watched(*inputs), module(*inputs))
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))


def test_operators_whose_converter_has_a_bug_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(node: Any) -> Any:
        raise IndexError("no such axis")

    monkeypatch.setitem(converters(), "tanh.default", fail)
    why = "operator tanh.default is not converted: a bug of loopwright, IndexError: no such axis"
    report = lw.torch.explain(lambda x: torch.tanh(x * 2 + 1), torch.randn(3))
    assert report.stays == {("tanh.default", why): 1}


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


def test_checked_kernels() -> None:
    module, inputs = model("mlp")
    with torch.no_grad():
        close(Watched(module, check=True)(*inputs), module(*inputs))


@pytest.mark.slow
def test_tuning_before_the_first_call(tmp_path: Any, quick_measuring: None) -> None:
    module, inputs = model("mlp")
    records = tmp_path / "records.jsonl"
    watched = Watched(module, tune=5.0, records=records)
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))
    compiled = watched.regions[0].compiled
    assert compiled is not None and any(kernel.tuned for kernel in compiled.kernels)


def test_optimized_module() -> None:
    module, inputs = model("encoder")
    optimized = lw.torch.optimize(module, inputs)
    with torch.no_grad():
        close(optimized(*inputs), module(*inputs))
        module.layers[0].linear1.weight.mul_(2)
        close(optimized(*inputs), module(*inputs))
    with pytest.raises(ValueError, match=r"compiled for torch.float32\[2, 6, 32\], got torch.float32\[1, 6, 32\]"):
        optimized(inputs[0][:1])


def test_optimized_module_has_the_structure_of_results() -> None:
    class Named(nn.Module):
        def forward(self, x: Any, *, scale: Any) -> Any:
            return {"sum": x + scale, "parts": [x * scale, torch.relu(x)]}

    x, scale = torch.randn(3, 4), torch.randn(4)
    optimized = lw.torch.optimize(Named(), (x,), {"scale": scale})
    close(optimized(x, scale=scale), Named()(x, scale=scale))


def test_optimized_module_must_keep_no_state() -> None:
    with pytest.raises(ValueError, match=r"the module writes .*running_mean.*: torch.compile takes such modules"):
        lw.torch.optimize(nn.BatchNorm1d(3).train(), (torch.randn(4, 3),))


def test_the_front_end_loads_without_pytorch() -> None:
    program = "import sys, loopwright as lw; lw.torch.optimize; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "False"


def test_the_front_end_loads_without_the_compiler() -> None:
    """A process whose networks are kept never needs it, and it takes 1.1 s of CPU to load."""
    heavy = ("loopwright.te", "loopwright.topi", "loopwright.graph.network", "loopwright.passes.lower")
    program = (
        f"import sys, loopwright as lw; lw.torch.optimize; print(*(name for name in sys.modules if name in {heavy}))"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not run.stdout.strip()


def test_kernels_take_no_more_threads_than_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread for each of several processes, a second one of ours waits for a core at each kernel's end."""
    four, own = resolve_target("llvm cores=4"), resolve_target("llvm").cores
    monkeypatch.setattr("loopwright.frontends.torch.devices.resolve_target", lambda _: four)
    threads, (module, inputs) = torch.get_num_threads(), model("mlp")
    try:
        for asked, target, cores in ((1, None, 1), (3, None, 3), (8, None, own), (1, "llvm cores=2", 2)):
            torch.set_num_threads(asked)
            torch._dynamo.reset()
            watched = Watched(module, target=target)
            with torch.no_grad():
                close(watched(*inputs), module(*inputs))
            (region,) = compiled_regions(watched)
            assert region.compiled is not None
            assert parse_target(region.compiled.package.plan.target).cores == cores
    finally:
        torch.set_num_threads(threads)


def test_kernels_run_on_the_threads_of_pytorch() -> None:
    """There are no more threads than PyTorch has, and none of them is kept to a CPU."""
    program = """
import glob, torch, loopwright as lw
from loopwright.backends.llvm.runtime import openmp_of_torch

torch.set_num_threads(2)
x, w = torch.randn(1, 64, 64, 64), torch.randn(64, 64, 3, 3)
right = torch.nn.functional.conv2d(x, w, padding=1)
before = len(glob.glob("/proc/self/task/*"))
net = lw.Network()
net.output(net.conv2d(net.input("x", (1, 64, 64, 64)), net.input("w", (64, 64, 3, 3)), padding=1))
run = lw.compile(net, "llvm cores=2").executor()
print(openmp_of_torch() is None or len(glob.glob("/proc/self/task/*")) == before)
for _ in range(3):
    (found,) = run(x.numpy(), w.numpy())
    print(torch.allclose(torch.from_numpy(found), torch.nn.functional.conv2d(x, w, padding=1), atol=1e-3))
print(openmp_of_torch() is None or len(glob.glob("/proc/self/task/*")) == before)
print(len({l for p in glob.glob("/proc/self/task/*/status") for l in open(p) if l.startswith("Cpus_allowed:")}))
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split() == [*["True"] * 5, "1"]


def test_checks_of_values_are_said_to_be_pytorchs() -> None:
    def counted(x: Any) -> Any:
        return nn.functional.one_hot(x, 5).float().mean(0) * 2

    (name, why) = next(iter(lw.torch.explain(counted, torch.tensor([1, 4, 2])).stays))
    assert name == "_assert_async.msg" and why == "a check of values, which PyTorch makes"


def test_precision_of_products_is_an_option() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)).eval()
    x = torch.randn(32, 64)
    with torch.no_grad():
        got = torch.compile(model, backend="loopwright", options={"precision": "tf32"})(x)
        want = model(x)
    assert 0 < (got - want).abs().max() <= 4e-3 * want.abs().max()
    with pytest.raises(ValueError, match="precision is float16 or bfloat16 or tf32 or tf32x3"):
        TorchOptions.of({"precision": "int4"})
