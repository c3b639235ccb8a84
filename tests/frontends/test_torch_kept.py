"""Networks of regions that are kept in the cache folder, and read by whoever compiles the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch import kept_networks, region  # noqa: E402
from loopwright.frontends.torch.backend import compiled_by  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.graph import compiler  # noqa: E402
from loopwright.storage.binary_cache import CacheWarning  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


@pytest.fixture(autouse=True)
def cache(own_cache: Path, nothing_compiled: None) -> Path:
    """The folder of networks that are kept, in which none is yet."""
    return own_cache / "networks"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the networks that are compiled from here on."""
    made: list[str] = []
    compile = compiler.compile

    def counted(net: Any, *given: Any, **options: Any) -> Any:
        made.append(net.name)
        return compile(net, *given, **{**options, "processes": 1})

    monkeypatch.setattr(compiler, "compile", counted)
    return made


def model(seed: int = 0) -> Any:
    """A model with a packed convolution, folded statistics, a transposed weight, and one that is read where it is."""
    torch.manual_seed(seed)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten()]
    made = torch.nn.Sequential(*layers, torch.nn.Linear(128, 5)).eval()
    made[4].weight = torch.nn.Parameter(made[4].weight.detach().t().contiguous().t())
    return made.to(memory_format=torch.channels_last)


def first_call(given: Any, x: Any, **options: Any) -> Any:
    """Compile as another process would, which knows nothing of the calls before, and hold a call to PyTorch's."""
    torch._dynamo.reset()
    with torch.no_grad():
        found = torch.compile(given, backend="loopwright", options=options)(x)
        torch.testing.assert_close(found, given(x), rtol=1e-4, atol=1e-5)
    return found


IMAGE = torch.linspace(-1, 1, 108).reshape(1, 3, 6, 6)


def test_the_same_graph_and_values_are_read(compilations: list[str], cache: Path) -> None:
    found = first_call(model(), IMAGE)
    assert len(compilations) == 1 and len(list(cache.glob("*/*.bin"))) == 1
    assert torch.equal(first_call(model(), IMAGE), found)
    assert len(compilations) == 1
    first_call(model(), IMAGE * 2)
    assert len(compilations) == 1


def test_other_values_shapes_and_numbers_of_threads_are_compiled(compilations: list[str]) -> None:
    first_call(model(), IMAGE)
    first_call(model(1), IMAGE)
    first_call(model(), torch.cat([IMAGE, IMAGE]))
    first_call(model(), IMAGE, target="llvm cores=1 model=haswell")
    assert len(compilations) == 4


def test_parameters_that_are_written_are_seen(compilations: list[str]) -> None:
    given = model()
    first_call(given, IMAGE)
    compiled = torch.compile(given, backend="loopwright")
    with torch.no_grad():
        given[4].bias.fill_(7.0)
        torch.testing.assert_close(compiled(IMAGE), given(IMAGE), rtol=1e-4, atol=1e-5)
        given[4].bias.copy_(model()[4].bias)
        torch.testing.assert_close(compiled(IMAGE), given(IMAGE), rtol=1e-4, atol=1e-5)
    assert len(compilations) == 2  # the third time what was kept of the first is read


def test_parameters_that_no_schedule_packs_stay_pytorchs_memory(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    networks: list[Any] = []
    kept = region.kept
    monkeypatch.setattr(region, "kept", lambda *given: networks.append(kept(*given)) or networks[-1])

    class Words(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(50, 16)

        def forward(self, tokens: Any) -> Any:
            return torch.tanh(self.words(tokens)) * 2

    torch.manual_seed(0)
    given, tokens = Words(), torch.arange(6)
    first_call(given, tokens)
    first_call(given, tokens)
    assert len(compilations) == 1
    addresses = [array.ctypes.data for array in networks[1].package.constants]
    assert networks[0] is None and given.words.weight.data_ptr() in addresses


def test_a_damaged_network_is_made_again(compilations: list[str], cache: Path) -> None:
    first_call(model(), IMAGE)
    (file,) = cache.glob("*/*.bin")
    file.write_bytes(file.read_bytes()[:-9] + b"\x01" * 9)
    with pytest.warns(CacheWarning, match="dropped a damaged"):
        first_call(model(), IMAGE)
    assert len(compilations) == 2


def test_networks_with_many_constants_are_not_kept(
    compilations: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_networks, "_MOST_CONSTANT_BYTES", 100)
    first_call(model(), IMAGE)
    assert compilations and not list(cache.glob("*/*.bin"))


def test_nothing_is_kept_beside_histories_large_parameters_and_checks(
    compilations: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lw.apply_history_best([]):
        first_call(model(), IMAGE)
    first_call(model(), IMAGE, check=True)
    monkeypatch.setattr(kept_networks, "_MOST_PARAMETER_BYTES", 100)
    first_call(model(), IMAGE)
    assert len(compilations) == 3 and not cache.exists()


def test_what_is_kept_can_be_exported(tmp_path: Path) -> None:
    graphs: list[Any] = []
    given = model()
    for _ in range(2):
        torch._dynamo.reset()
        with torch.no_grad():
            torch.compile(given, backend=compiled_by(TorchOptions(), graphs.append))(IMAGE)
    network = graphs[1].regions[0].compiled
    assert network.export_library(tmp_path / "layers.o").is_file()
    (port,) = network.plan.inputs
    assert network(np.ones(port.shape, np.float32)).shape == (1, 5)
