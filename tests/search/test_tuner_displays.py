"""Displays of a search: lines, and a bar in a terminal."""

import io
import re
import time

import pytest
from doubling_task import MEASURE, doubling
from fake_space import FakeSpace

from loopwright.search.tune import display
from loopwright.search.tune.displays import make_progress
from loopwright.search.tune.loop import TuningOptions, tune
from loopwright.search.tune.progress import LiveBar, ProgressLines, TuningState

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_lines_tell_how_it_goes() -> None:
    shown = io.StringIO()
    task = doubling(FakeSpace(failing=0.2), flop=1e9)
    tune(task, TuningOptions(num_measure_trials=40, progress=ProgressLines(shown, every=10)), MEASURE)
    lines = shown.getvalue().splitlines()
    assert lines[0] == "doubling: 40 trials"
    (failure,) = [line for line in lines if line.startswith("first failure, trial ")]
    assert failure.endswith("RUNTIME_ERROR: RuntimeError: launch failed")
    lines.remove(failure)
    assert lines[1].startswith("doubling 1/40: best 500.0 GFLOP/s (2 ms), last 500.0 GFLOP/s (2 ms), errors none, ")
    assert lines[-1].startswith("doubling 40/40: best ") and "RUNTIME_ERROR" in lines[-1]
    assert sum(line.startswith("run-off of ") for line in lines) == 1
    lines = [line for line in lines if not line.startswith("run-off of ")]
    assert all("(search " in line and ", build " in line and ", run " in line for line in lines[1:])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_drawing_takes_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand changes at once are a few drawings; a new phase, and what was left out, is shown all the same."""
    clock, drawn = [0.0], []

    def table(number: int) -> str:
        clock[0] += 0.02
        drawn.append(number)
        return f"trial of {'all' if number == 10_003 else 'some'}"

    monkeypatch.setattr(display.time, "perf_counter", lambda: clock[0])
    terminal = Terminal()
    screen = display.Screen(terminal)
    screen.start()
    for number in range(10_000):
        clock[0] += 1e-4
        screen.draw("measuring", lambda number=number: table(number))  # type: ignore[misc]
    assert drawn[0] == 0 and len(drawn) < 10 and clock[0] < 1.2
    screen.draw("run-off", lambda: table(10_000))
    screen.draw("run-off", lambda: table(10_001))
    assert drawn[-1] == 10_000
    clock[0] += 0.5
    screen.draw("run-off", lambda: table(10_002))
    screen.draw("run-off", lambda: table(10_003))
    assert drawn[-1] == 10_002
    screen.stop()
    assert drawn[-1] == 10_003 and terminal.getvalue().count("trial of all") == 1


@pytest.mark.parametrize("columns", [60, 200])
def test_a_terminal_gets_a_bar_that_its_width_does_not_break(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    shown = Terminal()
    progress = make_progress(shown)
    assert isinstance(progress, LiveBar) and isinstance(make_progress(io.StringIO()), ProgressLines)
    tune(doubling(FakeSpace(failing=0.7), flop=1e9), TuningOptions(num_measure_trials=12, progress=progress), MEASURE)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    for words in (
        "doubling: measuring, round 1",
        "12/12",
        " left",
        "RUNTIME_ERROR",
        "untuned",
        "search ",
        "best by trial",
    ):
        assert words in text
    drawn = text[text.rindex("doubling: ") :].splitlines()
    assert max(map(len, drawn)) <= columns and len(drawn) in (8, 9), drawn


def test_the_time_left_is_that_of_trials_still_to_be_made() -> None:
    state = TuningState("task", total=40, started_s=time.monotonic() - 10, begun_at=20, done=20)
    assert state.left_s is None
    state.done = 30
    assert state.left_s == pytest.approx(10, rel=0.05)
