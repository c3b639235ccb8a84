"""Tuning of models under torch.compile: before the first call, or beside, with records kept by model."""

import contextlib
import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from patience import wait_until  # noqa: E402
from torch_watched import Watched, close  # noqa: E402

from loopwright.backends.targets import resolve_target  # noqa: E402
from loopwright.frontends.torch import background  # noqa: E402
from loopwright.frontends.torch.devices import Cpu  # noqa: E402
from loopwright.frontends.torch.model_key import graph_key  # noqa: E402
from loopwright.graph import tuning_process  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_cache", "nothing_compiled")
nn: Any = torch.nn


class TunedHere:
    """Stands for a process that tunes: the same work, in the thread that waits for it, and news of it once."""

    def __init__(self, job: tuning_process.TuningJob) -> None:
        self.job, self.told = job, False

    def wait_for_news(self, wanted: Callable[[], bool]) -> bool:
        if self.told or not wanted():
            return False
        self.told = True
        tuning_process.tune(self.job, Deaf())  # type: ignore[arg-type]
        return True

    def close(self) -> None:
        pass


class Deaf:
    def sendall(self, data: bytes) -> None:
        pass


def perceptron() -> Any:
    return nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8)).eval()


def key_of(module: Any, x: Any) -> str:
    watched = Watched(module)
    with torch.no_grad():
        watched(x)
    (region,) = watched.regions
    return graph_key(region.part.form.rows, "llvm")


@pytest.mark.usefixtures("quick_measuring")
def test_kernels_change_between_calls_and_the_next_model_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "TuningProcess", TunedHere)
    monkeypatch.setattr(background, "TRIALS", 2)
    module, x = perceptron(), torch.randn(4, 32)
    with torch.no_grad():
        wanted = module(x)
        watched = Watched(module, tune="background")
        close(watched(x), wanted)
        (region,) = watched.regions

        def call_until_tuned(_: int) -> int:
            calls = 0
            with torch.no_grad():
                while region.statistics.compilations < 2:
                    close(watched(x), wanted)
                    calls += 1
            return calls

        with ThreadPoolExecutor(2) as pool:
            assert min(pool.map(call_until_tuned, range(2))) > 1
        assert wait_until(lambda: region.compiled is not None and all(k.tuned for k in region.compiled.kernels))
        close(watched(x), wanted)
        module[0].weight.mul_(2)
        close(watched(x), module(x))
        torch._dynamo.reset()
        other = perceptron()
        again = Watched(other)
        close(again(x), other(x))
    compiled = again.regions[0].compiled
    assert compiled is not None and all(kernel.tuned for kernel in compiled.kernels), "by the key of the graph"


@pytest.mark.usefixtures("quick_measuring")
def test_seconds_of_tuning_are_kept_by_model_or_in_a_file(tmp_path: Path, own_cache: Path) -> None:
    module, x, file = perceptron(), torch.randn(4, 32), tmp_path / "mine.jsonl"
    folder = own_cache / "records"
    with torch.no_grad():
        Watched(module, tune=0.1, records=file)(x)
        assert file.is_file() and not folder.exists()
        torch._dynamo.reset()
        watched = Watched(module, tune=0.1)
        watched(x)
    (region,) = watched.regions
    target = resolve_target(Cpu().target(None))
    assert [str(path) for path in folder.glob("*.jsonl")] == [region.records(target)]


@pytest.mark.slow
def test_a_process_tunes_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "TRIALS", 2)
    module, x = perceptron(), torch.randn(4, 32)
    watched = Watched(module, tune="background")
    with torch.no_grad():
        close(watched(x), module(x))
        (region,) = watched.regions
        assert wait_until(lambda: region.compiled is not None and all(k.tuned for k in region.compiled.kernels))
        close(watched(x), module(x))


def test_models_that_are_gone_are_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(background, "TuningProcess", started.append)

    class Gone:
        def renew(self) -> None:
            raise AssertionError

    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting.put((weakref.ref(Gone()), None))
    waiting.put(None)
    with contextlib.suppress(TypeError):
        background._serve(waiting)
    assert not started


def test_a_model_without_a_home_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwright.frontends.torch.model_key.cache_folder", lambda name: None)
    module, x = perceptron(), torch.randn(4, 32)
    with torch.no_grad(), pytest.warns(UserWarning, match="keeps records in the cache folder, and this user has none"):
        close(Watched(module, tune="background")(x), module(x))


def test_keys_are_of_graphs_and_not_of_values_or_names() -> None:
    x, key = torch.randn(4, 32), key_of(perceptron(), torch.randn(4, 32))

    class Renamed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(32, 32), nn.Linear(32, 8)

        def forward(self, given: Any) -> Any:
            return self.other(torch.relu(self.one(given)))

    assert key_of(perceptron(), x) == key and key_of(Renamed(), x) == key
    gelu = [key_of(nn.Sequential(nn.Linear(32, 8), nn.GELU(how)), x) for how in ("none", "tanh")]
    others = {key_of(perceptron(), x[:2]), key_of(perceptron().double(), x.double()), *gelu, key}
    assert len(others) == 5


def test_a_child_forked_while_kernels_change_is_not_held_up() -> None:
    watched, x = Watched(perceptron()), torch.randn(4, 32)
    with torch.no_grad():
        watched(x)
    (region,) = watched.regions
    begun, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with region._lock:
            begun.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        with region._lock:
            os._exit(7)
    assert wait_until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
    ended.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
