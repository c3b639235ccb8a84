"""Timing on a clock of the tests' (probes, repeats, warming up, flushing), and how outputs are compared."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from loopwright.backends.arrays import CACHE_LINE_BYTES, PAGE_BYTES, place_in_page
from loopwright.search.measure.buffers import Buffers
from loopwright.search.measure.timing import TimingSettings, measure_times
from loopwright.search.measure.tolerance import Tolerance


class FakeClock:
    """Runs that take the given seconds each; the last one for ever after."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)
        self.numbers: list[int] = []

    def __call__(self, number: int) -> float:
        self.numbers.append(number)
        return number * (self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0])


def test_repeats_are_long_enough_even_after_a_cold_probe() -> None:
    run = FakeClock(0.1, 0.001)
    times, stopped = measure_times(run, TimingSettings(repeat=2, min_repeat_ms=50), None)
    assert times == pytest.approx([0.001, 0.001]) and not stopped
    assert run.numbers == [1, 1, 50, 50]


def test_a_slow_probe_gets_another_chance() -> None:
    assert measure_times(FakeClock(0.5, 0.001), TimingSettings(min_repeat_ms=0), 0.001)[1] is False
    assert measure_times(FakeClock(0.5, 0.4, 0.3), TimingSettings(), 0.1) == ([0.3], True)
    assert measure_times(FakeClock(*[3e-3] * 5, 1e-3), TimingSettings(min_repeat_ms=0), 1e-3)[1] is False
    assert measure_times(FakeClock(0.3), TimingSettings(stop_factor=None, min_repeat_ms=0), 0.1)[1] is False


def test_probes_of_short_kernels_are_long_enough_to_count() -> None:
    """A kernel of 4 us whose single runs take 10 us more is not slower than twice 3 us."""

    def run(number: int) -> float:
        return 4e-6 * number + 1e-5

    times, stopped = measure_times(run, TimingSettings(min_repeat_ms=10), 3e-6)
    assert not stopped and max(times) < 4.1e-6
    times, stopped = measure_times(run, TimingSettings(min_repeat_ms=10), 1e-6)
    assert stopped and times[0] == pytest.approx(4e-6, rel=0.05)


def test_warming_up_is_not_timed() -> None:
    run = FakeClock(0.01, 0.01, 0.001)
    times, _ = measure_times(run, TimingSettings(repeat=2, min_repeat_ms=10, warm_up_ms=50), None)
    assert times == pytest.approx([0.001, 0.001])
    assert run.numbers == [1, 5, 1, 10, 10]


@pytest.mark.parametrize("wrong", [{"repeat": 0}, {"number": 0}, {"stop_factor": 1.0}])
def test_impossible_timing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        TimingSettings(**wrong)


def test_flushing_precedes_every_run() -> None:
    calls = []
    run = FakeClock(0.001)
    settings = TimingSettings(number=3, repeat=2, min_repeat_ms=0, flush_bytes=1)
    times, _ = measure_times(run, settings, None, lambda: calls.append(len(run.numbers)))
    assert times == pytest.approx([0.001, 0.001])
    assert run.numbers == [1] * 7 and calls == list(range(7))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int8, np.bool_])
def test_poisoned_outputs_are_never_right(tmp_path: Path, dtype: npt.DTypeLike) -> None:
    expected = np.zeros((3, 5), dtype)
    np.save(tmp_path / "e.npy", expected)
    buffers = Buffers([], [str(tmp_path / "e.npy")], [Tolerance(1e-6, 1e-6)])
    buffers.poison()
    assert buffers.args[0].ctypes.data % 64 == 0
    assert "15 of 15" in str(buffers.wrong())
    buffers.args[0][...] = expected
    assert buffers.wrong() is None and buffers.memory_violation() is None


def test_infinite_and_undefined_results_are_compared_as_such(tmp_path: Path) -> None:
    expected = np.array([np.inf, -np.inf, np.nan, 1.0])
    np.save(tmp_path / "e.npy", expected)
    buffers = Buffers([], [str(tmp_path / "e.npy")], [Tolerance(0.1, 1e-3)])
    buffers.poison()
    assert buffers.wrong() is not None
    buffers.args[0][...] = [np.inf, -np.inf, np.nan, 1.05]
    assert buffers.wrong() is None
    buffers.args[0][...] = [5.0, -np.inf, np.nan, 1.05]
    assert "got 5.0, expected inf" in str(buffers.wrong())
    buffers.args[0][...] = [np.inf, np.inf, np.nan, 1.05]
    assert "1 of 4" in str(buffers.wrong()) and "got inf, expected -inf" in str(buffers.wrong())


def test_arguments_begin_at_places_of_a_page_that_differ(tmp_path: Path) -> None:
    arrays = {"data": (8, 28, 28, 8), "filters": (3, 3, 8), "result": (8, 28, 28, 8)}
    for name, shape in arrays.items():
        np.save(tmp_path / f"{name}.npy", np.zeros(shape, np.float32))
    paths = [str(tmp_path / f"{name}.npy") for name in arrays]
    data, filters, result = Buffers(paths[:2], paths[2:], [Tolerance(0.0, 0.0)]).args
    assert data.ctypes.data % PAGE_BYTES == place_in_page(0)
    assert result.ctypes.data % PAGE_BYTES == place_in_page(2)
    assert filters.nbytes <= PAGE_BYTES and filters.ctypes.data % CACHE_LINE_BYTES == 0
