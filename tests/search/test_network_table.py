"""The table of a network's tuning, as lines and on a terminal."""

import io
import re
from dataclasses import replace

import pytest
from fake_tasks import MEASURE, Failing, fake_task, quietly

import loopwright as lw
from loopwright.search.tune.displays import make_network_progress
from loopwright.search.tune.table import NetworkLines, NetworkTable

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_the_table_and_the_lines() -> None:
    out = io.StringIO()
    tasks = [fake_task(0), replace(fake_task(1, 0.1), flop=0.0)]
    lw.TaskScheduler(tasks, [1, 3]).tune(quietly(24), MEASURE, progress=NetworkLines(out))
    text = out.getvalue()
    assert text.startswith("2 tasks, 24 trials\ntask 0 t0: ")
    *_, table = text.split("|   ID | Latency (ms) | Speed (GFLOPS) | Trials | Weight | Share | Task | Errors |\n")
    first = r"\|    0 \| +[\d.]+ \| +\d+\.\d\d \| +(8|16) \|      1 \| +(\d+)% \| t0   \|        \|\n"
    second = r"\|    1 \| +[\d.]+ \| +- \| +(8|16) \|      3 \| +(\d+)% \| t1   \|        \|\n"
    shares = re.search(first + second, table)
    assert shares is not None and int(shares[1]) + int(shares[3]) == 24
    assert int(shares[2]) + int(shares[4]) in (99, 100, 101)
    assert re.search(r"\ntask 0 t0: run-off of \d schedules: [\d.]+ GFLOP/s", text)
    assert re.search(r"Estimated total latency: [\d.]+ ms  Trials: 24  Used time: \d+ s  Next ID: -\n$", table)
    assert "Estimated total latency: -  Trials: 8  Used time: " in text and re.search(r"Next ID: 1  ETA: \d+ s\n", text)


def test_a_terminal_gets_a_live_table() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    live = make_network_progress(terminal)
    assert isinstance(live, NetworkTable) and isinstance(make_network_progress(io.StringIO()), NetworkLines)
    result = lw.TaskScheduler([fake_task(0), fake_task(1, space=Failing())]).tune(quietly(16), MEASURE, progress=live)
    live.note("said afterwards")
    text = terminal.getvalue()
    assert "[ Task Scheduler ]  16/16 trials: done" in text and "7 RUNTIME_ERROR" in text
    assert result.state.summary.partition("  Used")[0] in text and text.endswith("said afterwards\n")


class Terminal(io.StringIO):
    """Lines of a terminal of a height: what left it at the top, and what is on it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines, self.row = [""], 0

    def isatty(self) -> bool:
        return True

    def emulate(self, height: int) -> list[str]:
        """Every line that the output leaves: the cursor cannot go above the top of the screen."""
        for part in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if part == "\n":
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif part.endswith("A") and part[0] == "\x1b":
                self.row = max(self.row - 1, len(self.lines) - height, 0)
            elif part == "\x1b[2K":
                self.lines[self.row] = ""
            elif part[0] not in "\x1b\r":
                self.lines[self.row] += part
        return [line.rstrip() for line in self.lines]


@pytest.mark.parametrize("height", [14, 60])
def test_a_table_longer_than_the_terminal_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, height: int) -> None:
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    tasks = [fake_task(number) for number in range(10)]
    lw.TaskScheduler(tasks, [1] * 10).tune(quietly(80), MEASURE, progress=NetworkTable(terminal))
    lines = terminal.emulate(height)
    assert sum("[ Task Scheduler ]" in line for line in lines) == 1
    at = next(number for number, line in enumerate(lines) if "[ Task Scheduler ]" in line)
    assert lines[0] == "10 tasks, 80 trials"
    assert [line.split(":")[0] for line in lines[1:at] if ": run-off of " not in line] == [
        f"task {number} t{number}" for number in range(10)
    ]
    assert [line.split()[0] for line in lines[at:] if re.match(r" +\d+ ", line)] == [str(n) for n in range(10)]
    shown = terminal.getvalue()
    assert ("shown are tasks 0 to 4 of 10" in shown) == (height == 14)
