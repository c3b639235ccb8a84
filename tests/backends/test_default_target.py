"""`cuda` and `opencl` on a machine without such a device: all but running works, for a default that is named once."""

from collections.abc import Iterator

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends import targets
from loopwright.backends.cuda import driver
from loopwright.backends.cuda.driver import MissingCuda
from loopwright.backends.opencl import platform
from loopwright.backends.opencl.platform import MissingOpenCl
from loopwright.te import Tensor

MISSING = {
    "cuda": MissingCuda("no GPU here to run on: nothing; name it: 'cuda model=h200'"),
    "opencl": MissingOpenCl("no device here to run OpenCL on: nothing; name it: 'opencl model=mali-g610'"),
}


def layer() -> list[Tensor]:
    a, b = te.placeholder((64, 64), name="a"), te.placeholder((64, 64), name="b")
    return [a, b, topi.matmul(a, b)]


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing(kind: str) -> None:
        raise MISSING[kind]

    monkeypatch.setattr(driver, "pycuda_driver", lambda: missing("cuda"))
    monkeypatch.setattr(platform, "devices", lambda: missing("opencl"))
    targets._warn_of_default.cache_clear()
    yield
    targets._warn_of_default.cache_clear()


@pytest.mark.usefixtures("no_device")
@pytest.mark.parametrize(("kind", "model"), [("cuda", "t4"), ("opencl", "mali-t860")])
def test_all_but_running_works(kind: str, model: str) -> None:
    """It was an error as soon as the task was made."""
    said = rf"^'{kind}' is taken for '{kind} model={model}', to compile only: no .* here to run .*name it"
    with pytest.warns(targets.TargetWarning, match=said) as warned:
        task = lw.SearchTask(layer, target=kind)
        assert lw.SearchTask(layer, target=f"{kind} cores=3").target == task.target.with_cores(3)
    assert len(warned) == 1
    assert task.target == lw.resolve_target(f"{kind} model={model}")
    assert "a[i, k] * b[k, j]" in str(task.compute_dag)
    assert sum(sketch.size for sketch in task.sketches) > 10**6
    kernel = task.build()
    assert "__global__" in kernel.source or "__kernel" in kernel.source
    with pytest.raises(type(MISSING[kind]), match="name it") as refused:
        kernel(np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32))
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("no_device")
def test_a_named_gpu_needs_no_word(recwarn: pytest.WarningsRecorder) -> None:
    lw.SearchTask(layer, target="cuda model=h200").build()
    assert not recwarn.list


def test_what_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    driver.pycuda_driver.cache_clear()
    monkeypatch.setattr(driver.importlib.util, "find_spec", lambda name: None)
    said = r"^no GPU here to run on: .* needs pycuda, .*: pip install .*; to compile .* name it: 'cuda model=h200'$"
    with pytest.raises(MissingCuda, match=said):
        driver.target_of_device()


def test_a_driver_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "device_count", lambda: 0)
    with pytest.raises(
        MissingCuda, match=r"^no GPU here to run on: CUDA's driver finds no device; .* 'cuda model=h200'$"
    ):
        driver.target_of_device()
