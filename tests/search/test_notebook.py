"""Notebooks: what was found as HTML without a style sheet, short texts of the same, and a chart while tuning."""

import base64
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hostile_names import HOSTILE
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.markup import folding
from loopwright.search.records.file import ErrorCode, Record, Role
from loopwright.search.tune.display import SHARE
from loopwright.search.tune.displays import make_network_progress, make_progress
from loopwright.search.tune.notebook import NotebookChart, NotebookTable, running_notebook
from loopwright.search.tune.progress import ProgressLines, TuningState
from loopwright.search.tune.scheduler import NetworkResult
from loopwright.search.tune.state import SchedulerState, TaskRow, weighted_sum
from loopwright.search.tune.task_strategy import TaskHistory

pytestmark = pytest.mark.usefixtures("quick_measuring")
TARGET = "llvm cores=1"
ELEMENTS = {f"<{name}" for name in ("div", "p", "br", "progress", "table", "tr", "th", "td", "img")}


def product(n: int = 8) -> list[te.Tensor]:
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    return [a, b, topi.matmul(a, b)]


def record(number: int, time_s: float = 1e-3, text: str = "tiled", **changes: Any) -> Record:
    base = Record(
        workload_key='["conv", [1], "abc"]',
        workload_hash="abc",
        target="llvm",
        sketch=text,
        decisions=(1, number),
        schedule="lw-lower-te-to-loop",
        times_s=(time_s,),
        device=text,
        timestamp=float(number),
        flop=1e6,
    )
    return replace(base, **changes)


def searched(trials: int, name: str = "conv", text: str = "tiled") -> TuningState:
    state = TuningState(name, max(trials, 2), 1e6)
    for number in range(trials):
        state.count(record(number, 1e-3 / (number + 1), text))
    return state


def result(name: str = "conv", text: str = "tiled") -> lw.TuningResult:
    state = searched(3, name, text)
    state.count(record(3, text=text, times_s=(), error=ErrorCode.COMPILE_ERROR, message=text))
    assert state.best is not None
    return lw.TuningResult(replace(state.best, role=Role.WINNER), None, state.trials, state)


def network(trials: int, name: str = "conv") -> SchedulerState:
    rows = [TaskRow(number, 1.0, searched(trials, name), TaskHistory(1e6)) for number in range(2)]
    return SchedulerState(rows, 2 * max(trials, 1), weighted_sum([1.0, 1.0]))


def objects() -> dict[str, Any]:
    sch = lw.Schedule(product(), target=TARGET)
    sch.parallel(sch.get_loops("T_matmul")[0])
    state = network(2)
    return {
        "task": lw.SearchTask(product(), target=TARGET),
        "workload with arguments": lw.SearchTask(lambda n: product(n), args=(16,), target=TARGET),
        "template": lw.TemplateTask(lambda cfg, n: lw.Schedule(product(n)), args=(8,), target=TARGET),
        "schedule": sch,
        "result": result(),
        "no result": lw.TuningResult(None, None, [], TuningState("conv", 1), "nothing is legal"),
        "network": NetworkResult([None, None], state.latency_s, state),
        "benchmark": lw.build(sch).benchmark(repeat=3),
    }


def test_a_cell_gets_html_that_needs_no_style_sheet_and_one_line_of_text() -> None:
    for what, each in objects().items():
        html = each._repr_html_()
        assert Page(html).text.strip(), what
        assert "class=" not in html and "<script" not in html and "<style" not in html, what
        assert "background:#" not in html and not re.search(r"[^-]color:(?!#d1494f)", html), what
        text = repr(each)
        assert "\n" not in text and len(text) < 160 and text.startswith("<") and " at 0x" not in text, what


def test_a_result_shows_figures_curve_and_schedule() -> None:
    html = result()._repr_html_()
    text = Page(html).text
    assert "conv: 3.0 GFLOP/s (333.3 us), 4 trials, errors 1 COMPILE_ERROR" in text
    assert "4, of which 3 were right (75%)" in text and "Turn each tensor expression into a nest" in text
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    svg = base64.b64decode(picture).decode()
    assert svg.startswith("<svg") and svg.count("point") >= 4 and '"$' not in svg


def test_a_schedule_folds_by_region() -> None:
    sch = lw.Schedule(product(), target=TARGET)
    html = sch._repr_html_()
    regions = sum(line.endswith("{") for line in str(sch).splitlines())
    assert html.count("<details") == regions + 1 > 4, "one of the whole"
    lines = re.findall(r'<(?:summary|div) style="white-space:pre">(.*?)</(?:summary|div)>', html)
    assert len(lines) == len(str(sch).splitlines())


@given(st.lists(st.text("{}<&\"' xy", max_size=6), max_size=12))
def test_any_text_folds_into_whole_html(lines: list[str]) -> None:
    page = Page(folding("\n".join(lines)))
    assert re.sub(r"\s", "", page.text) == re.sub(r"\s", "", "".join(lines))


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.few(5)
def test_names_and_messages_are_text(what: str) -> None:
    text = HOSTILE[what]

    def tags(html: str) -> list[str]:
        return re.findall(r"<\w+", html)

    assert tags(result(text, text)._repr_html_()) == tags(result()._repr_html_())
    for name in (text, "conv"):
        NotebookChart(task := Shown()).start(searched(2, name, name))
        NotebookTable(table := Shown()).start(network(2, name))
        Page(task.html[0] + table.html[0])
        assert tags(task.html[0]).count("<tr") == 6 and tags(table.html[0]).count("<tr") == 3
        assert {*tags(task.html[0] + table.html[0])} == ELEMENTS


def test_without_the_library_a_sentence_stands_for_the_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    html = result()._repr_html_()
    assert "<img" not in html and "pip install" in Page(html).text


def test_a_report_is_shown_as_the_page_that_it_is(tmp_path: Path) -> None:
    page = lw.write_report([record(n, 1e-3 / (n + 1)) for n in range(3)], tmp_path / "report.html", measure=False)
    shown = page._repr_html_()
    assert shown is not None

    class Frame(Page):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            super().handle_starttag(tag, attrs)
            self.frame = dict(attrs)

    frame = Frame(shown).frame
    assert frame["srcdoc"] == page.read_text() and frame["sandbox"] == "allow-scripts", "nothing of the notebook's"
    assert page == tmp_path / "report.html" and "\n" not in repr(page)
    curve = lw.write_report([record(1)], tmp_path / "curve.svg", measure=False)
    page.unlink()
    assert page._repr_html_() is None and curve._repr_html_() is None


class Shown:
    """IPython's `display` and its handle: keeps what is shown, and says how long that took by a clock."""

    def __init__(self, clock: "Clock | None" = None, takes_s: float = 0.0) -> None:
        self.shown: list[Any] = []
        self.times_s: list[float] = []
        self.clock, self.takes_s = clock or Clock(), takes_s

    def __call__(self, obj: object, *, display_id: bool) -> "Shown":
        assert display_id and not self.shown, "one output, which is replaced"
        self.update(obj)
        return self

    def update(self, obj: object) -> None:
        self.times_s.append(self.clock())
        self.clock.now_s += self.takes_s
        self.shown.append(obj)

    @property
    def html(self) -> list[str]:
        return [each._repr_html_() for each in self.shown]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("takes_s", [0.0, 0.5])
@pytest.mark.slow(1.2)
def test_a_chart_is_drawn_once_a_second_at_most_and_for_a_small_share_of_the_time(takes_s: float) -> None:
    clock = Clock()
    shown = Shown(clock, takes_s)
    chart = NotebookChart(shown, clock)
    state = searched(1)
    chart.start(state)
    while clock.now_s < 60:
        clock.now_s += 0.125
        chart.update(state)
    pauses = [b - a for a, b in zip(shown.times_s, shown.times_s[1:], strict=False)]
    assert min(pauses) >= 1 and len(pauses) >= 5
    assert all(takes_s <= SHARE * pause for pause in pauses[1:])
    before = len(shown.shown)
    state.count(record(5, 1e-9))
    chart.stop()
    assert len(shown.shown) == before + 1 and "2 of 2 trials" in repr(shown.shown[-1]), "the last state stays"
    assert "best 1000000.0 GFLOP/s" in repr(shown.shown[-1])
    assert Page(shown.html[-1]).text.count("2 of 2 trials") == 1


def test_a_network_gets_its_table_and_the_total() -> None:
    clock = Clock()
    shown = Shown(clock)
    table = NotebookTable(shown, clock)
    table.start(network(0))
    clock.now_s = 5.0
    table.trial(network(2))
    table.round(network(3), 0)
    table.stop(network(4))
    first, second, last = shown.html
    assert "<img" not in first and "<img" in second and "<img" in last, "there is no total yet at first"
    text = Page(last).text
    assert "Speed (GFLOPS)" in text and "Estimated total latency: 0.5 ms Trials: 8" in text and "8 of 8 trials" in text


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], Shown]]:
    """Makes this process look like one that runs IPython, in a notebook's kernel or not; gives its `display`."""

    def start(in_kernel: bool) -> Shown:
        shown, ipython, display = Shown(), ModuleType("IPython"), ModuleType("IPython.display")
        shell = SimpleNamespace(kernel=object()) if in_kernel else SimpleNamespace()
        ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
        display.display = shown  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        return shown

    yield start


def test_a_notebook_is_known_by_its_kernel(kernel: Callable[[bool], Shown], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert running_notebook() is None and "IPython" not in sys.modules, "it is not loaded to find out"
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    kernel(False)
    assert running_notebook() is None and isinstance(make_progress(), ProgressLines), "IPython in a terminal"
    shown = kernel(True)
    assert running_notebook() is shown
    assert isinstance(make_progress(), NotebookChart) and isinstance(make_network_progress(), NotebookTable)
    assert isinstance(make_progress(io.StringIO()), ProgressLines), "a stream that is asked for is taken"


def test_tuning_in_a_notebook_shows_one_chart(
    kernel: Callable[[bool], Shown], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = kernel(True)
    found = lw.SearchTask(product(), target=TARGET).tune(lw.TuningOptions(num_measure_trials=3))
    last = repr(shown.shown[-1])
    assert "3 of 3 trials" in last and f"best {found.state.speed(found.state.best)}" in last
    assert "trials" not in capsys.readouterr().err
    assert list(found.trials) == found.state.trials
    silent = kernel(True)
    lw.SearchTask(product(), target=TARGET).tune(lw.TuningOptions(num_measure_trials=2, progress=False))
    assert not silent.shown
