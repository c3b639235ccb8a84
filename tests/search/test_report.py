"""The report of a record file: one page that loads nothing, says what happened, and survives what records may hold."""

import json
import re
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import call
from gpu_programs import opencl_device
from html_page import Page
from patience import PATIENCE_S

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.discovery import pass_factories, pass_name, primitive_stems
from loopwright.passes.primitive import in_words
from loopwright.search.measure import limits
from loopwright.search.measure.limits import Limits, limits_of, why_unknown
from loopwright.search.records import file as rec
from loopwright.search.records.file import ErrorCode, Record, RecordError, Role
from loopwright.search.records.rebuilt import rebuilt_task
from loopwright.search.records.record import duration
from loopwright.search.report import vega
from loopwright.search.report.charts import OUTCOMES, curve_chart, prediction_chart, roofline_chart
from loopwright.search.report.group import groups
from loopwright.search.report.pace import pace_of
from loopwright.search.report.steps import steps_of
from loopwright.search.report.vega import Spec, log_ticks
from loopwright.search.report.write import write_report


def record(time_s: float = 1e-3, **changes: Any) -> Record:
    base = Record(
        workload_key='["conv", [1], "abc"]',
        workload_hash="abc",
        target="llvm",
        sketch="tiled",
        decisions=(1, 2, 3),
        schedule='lw-lower-te-to-loop,lw-split{block="conv" loop="i" factors=0,4}',
        times_s=(time_s,),
        versions={"loopwright": "0.1", "lw-split": "1"},
        device="cpu",
        timestamp=10.0,
    )
    return replace(base, **changes)


def failed(error: ErrorCode = ErrorCode.COMPILE_ERROR, **changes: Any) -> Record:
    return record(times_s=(), error=error, message="why", **changes)


pytestmark = pytest.mark.usefixtures("quick_measuring")


def read(path: Path) -> tuple[str, str]:
    text = path.read_text()
    page = Page(text)
    assert not [link for link in page.links if not link.startswith("#")]
    own = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "http" not in own and "<script" not in own
    assert all(spec["layer"] for spec in specs(text))
    return text, page.text


def specs(page: str) -> list[Spec]:
    """The charts of a page."""
    return [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', page)]


def points(spec: Spec) -> list[dict[str, Any]]:
    """The rows of the layers of a chart whose marks are points."""
    return [row for layer in spec["layer"] if layer["mark"]["type"] == "point" for row in layer["data"]["values"]]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "matmul.jsonl"
    code, out, err = call(
        *("tune", "matmul", "--m", "20", "--n", "36", "--k", "16", "--trials", "20", "--target", "llvm cores=1"),
        *("--records", str(path)),
    )
    assert code == 0, out + err
    return path


def test_the_command_writes_a_page_a_stranger_can_read(tuned: Path) -> None:
    code, out, _ = call("report", str(tuned), "--no-measure")
    assert code == 0 and out.startswith(str(tuned.with_suffix(".html")))
    raw, text = read(tuned.with_suffix(".html"))
    for words in (
        "Tuning report of matmul.jsonl",
        "matmul m=20 n=36 k=16",
        "T_matmul(i, j) += a[i, k] * b[k, j]",
        "GFLOP/s",
        "20, of which 20 were right (100%)",
        "times as fast",
        "trials a second in",
        "device idle for",
        "within 5% of the best",
        "Best schedule, step by step",
        "Turn each tensor expression into a nest of loops around one block.",
        "Split loop",
        "sch.split(",
        "The IR after all steps",
        "What mattered",
        "loopwright 0.1",
    ):
        assert words in text, words
    best = rec.best(rec.load(tuned))
    assert best.schedule in unescape(raw)
    curve = specs(raw)[0]
    assert [row["trial"] for row in points(curve)] == [str(n) for n in range(1, 21)]


@pytest.mark.slow(1.2)
def test_limits_of_this_machine_give_a_roofline(tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "peak_gflops_per_s", lambda *_: 100.0)
    monkeypatch.setattr(limits, "copy_gbytes_per_s", lambda target, size: 10.0)
    bare = tmp_path / "bare.jsonl"
    bare.write_text("".join(replace(r, limits={}).to_json() + "\n" for r in rec.load(tuned)))
    write_report(bare, tmp_path / "r.html", partial(rebuilt_task, records=tuned))
    _, text = read(tmp_path / "r.html")
    # 2 * 20 * 36 * 16 operations on 4 * (20 * 16 + 16 * 36 + 20 * 36) bytes
    assert (
        "Roofline" in text
        and "3.56 operations for each byte" in text
        and "of the 35.64 GFLOP/s that memory allows" in text
    )


@pytest.mark.parametrize("target", ["opencl", "llvm cores=1"])
@pytest.mark.slow(1.2)
@pytest.mark.few(1)
def test_tuning_leaves_all_that_showing_and_reporting_need(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target == "opencl":
        opencl_device()
    monkeypatch.setattr(limits, "peak_gflops_per_s", lambda *_: 100.0)
    monkeypatch.setattr(limits, "copy_gbytes_per_s", lambda target, size: 10.0)

    def layer(m: int, n: int, k: int) -> list[te.Tensor]:
        a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
        return [a, b, topi.nn.relu(topi.matmul(a, b))]

    task, path = lw.SearchTask(layer, args=(20, 36, 16), target=target), tmp_path / "layer.jsonl"
    usual = task.measure_options()
    quick = replace(usual, builders=1, timing=replace(usual.timing, repeat=1, min_repeat_ms=1.0))
    quick = replace(quick, build_timeout_s=PATIENCE_S, run_timeout_s=PATIENCE_S)  # the driver compiles when it runs
    task.tune(lw.TuningOptions(num_measure_trials=17, records=path, progress=False, final_laps=1), quick)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"layer.{task.compute_dag.hash}.mlir", "layer.jsonl"]
    shown = {mode: call("show", str(path), "--mode", mode) for mode in ("schedule", "python", "dag", "ir", "source")}
    assert [code for code, _, _ in shown.values()] == [0] * 5, shown
    assert shown["dag"][1].strip() == str(task.compute_dag)
    assert call("replay", str(path), "--min-repeat-ms", "1", "--repeat", "1")[0] == 0
    for write in (lambda: call("report", str(path)), lambda: write_report(path, tmp_path / "layer.html")):
        write()
        _, text = read(tmp_path / "layer.html")
        assert "Features of the cost model" in text and "A step with a + shows" in text and "Roofline" in text
        said = "operations for each byte" if target != "opencl" else "is not known, so there is no roofline"
        assert said in text


def test_data_sheets_and_unknown_devices() -> None:
    assert "data sheets are at hand for h200" in why_unknown("cuda model=unheard-of")
    assert "z80 allows at most was not measured" in why_unknown("llvm model=z80")
    assert why_unknown("nonsense") == "What 'nonsense' allows at most is not known."
    h200 = limits_of("cuda model=h200", ["float32"])
    assert h200 is not None
    assert h200.reachable(1.0, "float32") == 4800 and h200.reachable(100.0, "float32") == 67000
    assert h200.reachable(1e6, "float16") == 989_500 and h200.reachable(1.0, "int8") is None
    assert limits_of("cuda model=unheard-of") is limits_of("nonsense") is limits_of("llvm") is None
    assert limits_of("llvm model=z80", measure=["float32"]) is None
    assert limits_of("opencl", measure=["float32"]) is None, "a device of OpenCL is not this CPU"


def test_shares_say_which_limit_binds_and_why_they_are_above_it() -> None:
    known = Limits({"float32": 100.0}, 10.0, "measured on 2 threads")
    bound_by_memory = known.share(flop=4e9, moved_bytes=1e9, time_s=0.2, dtype="float32")
    bound_by_arithmetic = known.share(flop=4e9, moved_bytes=1e8, time_s=0.02, dtype="float32")
    assert str(bound_by_memory) == "50.0% of the 40 GFLOP/s that memory allows (measured on 2 threads)"
    assert str(bound_by_arithmetic).startswith("200.0% of the 100 GFLOP/s that arithmetic allows")
    assert "fewer are left" in str(bound_by_arithmetic)
    assert "caches keep inputs and outputs" in str(known.share(4e9, 1e9, 0.05, "float32"))
    assert known.share(4e9, 1e9, 0.2, "int8") is known.share(0.0, 1e9, 0.2, "float32") is None


def test_limits_are_read_back_from_the_record_that_keeps_them() -> None:
    known = Limits({"float32": 100.0, "float64": 50.0}, 10.0, "measured on 1 thread")
    line = record(limits=known.as_json()).to_json()
    assert Limits.from_json(Record.from_json(line).limits) == known
    assert Limits.from_json({}) is Limits.from_json({"gflops_per_s": [1], "gbytes_per_s": 1.0, "source": ""}) is None
    assert Limits.from_json({"gflops_per_s": {}, "gbytes_per_s": -1.0, "source": "x"}) is None


@pytest.mark.slow(1.2)
def test_kept_limits_are_shown_and_nothing_is_measured_again(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> float:
        raise AssertionError("measured again")

    monkeypatch.setattr(limits, "peak_gflops_per_s", never)
    known = Limits({"float32": 100.0}, 20.0, "measured on 2 threads")
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(replace(r, limits=known.as_json()).to_json() + "\n" for r in rec.load(tuned)))
    write_report(kept, tmp_path / "kept.html", partial(rebuilt_task, records=tuned))
    _, text = read(tmp_path / "kept.html")
    assert "of the 71.29 GFLOP/s that memory allows (measured on 2 threads)" in text


@pytest.mark.slow(1.2)
def test_one_search_measures_limits_once_and_every_command_tells_of_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def peak(_: object, dtype: str) -> float:
        measured.append(dtype)
        return 100.0 * len(measured)  # another one each time

    monkeypatch.setattr(limits, "peak_gflops_per_s", peak)
    monkeypatch.setattr(limits, "copy_gbytes_per_s", lambda target, size: 20.0)
    path = tmp_path / "r.jsonl"
    shape = ("matmul", "--m", "20", "--n", "36", "--k", "16", "--target", "llvm cores=1")
    told = []
    for command in (
        ("tune", *shape, "--trials", "3", "--records", str(path), "--quiet", "--json"),
        ("replay", str(path), "--repeat", "1", "--min-repeat-ms", "1", "--json"),
    ):
        code, out, err = call(*command)
        assert code == 0, out + err
        told.append(json.loads(out))
    names = ("peak_gflops_per_s", "peak_gbytes_per_s", "limit_gflops_per_s", "limits_source")
    assert [told[0][name] for name in names] == [told[1][name] for name in names]
    limit = told[0]["limit_gflops_per_s"]
    assert told[0]["limit_share"] == pytest.approx(told[0]["gflops_per_s"] / limit)
    assert told[1]["limit_share"] == pytest.approx(told[1]["gflops_per_s"] / limit)
    trials, finals = ([r for r in rec.load(path) if (r.role is Role.TRIAL) is trial] for trial in (True, False))
    known = Limits({"float32": 100.0}, 20.0, "measured on 1 thread").as_json()
    assert finals and all(dict(each.limits) == known for each in finals)
    assert trials and not any(each.limits for each in trials), "the first trial does not wait for limits"
    words = f"of the {limit:.4g} GFLOP/s that memory allows (measured on 1 thread)"
    for shown in (("replay", str(path), "--repeat", "1", "--min-repeat-ms", "1"), ("report", str(path))):
        code, out, err = call(*shown)
        assert code == 0 and (shown[0] == "report" or words in out), out + err
    _, text = read(path.with_suffix(".html"))
    best = rec.best(rec.load(path))
    assert f"{best.gflops_per_s / limit:.1%} {words}" in text
    assert measured == ["float32"], "before the run-off is recorded, and never again"


def test_the_untuned_line_has_the_clock_of_the_points() -> None:
    untuned = record(2e-3, sketch="default", decisions=(), schedule="", flop=2e6)
    again = replace(untuned, times_s=(9e-3,), role=Role.FINAL)
    group = groups([untuned, record(1e-3, flop=2e6), again])[0]
    curve = curve_chart(group)
    (level,) = next(layer["data"]["values"] for layer in curve["layer"] if layer["mark"]["type"] == "rule")
    assert level["y"] == points(curve)[0]["y"] and level["words"] == "untuned"
    assert group.untuned == again


def test_what_came_of_a_trial_is_told_by_its_point() -> None:
    (group,) = groups(
        [
            record(timestamp=1.0, flop=2e9),
            record(timestamp=2.0, stopped_early=True),
            record(timestamp=3.0, reused=True),
            failed(timestamp=4.0, sketch="</script><b>"),
        ]
    )
    curve = curve_chart(group)
    assert [row["outcome"] for row in points(curve)] == list(OUTCOMES)
    assert points(curve)[0]["speed"] == "2000 GFLOP/s (1 ms)" and points(curve)[3]["speed"] == "COMPILE_ERROR"
    assert "</script><b>" not in vega.figure(curve, "").replace("</script><figcaption>", "")


def test_words_of_the_roofline_do_not_cover_one_another() -> None:
    """The faster schedule's lie above its point, the other's below, whichever of them is the tuned one."""
    known = Limits({"float32": 100.0}, 20.0, "measured on 1 thread")
    for tuned_s, untuned_s in ((1e-3, 1.001e-3), (1.001e-3, 1e-3)):
        untuned = record(untuned_s, sketch="default", decisions=(), schedule="", flop=2e7)
        (found,) = groups([untuned, record(tuned_s, flop=2e7, role=Role.WINNER)])
        task = lw.SearchTask(lambda: _product(), target="llvm cores=1")
        chart = roofline_chart(replace(found, task=task), known)
        assert chart is not None
        words = [(each["data"]["values"][0], each["mark"]["dy"]) for each in chart["layer"] if _names(each)]
        assert [dy for _, dy in sorted(words, key=lambda pair: -pair[0]["y"])] == [-7, 12]


def test_a_page_compares_a_run_off_by_medians(tmp_path: Path) -> None:
    """The shortest of all laps was the untuned schedule's."""
    untuned = record(sketch="default", decisions=(), schedule="", role=Role.FINAL, times_s=(0.5e-3, 1.1e-3, 1.2e-3))
    winner = record(role=Role.WINNER, times_s=(0.9e-3, 1e-3, 1e-3))
    _, text = read(write_report([untuned, winner], tmp_path / "r.html"))
    assert "500 us, shortest of 3 repeats, median 1.1 ms; tuning made it 1.10 times as fast" in text


def _names(layer: dict[str, Any]) -> bool:
    return layer["mark"]["type"] == "text" and "tuned" in layer["data"]["values"][0]["words"]


def _product() -> list[te.Tensor]:
    a, b = te.placeholder((8, 8), name="a"), te.placeholder((8, 8), name="b")
    return [a, b, topi.matmul(a, b)]


def test_without_the_library_a_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> object:
        raise vega.MissingCharts(f"charts are drawn by Vega-Lite, which is not here: {vega.INSTALL}")

    vega._library.cache_clear()
    monkeypatch.setattr(vega, "_converter", missing)
    _, text = read(write_report(many(3), tmp_path / "r.html"))
    assert "Speed of each trial and of the best so far: not drawn: charts are drawn by Vega-Lite" in text
    assert "pip install 'loopwright[report]'" in text and 'class="chart"' not in text
    with pytest.raises(lw.MissingRequirement, match="Vega-Lite"):
        write_report(many(3), tmp_path / "curve.svg")


def test_where_the_engine_of_the_library_would_end_the_process_a_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V8 traps where it cannot reserve addresses, as under the `ulimit -v` of shared machines."""
    pytest.importorskip("vl_convert")
    vega._library.cache_clear()
    monkeypatch.setattr(vega.resource, "getrlimit", lambda which: (16 << 30, -1))
    _, text = read(write_report(many(3), tmp_path / "r.html"))
    assert "not drawn: charts" in text and "128 GiB of addresses, and this process may have 16" in text
    with pytest.raises(lw.MissingRequirement, match="ulimit -v"):
        write_report(many(3), tmp_path / "curve.svg")


def many(count: int, **changes: Any) -> list[Record]:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, size=(count, 3))
    return [
        record(1e-3 * (1 + row[0]), decisions=tuple(map(int, row)), timestamp=float(n), flop=2e9, **changes)
        for n, row in enumerate(rows)
    ]


def test_what_mattered_is_found(tmp_path: Path) -> None:
    config = {"tile_x": 1, "tile_y": 2, "unroll": 3}
    template = {"name": "my_template", "args": [1], "index": 5, "config": config}
    path = write_report(many(40, template=template), tmp_path / "r.html")
    _, text = read(path)
    mattered = text[text.index("What mattered") :]
    assert re.search(r"tile_x (9\d|100)%", mattered) and "Template my_template: tile_x = 1" in text
    assert "The workload's IR is not at hand" in text and "conv" in text


def test_a_file_of_several_workloads_and_all_kinds_of_trouble(tmp_path: Path) -> None:
    records = [
        *many(3),
        failed(ErrorCode.WRONG_RESULT, timestamp=9.0),
        replace(failed(ErrorCode.COMPILE_ERROR), message="Traceback ...\n  <b>& more\nValueError: 3 < 4 & 5"),
        record(2e-3, stopped_early=True),
        record(2e-3, reused=True),
        record(1e-3, role=Role.WINNER, timestamp=99.0),
        record(1e-5, workload_hash="other", workload_key="no json <at all>", device="", schedule="lw-gone{a=1}"),
        failed(workload_hash="failing", workload_key='["sad", [[1, 2], null], "failing"]'),
    ]
    text = read(write_report(records, tmp_path / "r.html"))[1]
    assert "10 measurements of 3 workloads" in text
    assert "no json <at all>" in text and "a device not recorded" in text and "sad 1x2, None" in text
    assert "WRONG_RESULT 1" in text and "ValueError: 3 < 4 & 5" in text and "<b>& more" in text
    assert "no trial was right" in text and "It cannot be replayed" in text
    assert "Too few valid trials" in text and "the winner of that run-off reached" in text


def test_the_curve_alone(tmp_path: Path) -> None:
    path = write_report(many(5), tmp_path / "curve.svg")
    root = ElementTree.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and path.read_text().count('aria-roledescription="point"') == 5
    with pytest.raises(RecordError, match=r"a curve is of one workload, records holds 2: write a page \(.html\)"):
        write_report([*many(2), record(workload_hash="other")], tmp_path / "curve.svg")


def test_nothing_to_report_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(RecordError, match=r"no record to report on in .*empty.jsonl: tune first"):
        write_report(tmp_path / "empty.jsonl", tmp_path / "r.html")
    with pytest.raises(RecordError, match=r"a report is a page \(.html\) or a curve alone \(.svg\)"):
        write_report(many(1), tmp_path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(RecordError, match="cannot write report"):
        write_report(many(1), tmp_path / "folder.html")
    code, _, err = call("report", str(tmp_path / "none.jsonl"))
    assert code == 2 and "No such file" in err
    rec.append(tmp_path / "r.html", many(1))
    code, _, err = call("report", str(tmp_path / "r.html"))
    assert code == 2 and "would replace the record file" in err


def test_every_primitive_has_a_sentence() -> None:
    for name in map(pass_name, primitive_stems()):
        step_class = pass_factories()[name]()
        options = {n: _example(kind) for n, kind in step_class.__annotations__.items() if n != "name"}
        words = in_words(step_class(**options))
        assert words.endswith(".") and not words.startswith(name.removeprefix("lw-").capitalize() + ":"), words


def _example(kind: object) -> int | str | tuple[int, int] | tuple[str, str]:
    text = str(kind)
    if "tuple[int" in text:
        return (2, 3)
    if "tuple[str" in text:
        return ("x", "y")
    return 2 if text.startswith(("int", "<class 'int'")) else "threadIdx.x"


def test_steps_show_what_changes() -> None:
    a = te.placeholder((8,), name="a")
    task = lw.SearchTask(te.create_module([a, te.compute((8,), lambda i: a[i] * 2.0, name="b")]), target="llvm cores=1")
    schedule = 'lw-lower-te-to-loop,lw-split{block="b" loop="i" factors=0,4},lw-vectorize{block="b" loop="i1"}'
    steps, ir = steps_of(schedule, task.module)
    assert steps[1].words == "Split loop i of b into 2 loops of what is left x 4."
    assert any(line.startswith("+") and "i1 in 4" in line for line in steps[1].changes)
    assert any(line.startswith("+") and "vectorized" in line for line in steps[2].changes) and "vectorized" in ir
    assert not any("a[" in line and line[0] in "+-" for line in steps[2].changes), "indentation is no change"
    broken, ir = steps_of(schedule.replace("i1", "nowhere"), task.module)
    assert (
        ir == ""
        and broken[2].changes[0].startswith("! ")
        and [s.text for s in broken] == [s.text.replace("i1", "nowhere") for s in steps]
    )


def test_pace_is_that_of_the_clock_without_pauses() -> None:
    first = record(4e-3, timestamp=10.0, build_s=1.5, run_s=0.5)  # begun at 8
    wrong = failed(timestamp=11.0, build_s=0.5, run_s=0.0)
    near = record(1.04e-3, timestamp=12.0, build_s=0.5, run_s=0.5)
    resumed = record(1e-3, timestamp=5000.0, build_s=1.0, run_s=1.0)
    again = record(1e-3, timestamp=5001.0, build_s=9.0, run_s=9.0, reused=True)
    pace = pace_of([resumed, first, near, wrong, again])
    assert pace is not None
    assert (pace.trials, pace.wall_s, pace.run_s, pace.near_trials, pace.near_s) == (5, 7.0, 2.0, 3, 4.0)
    assert str(pace) == "0.714 trials a second in 7 s, device idle for 71% of it"
    side_by_side = [replace(r, fleet={"device": str(n)}) for n, r in enumerate((first, near))]
    two = pace_of(side_by_side)
    assert two is not None and (two.wall_s, two.run_s, two.idle) == (4.0, 0.5, 0.875)
    alone = pace_of([wrong])
    assert alone is not None and alone.near_s is None and alone.idle == 1.0
    assert pace_of([record(timestamp=0.0)]) is None


def test_figures() -> None:
    (group,) = groups([record(2e-3, timestamp=2.0), record(1e-3, timestamp=3.0), failed(timestamp=1.0)])
    assert group.curve == [float("inf"), 2e-3, 1e-3] and group.errors == {"COMPILE_ERROR": 1}
    assert [duration(t) for t in (2.0, 1.5e-3, 2e-6, 3e-9)] == ["2 s", "1.5 ms", "2 us", "3 ns"]
    assert log_ticks(0.01, 200) == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert log_ticks(1, 10) == pytest.approx([1, 3, 10])


def test_predictions_are_compared_within_a_round() -> None:
    """The model that ships predicts on a scale of its own: its round would be a heap of points far from the others."""
    scales = {1: (-20.4, -20.1, -20.2), 2: (0.1, 0.4, 0.4)}
    records = [
        record(1e-3 / (1 + n), round=round_, predicted=p, decisions=(round_, n))
        for round_, predicted in scales.items()
        for n, p in enumerate(predicted)
    ]
    (group,) = groups(records)
    chart = prediction_chart(group)
    assert chart is not None
    assert [row["x"] for row in chart["layer"][0]["data"]["values"]] == [0, 1, 0.5, 0, 0.75, 0.75]
