"""Records survive crashes, full disks and several writers, and are not used where they do not hold."""

import json
import math
import re
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.cost_model.transfer import transfer_to
from loopwright.search.records import file as rec
from loopwright.search.records.choose import load_best
from loopwright.search.records.file import ErrorCode, Record, RecordError, RecordVersionError, RecordWarning, Role
from loopwright.search.records.index import pick_best
from loopwright.search.report.group import groups
from loopwright.search.tune.options import TuningResult
from loopwright.search.tune.progress import TuningState
from loopwright.search.workload import workload_hash


def record(time_s: float = 1e-3, **changes: Any) -> Record:
    base = Record(
        workload_key='["conv", 1]',
        workload_hash="abc",
        target="llvm",
        sketch="tiled",
        decisions=(1, 2, 3),
        schedule="lw-split{loop=i factors=2,4},lw-reorder{}",
        times_s=(time_s,),
        versions={"loopwright": "0.1", "lw-split": "1", "lw-reorder": "1", "lw-fuse": "1"},
        device="cpu",
        timestamp=10.0,
        seed=7,
    )
    return replace(base, **changes)


def failed(error: ErrorCode = ErrorCode.COMPILE_ERROR, **changes: Any) -> Record:
    return record(times_s=(), error=error, message="why", **changes)


def test_a_record_is_one_line_that_reads_back() -> None:
    original = record(message='two\nlines and "quotes" é', times_s=(0.5, 0.25), build_s=1.5)
    line = original.to_json()
    assert "\n" not in line and Record.from_json(line) == original
    assert original.time_s == 0.25 and failed().time_s == math.inf
    assert Record.from_json(failed().to_json()) == failed()


def test_laps_of_a_run_off_are_compared_by_their_medians() -> None:
    """One of the shortest laps was spared by chance; of trials, timed once each, the shortest repeat counts."""
    untuned, winner = record(times_s=(0.5, 1.1, 1.2)), record(times_s=(0.9, 1.0, 1.0))
    assert winner.times_as_fast(untuned) == 0.5 / 0.9
    winner = replace(winner, role=Role.WINNER)
    assert winner.times_as_fast(untuned) == 0.5 / 0.9
    assert winner.times_as_fast(replace(untuned, role=Role.FINAL)) == 1.1
    result = TuningResult(winner, replace(untuned, role=Role.FINAL), [untuned], TuningState("matmul", 1))
    assert result.speedup == 1.1


def test_append_and_load_keep_the_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "r.jsonl"
    rec.append(path, [record(seed=1), record(seed=2)])
    rec.append(path, [])
    rec.append(path, [record(seed=3)])
    assert [r.seed for r in rec.load(path)] == [1, 2, 3]


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_torn_last_line_costs_itself_alone(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "r.jsonl"
    rec.append(path, [record(seed=1), record(seed=2)])
    path.write_bytes(path.read_bytes()[:-cut])
    rec.append(path, [record(seed=3)])
    if cut == 1:  # only the newline was lost
        assert [r.seed for r in rec.load(path)] == [1, 2, 3]
        return
    with pytest.warns(RecordWarning, match=r"1 line\(s\) skipped; line 2: not a JSON object"):
        assert [r.seed for r in rec.load(path)] == [1, 3]


@pytest.mark.parametrize("line", ["[]", "null", "{}", '{"schema":1}', '{"schema":1,"decisions":3}', "\x00\x00"])
def test_lines_that_are_no_records_are_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(line + "\n" + record().to_json() + "\n\n")
    with pytest.warns(RecordWarning, match="line 1"):
        assert rec.load(path) == [record()]


def test_another_schema_is_refused() -> None:
    line = json.dumps(json.loads(record().to_json()) | {"schema": 99})
    with pytest.raises(RecordVersionError, match="schema 99 cannot be read, this version reads 1"):
        Record.from_json(line)


def test_another_version_of_a_used_primitive_is_refused(tmp_path: Path) -> None:
    now = {"loopwright": "9", "lw-split": "2", "lw-reorder": "1"}
    with pytest.raises(RecordVersionError, match="lw-split version 1, this is version 2: tune again"):
        rec.check_replayable(record(), now)
    with pytest.raises(RecordVersionError, match="lw-split version 1, this is without it"):
        rec.check_replayable(record(), {"lw-reorder": "1"})
    rec.check_replayable(record(schedule="lw-reorder{}"), now)  # lw-fuse is gone, but it is not used
    path = tmp_path / "r.jsonl"
    rec.append(path, [record(), record(schedule="lw-reorder{}")])
    with pytest.warns(RecordWarning, match="lw-split"):
        assert [r.schedule for r in rec.load(path, now)] == ["lw-reorder{}"]


def test_a_full_disk_is_a_sentence() -> None:
    with pytest.raises(RecordError, match="cannot write record file '/dev/full': No space left"):
        rec.append("/dev/full", [record()])


def test_a_failed_append_leaves_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rec.append(path, [record(seed=1)])
    script = f"""
        import resource, signal, sys
        sys.path[:0] = {sys.path!r}
        from loopwright.search import records as rec
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        (old,) = rec.load({str(path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, ({path.stat().st_size + 20},) * 2)
        try:
            rec.append({str(path)!r}, [old])
        except rec.RecordError as error:
            print(error)
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert "File too large" in done.stdout, done.stderr
    assert path.read_text() == record(seed=1).to_json() + "\n"


def test_unreadable_files_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        rec.load(tmp_path / "none.jsonl")
    with pytest.raises(RecordError, match="Is a directory"):
        rec.append(tmp_path, [record()])


def test_several_processes_append_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rec.append(path, [record(message="x" * 9000)])
    script = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from dataclasses import replace
        from loopwright.search import records as rec
        base = rec.load({str(path)!r})[0]
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(50):
            rec.append({str(path)!r}, [replace(base, seed=n), replace(base, seed=n, message="short")])
        """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(rec.load(path)) == 1 + 3 * 100


def test_best_is_the_fastest_right_one_that_matches() -> None:
    fast = record(1e-4, workload_hash="other")
    slow, slower = record(2e-3), record(3e-3)
    wrong = failed(ErrorCode.WRONG_RESULT)
    assert rec.best(rec.select([slower, fast, slow, wrong], workload_hash="abc")) == slow
    assert rec.best([slower, fast, slow]) == fast
    with pytest.raises(RecordError, match="no record of it: tune it first"):
        rec.best(rec.select([slow], workload_hash="abc", target="cuda"))
    with pytest.raises(RecordError, match=r"2 record\(s\), all failed \(2 WRONG_RESULT\)"):
        rec.best([wrong, wrong])


def test_a_run_off_overrules_the_trials_before_it() -> None:
    lucky = record(1e-3, timestamp=1)
    winner = record(1.2e-3, timestamp=2, role=Role.WINNER)
    loser = record(1.1e-3, timestamp=2, role=Role.FINAL)
    assert rec.best([lucky, winner, loser]) == winner
    assert rec.best([lucky, winner, loser, record(1.1e-3, timestamp=3)]).timestamp == 3
    newer = record(1.3e-3, timestamp=4, role=Role.WINNER)
    assert rec.best([winner, newer]) == newer


def test_a_trial_stopped_early_is_not_the_best_beside_one_timed_to_the_end() -> None:
    assert rec.best([record(1e-3, stopped_early=True), record(2e-3)]).time_s == 2e-3
    assert rec.best([record(1e-3, stopped_early=True)]).time_s == 1e-3


def test_distill_merge_stats() -> None:
    a1, a2, b = record(2e-3, timestamp=1), record(1e-3, timestamp=3), record(5e-3, workload_hash="b", timestamp=2)
    bad = failed(timestamp=4)
    assert rec.merge([[a2, a1], [b, a1], [bad]]) == [a1, b, a2, bad]
    assert rec.distill([a1, b, a2, bad]) == [a2, b]
    first, second = rec.stats([a1, b, a2, bad])
    assert (first.trials, first.ok, first.errors, first.best_s) == (3, 2, {"COMPILE_ERROR": 1}, 1e-3)
    assert (second.workload_hash, second.trials) == ("b", 1)
    assert rec.stats([bad])[0].best_s == math.inf


def test_load_best_by_task_name_key_and_hash(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    mine = record(workload_key='["conv", [1], "abcd12"]', workload_hash="abcd12")
    other = record(1e-9, workload_key="no json", workload_hash="ffff", target="cuda", device="gpu")
    rec.append(path, [record(2e-3, workload_key=mine.workload_key, workload_hash="abcd12"), mine, other])
    for workload in ("conv", mine.workload_key, "abcd12", "abcd"):
        assert load_best(path, workload) == mine
    assert load_best([mine]) == load_best(path, target="llvm") == load_best(path, device="cpu") == mine
    assert load_best(path, "no json") == other
    with pytest.raises(RecordError, match=r"2 workloads, choose one of abcd12 \(conv\), ffff \(no json\)"):
        load_best(path)
    with pytest.raises(RecordError, match="no record of workload 'abc'; there are records of"):
        load_best(path, "abc")
    with pytest.raises(RecordError, match="no record of workload 'conv'; there are records of ffff"):
        load_best(path, "conv", target="cuda")


def test_stats_count_what_was_not_timed_whole() -> None:
    trials = [record(round=1), record(round=1, stopped_early=True), record(round=2, reused=True, seed=8)]
    (stats,) = rec.stats([*trials, record(role=Role.WINNER)])
    assert (stats.stopped_early, stats.reused, stats.rounds, stats.seeds) == (1, 1, 2, (7, 8))


def test_lines_of_before_and_after_read_the_same() -> None:
    """Without fields that came later, and with some that are still to come."""
    line = record().to_json()
    assert not {"round", "predicted", "flop", "resources", "template", "fleet"} & set(json.loads(line))
    later = json.dumps(json.loads(line) | {"moon_phase": 0.5})
    assert Record.from_json(later) == record()
    whole = record(round=3, predicted=0.0, flop=1e9, resources=({"registers": 32},), template={"name": "t"})
    assert Record.from_json(whole.to_json()) == whole


def test_every_field_is_documented() -> None:
    page = Path(lw.__file__).parent / "docs" / "records.md"
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page.read_text(), re.MULTILINE))))
    assert named == {field.name for field in fields(Record)}


def test_hash_of_a_workload_is_stable() -> None:
    assert workload_hash('["conv", 1]') == workload_hash('["conv", 1]') != workload_hash('["conv", 2]')
    assert len(workload_hash("")) == 16


# -- lines that are JSON, but no records ------------------------------------------------------------------------------

WRONG: dict[str, list[object]] = {
    "times_s": [None, 3, "fast", {}, ["1"], [True], [0], [0.0], [-1.0], [1e-30], [[1.0]], [10**400], []],
    "decisions": [None, 3, "12", {}, [-1], [1.5], [True], [2**63], [10**1000], ["1"], [[1]]],
    "error": [None, 0, True, "FINE", ["OK"], {}],
    "role": [None, 1, "best", []],
    "workload_key": [None, 7, [], "two\nlines", "\ud800"],
    "workload_hash": [None, 7, "", "../../etc/passwd", "a" * 65, "a\n"],
    "target": [None, 7, {}, "llvm\x1b[2J"],
    "sketch": [None, [], 1],
    "schedule": [None, [], 1, {"lw-split": 1}],
    "message": [None, 1, [], "\udfff"],
    "build_s": [None, "1", -1, 1e300, True, [], 10**400],
    "run_s": [None, "1", -1e-9],
    "versions": [None, [], "1", {"a": 1}, {"a": None}, {"a": {"b": "c"}}],
    "device": [None, 0, []],
    "timestamp": [None, "now", -1, 1e300, True, 10**30],
    "seed": [None, 1.5, "7", True, 2**64],
    "artifact": [None, 0],
    "stopped_early": [None, 0, "no"],
    "reused": [None, 1, "no"],
    "round": [None, -1, 1.5, True, 2**64],
    "predicted": ["1", True, [], 10**400],
    "flop": [None, -1, "1e9", True],
    "resources": [None, {}, "x", [1], [[]], [{"a": [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}]],
    "limits": [None, [], 1, {"gflops_per_s": 10**400}],
    "template": [None, [], 1, {"args": 10**400}, {"name": "\ud800"}],
    "fleet": [None, [], "here", {"device": "\ud800"}],
    "schema": [None, True, "1", 1.5, 2, [1]],
}


def test_a_wrong_value_for_each_field_is_known() -> None:
    assert set(WRONG) == {field.name for field in fields(Record)}


@pytest.mark.parametrize("name", WRONG)
def test_a_field_of_another_type_or_out_of_range_makes_no_record(name: str) -> None:
    for value in WRONG[name]:
        line = json.dumps(json.loads(record().to_json()) | {name: value})
        with pytest.raises(RecordError, match=f"schema|{name}") as caught:
            Record.from_json(line)
        assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        record().to_json().replace("0.001", "1e999"),
        '{"schema":1,"template":' + '{"a":' * 50_000 + "1" + "}" * 50_001,
        record().to_json().replace("0.001", "NaN"),
        record().to_json().replace("0.001", "Infinity"),
        record().to_json().replace("0.001", "-Infinity"),
        record().to_json().replace("0.001", "1" * 5000),
        record().to_json().replace('"seed":7', '"seed":' + "7" * 5000),
        record(message="x" * 2_000_000).to_json(),
    ],
    ids=["lists", "overflow", "objects", "nan", "infinity", "minus", "digits", "seed", "long"],
)
def test_deep_long_and_endless_lines_block_nothing(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join([record(seed=1).to_json(), line, record(seed=2).to_json(), ""]))
    with pytest.warns(RecordWarning, match=r"1 line\(s\) skipped; line 2: ") as caught:
        assert [r.seed for r in rec.load(path)] == [1, 2]
    assert len(caught) == 1


def test_one_warning_names_the_lines_that_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("{}\n" + f"{record().to_json()}\n[]\n" * 12)
    with pytest.warns(RecordWarning) as caught:
        assert len(rec.load(path)) == 12
    assert len(caught) == 1 and "13 line(s) skipped; line 1: no record of loopwright's: it names no schema" in str(
        caught[0].message
    )
    assert "(also line 3, 5, 7, 9, 11, 13, 15, 17 and 4 more)" in str(caught[0].message)


def _mutated(rng: np.random.Generator, line: str) -> bytes:
    """A line of a record with one thing changed: a value, a byte, its end, or all of it."""
    values = json.loads(line)
    match rng.integers(5):
        case 0:
            name = str(rng.choice(list(values)))
            junk: list[object] = [None, True, -1, 0, 1e308, 2**70, "", "\ud800", "x" * 50, [], [[]], [None], {}]
            junk += [{"": {}}, [1e308]]
            values[name] = junk[rng.integers(len(junk))]
        case 1:
            del values[str(rng.choice(list(values)))]
        case 2:
            data = bytearray(line.encode())
            data[rng.integers(len(data))] = rng.integers(256)
            return bytes(data).replace(b"\n", b" ")
        case 3:
            return line.encode()[: rng.integers(len(line))]
        case 4:
            return line.replace(str(rng.choice(["0.002", "10.0", "[1,2,3]", '"abc"', "true"])), "[[1e999]]").encode()
    return json.dumps(values).encode()


def test_whatever_a_line_holds_it_is_skipped_or_a_record_for_every_reader(tmp_path: Path) -> None:
    """Thousands of damaged lines among good ones: the good ones are read, and nothing that reads them raises."""
    rng = np.random.default_rng(0)
    data = te.placeholder((8, 8), name="data")
    task = lw.SearchTask(te.create_module([data, topi.nn.relu(data)]), target="llvm cores=1")
    good = [record(2e-3, seed=n, target=str(task.target), template={"name": "t", "args": [1]}) for n in range(20)]
    path = tmp_path / "r.jsonl"
    lines = []
    for one in good:
        lines += [one.to_json().encode(), *(_mutated(rng, one.to_json()) for _ in range(100))]
    path.write_bytes(b"\n".join(lines))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = rec.load(path)
    assert len(caught) == 1
    assert all(one in loaded for one in good)
    for one in loaded:
        assert Record.from_json(one.to_json()) == one
        assert all(0 < t < math.inf for t in one.times_s)
    assert 0 < rec.best(loaded).time_s < math.inf
    assert rec.merge([loaded]) and rec.distill(loaded) and rec.stats(loaded) and pick_best(loaded)
    for group in groups(loaded):
        assert group.name is not None and group.curve is not None
    known = transfer_to(task, path)
    assert known is not None and known.skipped > 0 and known.samples == 0  # the key names no workload


# -- winners and clocks ---------------------------------------------------------------------------------------------


def tried(time_s: float, schedule: str, **changes: Any) -> Record:
    return record(time_s, schedule=schedule, **changes)


def run_off(stamp: float, **times_s: float) -> Iterator[Record]:
    """The records of a run-off among schedules; the first one is the winner."""
    (name, time_s), *others = times_s.items()
    yield tried(time_s, name, role=Role.WINNER, timestamp=stamp)
    for other, other_s in others:
        yield tried(other_s, other, role=Role.FINAL, timestamp=stamp)


@pytest.mark.parametrize("stamp", [0.0, 20.0, 4e9])
def test_no_stamp_of_a_winner_hides_a_better_trial_or_brings_back_a_beaten_one(stamp: float) -> None:
    search = [tried(1.0, "a"), tried(1.02, "b"), tried(1.03, "c"), tried(1.5, "d")]
    final = list(run_off(stamp, b=1.1, a=1.2))
    assert rec.best([*search, *final]).role is Role.WINNER  # a, b competed; c, d are no faster than b was
    assert rec.best([*search, *final]).schedule == "b"
    better = tried(0.5, "e", timestamp=30.0)
    for mixed in ([*search, *final, better], [better, *search, *final], rec.merge([[*search, *final], [better]])):
        assert rec.best(mixed) == better
    assert rec.distill([*search, *final, better]) == [better]


@pytest.mark.parametrize("stamp", [0.0, 20.0, 4e9])
def test_winners_of_two_files_do_not_hide_one_another(stamp: float) -> None:
    one = [tried(1.0, "a"), tried(1.1, "b"), *run_off(stamp, a=1.0, b=1.1)]
    two = [tried(0.7, "c"), tried(0.8, "d"), *run_off(10.0, c=0.7, d=0.9)]
    for mixed in ([*one, *two], [*two, *one], rec.merge([one, two])):
        assert rec.best(mixed).schedule == "c"


def test_a_schedule_that_competes_again_has_the_time_of_its_last_run_off() -> None:
    first = [tried(1.0, "a"), tried(1.1, "b"), *run_off(20.0, a=1.0, b=1.1)]
    again = [tried(0.95, "c"), *run_off(5.0, b=1.05, a=1.3, c=1.2)]
    assert rec.best([*first, *again]) == again[1]


def test_an_untuned_schedule_that_wins_stands_for_what_the_others_stood_for() -> None:
    search = [tried(2.0, "u", sketch="default"), tried(1.0, "a"), tried(1.2, "b"), tried(1.05, "c")]
    final = list(run_off(20.0, u=1.1, a=1.3, c=1.4))
    assert rec.best([*search, *final]).schedule == "u"
