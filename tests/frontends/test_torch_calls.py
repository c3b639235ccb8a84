"""Calls of compiled models: what lies between PyTorch and the kernels, and what stays of a call."""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from patience import PATIENCE_S, wait_until  # noqa: E402
from torch_models import model  # noqa: E402
from torch_watched import Watched, close  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.errors import TorchImportError  # noqa: E402
from loopwright.frontends.torch.region import Region  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


def python_functions_called(call: Any) -> set[str]:
    """The code that runs in a call, as `file:function`."""
    found: set[str] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            found.add(f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_graphs_that_need_no_wrapper_are_called_without_one() -> None:
    module, inputs = model("mlp")
    watched = Watched(module)
    with torch.no_grad():
        watched(*inputs)
        assert "runtime_wrappers.py:runtime_wrapper" not in python_functions_called(lambda: watched(*inputs))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mul_(2).relu() + 1,
        lambda x: (x.view(-1), torch.relu(x) * 2 + 1),
        lambda x: (x, torch.relu(x) * 2 + 1),
        lambda x: (lambda y: (y, y.view(-1)))(torch.relu(x) * 2 + 1),
    ],
    ids=["written", "view", "input", "views_of_one"],
)
def test_graphs_that_write_or_alias_keep_their_wrapper(function: Any) -> None:
    ours, theirs = torch.ones(3, 4), torch.ones(3, 4)
    watched = Watched(function)
    for _ in range(2):
        close(watched(ours), function(theirs))
        close(ours, theirs)


def test_kernels_of_a_region_are_one_native_call() -> None:
    module, inputs = model("mlp")
    watched = Watched(module)
    with torch.no_grad():
        watched(*inputs)
    (region,) = watched.regions
    assert region.compiled is not None and len(region.compiled.plan.steps) > 1
    assert region._bound is not None
    frame: Any = region._bound.taken_frame()
    runs = []
    frame._sequence.run = lambda: runs.append(1)
    frame.run([0] * len(region.compiled.plan.inputs + region.compiled.plan.outputs))
    assert runs == [1]


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_thousand_calls_keep_nothing() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    watched, x = Watched(module), torch.randn(1 << 15, 8)
    with torch.no_grad():
        for _ in range(50):
            watched(x)
        gc.collect()
        objects, held = len(gc.get_objects()), resident_bytes()
        for _ in range(1000):
            watched(x)
        gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert resident_bytes() - held < 100 * x.nbytes, "a tenth of what the results take"


def test_replaced_parameters_are_forgotten() -> None:
    module = nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
    watched, x = Watched(module), torch.randn(2, 16)
    networks = []
    with torch.no_grad():
        for _ in range(50):
            module[0].weight = nn.Parameter(torch.randn(16, 16))
            close(watched(x), module(x))
            networks.append(weakref.ref(watched.regions[0].compiled))
    gc.collect()
    (region,) = watched.regions
    assert region.statistics.compilations == 50
    assert len(region._of_modules) == 1 and sum(ref() is not None for ref in networks) == 1


def test_deleted_models_are_forgotten() -> None:
    watched = Watched(nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval())
    with torch.no_grad():
        watched(torch.randn(2, 16))
    (region,) = map(weakref.ref, watched.regions)
    del watched
    torch._dynamo.reset()
    gc.collect()
    assert region() is None


def test_recompiling_keeps_nothing_of_ours() -> None:
    def ours() -> int:
        torch._dynamo.reset()
        gc.collect()
        return sum(str(type(each).__module__).startswith("loopwright") for each in gc.get_objects())

    def compiled_anew() -> None:
        torch._dynamo.reset()
        module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(2, 8)
        with torch.no_grad():
            close(torch.compile(module, backend="loopwright")(x), module(x))

    for _ in range(3):
        compiled_anew()
    held = ours()
    for _ in range(10):
        compiled_anew()
    assert ours() <= held


def test_a_first_call_in_two_threads_compiles_once() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    fast, x = lw.torch.optimize(module, (torch.randn(2, 8),)), torch.randn(2, 8)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(fast, [x] * 8):
            close(found, module(x))
    assert fast.graph.regions[0].statistics.compilations == 1


def test_without_wait_pytorch_runs_until_kernels_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    may_compile, compiled = Event(), Region._compiled

    def later(region: Any, *arguments: Any) -> Any:
        assert may_compile.wait(PATIENCE_S)
        return compiled(region, *arguments)

    monkeypatch.setattr(Region, "_compiled", later)
    module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(2, 8)
    fast = lw.torch.optimize(module, (x,), options={"wait": False})
    (region,) = fast.graph.regions
    for _ in range(3):
        close(fast(x), module(x))
    assert region.compiled is None
    may_compile.set()
    assert wait_until(lambda: region.compiled is not None)
    close(fast(x), module(x))
    with torch.no_grad():
        module[0].weight.mul_(2)
    close(fast(x), module(x))
    assert wait_until(lambda: region.statistics.compilations == 2 and not region._thread.is_alive())
    runs = python_functions_called(lambda: close(fast(x), module(x)))
    assert "region.py:_run" in runs and "region.py:_meanwhile" not in runs


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning", "ignore:fused_0 runs in PyTorch")
@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_without_wait_what_fails_is_tried_once(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    tries: list[None] = []

    def fail(*_: Any) -> None:
        tries.append(None)
        raise error("no")

    monkeypatch.setattr(Region, "_compiled", fail)
    module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(2, 8)
    fast = lw.torch.optimize(module, (x,), options={"wait": False})
    (region,) = fast.graph.regions
    for _ in range(3):
        close(fast(x), module(x))
        assert wait_until(lambda: region.failure is not None and not region._thread.is_alive())
    assert len(tries) == 1


def test_grad_modes_in_turn() -> None:
    module, inputs = model("mlp")
    watched = Watched(module)
    modes = [torch.no_grad, torch.inference_mode, torch.enable_grad]
    for mode in (*modes, *reversed(modes)):
        with mode():
            found = watched(*inputs)
            close(found, module(*inputs))
            assert found.requires_grad == (mode is torch.enable_grad)
            assert found.is_inference() == (mode is torch.inference_mode)


def test_a_model_that_failed_runs_again() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.fails = nn.Linear(8, 8), True

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.first(x))
            torch._dynamo.graph_break()
            if self.fails:
                raise RuntimeError("the user's")
            return torch.tanh(self.first(y)) + 1

    module, x = Model().eval(), torch.randn(2, 8)
    watched = Watched(module)
    with torch.no_grad():
        for _ in range(3):
            with pytest.raises(RuntimeError, match="the user's"):
                watched(x)
        module.fails = False
        close(watched(x), module(x))


def test_wrong_input_leaves_an_optimized_module_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    fast, x = lw.torch.optimize(module, (torch.randn(2, 8),)), torch.randn(2, 8)
    for wrong in (x[:1], x.double(), None):
        with pytest.raises(ValueError, match="the module is compiled for"):
            fast(wrong)
    close(fast(x), module(x))


def _load(module: Any) -> None:
    module.load_state_dict({name: value + 1 for name, value in module.state_dict().items()})


def _assign(module: Any) -> None:
    module.load_state_dict({name: value + 1 for name, value in module.state_dict().items()}, assign=True)


def _step(module: Any, **options: Any) -> None:
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam(module.parameters(), 0.5, **options).step()


def _swap(module: Any) -> None:
    module[0].weight.data = torch.randn(8, 8)


def _write(module: Any) -> None:
    with torch.inference_mode():
        module[0].weight.detach().mul_(2)


@pytest.mark.parametrize(
    "write",
    [_load, _assign, _step, lambda module: _step(module, fused=True), _swap, _write],
    ids=["load", "assign", "step", "fused_step", "swap", "inference_mode"],
)
def test_ways_to_write_parameters_are_seen(write: Any) -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    watched, x = Watched(module), torch.randn(2, 8)
    with torch.no_grad():
        close(watched(x), module(x))
    before = module(x)
    write(module)
    assert not torch.equal(before, module(x))
    with torch.no_grad():
        close(watched(x), module(x))


def test_the_collector_gets_its_objects_back() -> None:
    module, inputs = model("mlp")
    gc.unfreeze()
    with torch.no_grad():
        Watched(module)(*inputs)
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        torch._dynamo.reset()
        with torch.no_grad():
            Watched(module)(*inputs)
        assert 0 < gc.get_freeze_count() <= before, "those of somebody else stay as they are"
    finally:
        gc.unfreeze()


def test_an_example_may_be_one_tensor() -> None:
    """A tuple of a tensor would be its samples."""
    module, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    assert torch.allclose(lw.torch.optimize(module, x)(x), module(x), atol=1e-5)


def test_examples_that_are_no_inputs_are_refused() -> None:
    with pytest.raises(TypeError, match="optimize takes a tuple of example inputs, got int"):
        lw.torch.optimize(None, 3)  # type: ignore[arg-type]


def test_a_missing_program_is_a_sentence() -> None:
    with pytest.raises(TorchImportError, match=r"program 'no\.pt2' cannot be imported: No such file or directory"):
        lw.from_exported("no.pt2")
