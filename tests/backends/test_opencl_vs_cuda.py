"""benchmarks/opencl_vs_cuda.py replays schedules on an OpenCL device; without CUDA its column stands alone."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from gpu_programs import opencl_device

import loopwright as lw
from loopwright import te
from loopwright.backends.opencl import platform

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SCHEDULE = (
    'lw-lower-te-to-loop,lw-bind{block="y" loop="i" thread="blockIdx.x"},'
    'lw-bind{block="y" loop="j" thread="threadIdx.x"}'
)


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = importlib.util.spec_from_file_location("opencl_vs_cuda", BENCHMARKS / "opencl_vs_cuda.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "opencl_vs_cuda", module)
    spec.loader.exec_module(module)
    return module


def doubled() -> list[te.Tensor]:
    x = te.placeholder((6, 32), name="x")
    return [x, te.compute((6, 32), lambda i, j: x[i, j] * 2.0, name="y")]


def test_a_schedule_is_replayed_checked_and_timed(benchmark: ModuleType) -> None:
    opencl_device()
    row = benchmark.compare("doubled", doubled, SCHEDULE, benchmark.opencl_index(), 2)
    assert isinstance(row.opencl, float) and 0 < row.opencl < 1
    if row.cuda == "no device":
        assert row.ratio() is None
        assert benchmark.row_text(row) == f"| doubled | no device | {row.opencl * 1e6:.1f} |  |  |"


def test_a_wrong_or_illegal_schedule_is_a_cell_of_the_table(
    benchmark: ModuleType,
) -> None:
    opencl_device()
    row = benchmark.compare("doubled", doubled, 'lw-bind{block="z" loop="i" thread="blockIdx.x"}', 0, 1)
    assert isinstance(row.opencl, str) and row.opencl.startswith("ScheduleError: ") and "'z'" in row.opencl
    task = lw.SearchTask(doubled, target="opencl")
    task.reference.expected[0][2, 3] += 1
    executable = benchmark.load_opencl(0, str(lw.SearchTask(doubled, target="opencl model=pocl").module), SCHEDULE)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 192"):
        benchmark.timed(executable, task.reference, benchmark.kernel_time, 1)


def test_ratios(benchmark: ModuleType) -> None:
    launch_s = benchmark.launch_of(benchmark.Row("one element", 1e-6, 3e-6))
    assert launch_s == pytest.approx(2e-6)
    assert benchmark.launch_of(benchmark.Row("one element", "no device", 3e-6)) == 0
    assert benchmark.row_text(benchmark.Row("a", 1e-5, 1.2e-5), launch_s) == "| a | 10.0 | 12.0 | 1.20x | 1.00x |"
    two = benchmark.Row("a", 1e-5, 1.7e-5, 2)
    assert benchmark.row_text(two, launch_s) == "| a | 10.0 | 17.0 | 1.70x (above) | 1.30x (above) |"


def test_the_table_must_have_the_case(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"matmul_1024": SCHEDULE}))
    monkeypatch.setattr("sys.argv", ["opencl_vs_cuda", "--schedules", str(table), "--cases", "seed_conv"])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "has no schedule for seed_conv; it has matmul_1024" in capsys.readouterr().err


class _Platform:
    name = "Portable Computing Language"


class _Device:
    name = "cpu"
    platform = _Platform()
    type = 0


@pytest.mark.parametrize("is_here", [True, False])
def test_nvidias_driver_without_a_file_that_names_it(is_here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        assert name == "libnvidia-opencl.so.1"
        if not is_here:
            raise OSError(name)

    monkeypatch.setattr(platform.ctypes, "CDLL", load)
    monkeypatch.setattr(platform, "devices", lambda: (_Device(),))
    with pytest.raises(platform.MissingOpenCl) as caught:
        platform.device_at(3)
    assert ("OCL_ICD_VENDORS" in str(caught.value)) == is_here and "\n" not in str(caught.value)
    assert platform.unregistered_driver(["NVIDIA CUDA"]) is None
