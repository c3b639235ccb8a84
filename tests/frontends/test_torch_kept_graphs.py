"""Graphs that are kept by what Dynamo traced: PyTorch takes them apart once, and results are what they were."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch import recurrent_operator  # noqa: E402
from loopwright.frontends.torch.kept_graphs import KeptGraph  # noqa: E402
from loopwright.frontends.torch.operators import recurrent  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
F: Any = nn.functional


@pytest.fixture(autouse=True)
def folder(own_cache: Path, nothing_compiled: None) -> Path:
    """The folder of graphs that are kept, in which none is yet."""
    return own_cache / "graphs"


def traces() -> int:
    """The number of graphs that AOTAutograd was given so far."""
    return int(counters["aot_autograd"]["total"])


def traced(model: Callable[..., Any], *inputs: Any, **options: Any) -> int:
    """Compile as another process would, hold two calls to PyTorch's, and return how often a graph was traced."""
    torch._dynamo.reset()
    before = traces()
    with torch.no_grad():
        compiled = torch.compile(model, backend="loopwright", options=options)
        for _ in range(2):
            torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    return traces() - before


def perceptron(seed: int = 0, width: int = 8) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(inplace=True), nn.Linear(width, 5), nn.Softmax(-1)).eval()


class Mixed(nn.Module):
    """Two regions around an operator of PyTorch's, a folded mask, a view that is returned, and several results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        mask = torch.ones(6, 6, dtype=torch.bool).tril()
        y = (self.first(x) @ x.t()).masked_fill(~mask, -torch.inf).softmax(-1)
        z = torch.lgamma(y + 1)
        made = F.relu(self.second(z)) + mask.to(x.dtype)
        return made.t(), {"sum": made.sum(), "number": 3}


ROWS = torch.linspace(-1, 1, 36).reshape(6, 6)


@pytest.mark.parametrize("make", [perceptron, Mixed])
def test_a_graph_is_traced_once(make: Callable[[], Any], folder: Path) -> None:
    torch.manual_seed(0)
    model = make().eval()
    assert traced(model, ROWS) == 1 and len(list(folder.glob("*/*.bin"))) == 1
    assert traced(model, ROWS) == 0
    assert traced(model, ROWS * 3) == 0


def test_views_stay_views_of_one_result() -> None:
    torch.manual_seed(0)
    model = Mixed().eval()
    for _ in range(2):
        torch._dynamo.reset()
        with torch.no_grad():
            turned, _ = torch.compile(model, backend="loopwright")(ROWS)
        assert turned._base is not None and turned.stride() == (1, 6)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: F.gelu(x @ x) * 2.5,
        lambda x: F.gelu(x @ x, approximate="tanh") * 2,
        lambda x: F.silu(x @ x) * 2,
        lambda x: F.gelu(x @ x.t()) * 2,
        lambda x: (F.gelu(x @ x) * 2, x + 1),
    ],
)
def test_another_program_is_another_graph(other: Callable[[Any], Any]) -> None:
    def one(x: Any) -> Any:
        return F.gelu(x @ x) * 2

    assert traced(one, ROWS) == 1 and traced(one, ROWS) == 0
    assert traced(other, ROWS) == 1


def test_other_inputs_settings_and_options_are_other_graphs() -> None:
    model = perceptron()
    assert traced(model, ROWS) == 1
    assert traced(model, ROWS[:3]) == 1
    assert traced(model, ROWS.t()) == 1
    assert traced(model, ROWS, freeze=False) == 1
    assert traced(perceptron(width=12), ROWS) == 1
    torch.use_deterministic_algorithms(True)
    try:
        assert traced(model, ROWS) == 1
    finally:
        torch.use_deterministic_algorithms(False)
    assert traced(model, ROWS) == 0


def test_parameters_of_other_values_have_networks_of_their_own() -> None:
    assert traced(perceptron(), ROWS) == 1
    assert traced(perceptron(1), ROWS) == 1, "its network is not kept yet"
    assert traced(perceptron(1), ROWS) == 0


def test_written_parameters_have_the_part_traced_again() -> None:
    model = perceptron()
    assert traced(model, ROWS) == 1
    torch._dynamo.reset()
    before = traces()
    with torch.no_grad():
        compiled = torch.compile(model, backend="loopwright")
        compiled(ROWS)
        assert traces() == before
        for value in (2.0, 3.0, 4.0):
            model[0].weight.mul_(value)
            torch.testing.assert_close(compiled(ROWS), model(ROWS), rtol=1e-4, atol=1e-5)
    assert traces() == before + 1


def test_parts_are_traced_again_without_what_is_on_then() -> None:
    model = Mixed().eval()
    traced(model, ROWS)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="loopwright")
    with torch.no_grad():
        compiled(ROWS)
        model.first.weight.mul_(2)
        model.second.weight.mul_(2)
        with torch.autocast("cpu", enabled=False), torch.random.fork_rng():
            found = compiled(ROWS)
        torch.testing.assert_close(found, model(ROWS), rtol=1e-4, atol=1e-5)


def add_to_input(x: Any) -> Any:
    x.add_(1)
    return torch.relu(x @ x)


class Counting(nn.Module):
    """A module that counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return torch.relu(x @ x) * self.calls


def test_what_writes_or_returns_its_inputs_is_traced_each_time(folder: Path) -> None:
    for model in (add_to_input, Counting(), lambda x: (torch.relu(x @ x), x[0])):
        for _ in range(2):
            torch._dynamo.reset()
            given, wanted = ROWS.clone(), ROWS.clone()
            with torch.no_grad():
                found = torch.compile(model, backend="loopwright")(given)
                if isinstance(model, Counting):
                    model.calls.sub_(1)
                torch.testing.assert_close(found, model(wanted))
            assert torch.equal(given, wanted)
    assert not list(folder.glob("*/*.bin"))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def test_functions_of_others_are_not_kept(folder: Path) -> None:
    library = torch.library.Library("loopwright_kept_graphs", "FRAGMENT")
    library.define("scaled(Tensor x) -> Tensor")
    library.impl("scaled", lambda x: x * 2, "CompositeImplicitAutograd")

    def calls_one(x: Any) -> Any:
        return torch.relu(torch.ops.loopwright_kept_graphs.scaled(x @ x))

    assert traced(calls_one, ROWS) == 1 and traced(calls_one, ROWS) == 1
    assert traced(lambda x: torch.relu(Doubled.apply(x @ x)), ROWS) == 1
    assert not [file for file in folder.glob("*/*.bin") if b"scaled" in file.read_bytes()]


def test_gradients_and_open_shapes_are_traced_each_time(folder: Path) -> None:
    model = perceptron()
    for _ in range(2):
        torch._dynamo.reset()
        before = traces()
        torch.compile(model, backend="loopwright")(ROWS).sum().backward()
        assert traces() == before + 1
    with torch.no_grad():
        torch._dynamo.reset()
        torch.compile(model, backend="loopwright", dynamic=True)(ROWS[:4])
    assert not list(folder.glob("*/*.bin"))


def test_a_damaged_graph_is_traced_anew(folder: Path) -> None:
    model = perceptron()
    traced(model, ROWS)
    (file,) = folder.glob("*/*.bin")
    file.write_bytes(file.read_bytes()[:-9] + b"\x01" * 9)
    with pytest.warns(UserWarning, match="dropped a damaged"):
        assert traced(model, ROWS) == 1
    assert traced(model, ROWS) == 0


def test_networks_that_are_gone_have_the_graph_traced(folder: Path) -> None:
    model = perceptron()
    traced(model, ROWS)
    for file in (folder.parent / "networks").glob("*/*.bin"):
        file.unlink()
    assert traced(model, ROWS) == 1 and traced(model, ROWS) == 0


def test_kept_graphs_define_the_operator_of_recurrent_layers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of too many steps stay operators of a graph that `lw.torch.optimize` keeps, too."""
    monkeypatch.setattr(recurrent, "MOST_STEPS", 2)
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in ((15, 6), (15, 5), (15,), (15,))]

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList(weights)

        def forward(self, x: Any, h: Any) -> Any:
            return torch.gru(x, h, list(self.weights), True, 1, 0.0, False, False, False)

    layer, inputs = Layer().eval(), (torch.randn(3, 2, 6), torch.randn(1, 2, 5))
    with torch.no_grad():
        lw.torch.optimize(layer, inputs)
        assert len(list(folder.glob("*/*.bin"))) == 1
        for library in recurrent_operator._LIBRARIES:  # as another process begins
            library._destroy()
        recurrent_operator._LIBRARIES.clear()
        again = lw.torch.optimize(layer, inputs)
        assert type(again.graph) is KeptGraph
        for got, want in zip(again(*inputs), layer(*inputs), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
