"""The self-check for CUDA machines: the part of it that runs without one."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import loopwright
from loopwright.backends.c_family.artifact import Artifact, CompileError

PATH = Path(loopwright.__file__).resolve().parent / "benchmarks" / "gpu_selfcheck.py"


@pytest.fixture(scope="module")
def selfcheck() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_selfcheck", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_kernels_compile(selfcheck: ModuleType) -> None:
    for name, (body, code, _) in selfcheck.FAULTS.items():
        if code == "COMPILE_ERROR":
            with pytest.raises(CompileError, match="frobnicate"):
                selfcheck.build("90", body)
            continue
        artifact = Artifact.from_bytes(selfcheck.build("90", body), "cuda")
        assert artifact.binary[:4] == b"\x7fELF", name
    launch = selfcheck.Launch("first", (4, 1, 1), (256, 1, 1), (0, 1), 0, 0, False)
    assert selfcheck._artifact(80, selfcheck.TWO_LAUNCHES, (1024,), [launch]).architecture == "sm_80"


def test_each_check_is_a_line(selfcheck: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise selfcheck.Missing("no such package")

    def failing() -> None:
        raise AssertionError("3 us instead of 2")

    verdicts = [
        selfcheck._tried(name, check) for name, check in (("a", lambda: "fine"), ("b", missing), ("c", failing))
    ]
    assert verdicts == ["PASS", "SKIP", "FAIL"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("PASS a: fine [") and lines[2].startswith("FAIL c: AssertionError: 3 us instead of 2 [")


def test_without_a_device_it_is_a_sentence(selfcheck: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    if "pycuda" in sys.modules or importlib.util.find_spec("pycuda"):
        pytest.skip("pycuda is here")
    assert selfcheck.main([]) == 2
    assert "pycuda" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.slow
def test_all_of_it_on_a_device(selfcheck: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PATH.parent))
    assert selfcheck.main([]) == 0
