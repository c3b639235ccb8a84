"""torch.compile by loopwright: gradients, recurrent layers, and modules in training and in evaluation."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch_models import model  # noqa: E402
from torch_watched import Watched, close, with_gradients  # noqa: E402

from loopwright.frontends.torch import recurrent_layers  # noqa: E402
from loopwright.frontends.torch.decompositions import decompositions  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


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
