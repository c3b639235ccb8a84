"""benchmarks/template_winograd.py tunes every way of a layer, checks and tabulates it; without a device it compiles."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from gpu_programs import opencl_device

pytestmark = pytest.mark.usefixtures("quick_measuring")

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "template_winograd.py"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("template_winograd", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "EXTENTS", {8: 6})
    monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.chdir(tmp_path)
    return module


@pytest.mark.slow
def test_a_table_of_all_ways_is_written(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    opencl_device()
    options = ["--target", "opencl", "--channels", "8", "--trials", "1", "--searches", "sketches"]
    monkeypatch.setattr(sys, "argv", ["template_winograd.py", *options])
    benchmark.main()
    head, _, row = Path("winograd-opencl.md").read_text().splitlines()[4:]
    assert head.split(" | ")[1:4] == ["sketches direct", "sketches F(2x2)", "sketches F(4x4)"]
    assert row.startswith("| 8x6x6 | ") and all(float(cell) > 0 for cell in row.split(" | ")[1:4])


@pytest.mark.slow(1.2)
def test_without_a_device_every_way_compiles(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--target", "cuda model=h200", "--channels", "8", "--compile-only", "--searches", "template"]
    monkeypatch.setattr(sys, "argv", ["template_winograd.py", *options])
    benchmark.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"8 template {way}" for way in ("direct", "F(2x2)", "F(4x4)")]
