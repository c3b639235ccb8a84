"""`loopwright show` and `loopwright replay`: the best record, and what becomes of it again."""

import dataclasses
import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call
from tuned_commands import Tuned

import loopwright as lw
from loopwright.backends.llvm.cpu import architecture
from loopwright.command._report import check
from loopwright.search.named_workloads import arguments, named_workloads
from loopwright.search.records import file as rec

pytestmark = pytest.mark.usefixtures("quick_measuring")


@pytest.mark.parametrize(
    ("mode", "start"),
    [
        ("schedule", "lw-lower-te-to-loop,"),
        ("python", "import loopwright as lw\n"),
        ("dag", "a = PLACEHOLDER [20, 16]\n"),
        ("ir", "builtin.module attributes {lw.target"),
        ("source", "; kernel main"),
    ],
)
def test_show(tuned: Tuned, mode: str, start: str) -> None:
    code, out, err = call("show", tuned.records, "--mode", mode)
    assert code == 0
    assert out.startswith(start)
    assert re.search(r" [mun]?s on ", err)
    code, out, _ = call("show", tuned.records, "--mode", mode, "--json")
    assert json.loads(out)["shown"].startswith(start.strip())


def test_named_workload_is_made_again_from_its_key(tuned: Tuned, tmp_path: Path) -> None:
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(Path(tuned.records).read_bytes())
    assert call("show", str(moved), "--mode", "ir")[:2] == call("show", tuned.records, "--mode", "ir")[:2]


def test_unknown_workload_asks_for_its_file(tuned: Tuned, tmp_path: Path) -> None:
    record = rec.best(rec.load(tuned.records))
    strange = dataclasses.replace(record, workload_key='["mine", [], "0"]')
    path = tmp_path / "mine.jsonl"
    rec.append(path, [strange])
    code, _, err = call("show", str(path), "--mode", "ir")
    assert code == 2
    assert "--workload-file" in err
    code, out, _ = call("show", str(path), "--mode", "ir", "--workload-file", str(tuned.workload))
    assert code == 0
    assert out.startswith("builtin.module")


def test_one_of_several_workloads_is_chosen_by_name_key_or_hash(tuned: Tuned, tmp_path: Path) -> None:
    record = rec.best(rec.load(tuned.records))
    other = dataclasses.replace(
        record, workload_key='["other", [], "feedbeef00000000"]', workload_hash="feedbeef00000000", schedule="lw-other"
    )
    path = tmp_path / "both.jsonl"
    rec.append(path, [record, other])
    code, _, err = call("show", str(path))
    assert code == 2
    assert "2 workloads: choose one with --workload HASH" in err
    for choice in ("other", "feed", "feedbeef00000000", other.workload_key):
        assert call("show", str(path), "--workload", choice)[:2] == (0, "lw-other\n")
    assert call("show", str(path), "--workload", "nosuch")[0] == 2


def test_records_of_another_version_of_a_primitive_are_refused(tuned: Tuned, tmp_path: Path) -> None:
    record = rec.best(rec.load(tuned.records))
    old = dataclasses.replace(record, versions={**record.versions, "lw-split": "0"})
    path = tmp_path / "old.jsonl"
    rec.append(path, [old])
    code, _, err = call("replay", str(path))
    assert code == 2
    assert "lw-split version 0" in err


def test_replay_checks_and_times(tuned: Tuned) -> None:
    code, out, _ = call("replay", tuned.records, "--min-repeat-ms", "5", "--repeat", "2", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["right"] and len(report["times_s"]) == 2 and report["recorded_s"] > 0
    code, out, _ = call("replay", str(tuned.workload), "--schedule", "lw-lower-te-to-loop", "--min-repeat-ms", "5")
    assert code == 0
    assert "right: max abs error" in out


def test_replay_exports_for_c(tuned: Tuned, tmp_path: Path) -> None:
    timing = ["--min-repeat-ms", "1", "--repeat", "1"]
    code, out, _ = call("replay", tuned.records, *timing, "--export", str(tmp_path / "here.o"))
    assert code == 0 and out.endswith(f"KiB, declared in {tmp_path / 'here.h'}\n")
    assert "int lw_matmul(" in (tmp_path / "here.h").read_text()
    elsewhere = "riscv64" if architecture() != "riscv64" else "aarch64"
    board = ["--target", f"llvm arch={elsewhere}", "--export", str(tmp_path / "board.o"), "--export-name", "layer"]
    code, out, _ = call("replay", str(tuned.workload), *board)
    assert code == 0 and out.startswith(f"not checked: kernel main is compiled for {elsewhere}, this CPU is ")
    assert "int lw_layer(" in (tmp_path / "board.h").read_text()
    code, out, _ = call("replay", str(tuned.workload), *board, "--json")
    report = json.loads(out)
    assert code == 0 and report["right"] is None and report["library_bytes"] == (tmp_path / "board.o").stat().st_size


def test_a_torn_line_is_a_warning_of_one_sentence(tuned: Tuned, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(Path(tuned.records).read_bytes() + b'{"workload_key": "[')
    code, out, err = call("show", str(torn))
    assert (code, out) == call("show", tuned.records)[:2]
    warning, found = err.splitlines()
    assert warning.startswith("loopwright: ") and "1 line(s) skipped" in warning
    assert re.search(r" [mun]?s on ", found)


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ('lw-split{block="T_matmul" loop="q" factors=0,4}', "is in no loop 'q'"),
        ("lw-split{", "schedule text 'lw-split{'"),
        ("lw-nothing", "lw-nothing"),
    ],
)
def test_replay_of_a_bad_schedule(tuned: Tuned, schedule: str, sentence: str) -> None:
    code, _, err = call("replay", str(tuned.workload), "--schedule", schedule)
    assert code == 2
    assert sentence in err


def _kernel_of(result: np.ndarray) -> Any:
    return lambda *_: result.copy()


def test_a_wrong_kernel_is_told_from_a_right_one() -> None:
    workload = named_workloads()["matmul"]
    task = lw.SearchTask(workload, arguments(workload, {"m": 4, "n": 4, "k": 4}))
    right = task.reference.expected[0]
    assert check(task, _kernel_of(right)).right
    for wrong in (right + 0.1, np.full_like(right, np.nan), np.where(np.eye(4) > 0, np.inf, right)):
        found = check(task, _kernel_of(wrong))
        assert not found.right
        assert str(found).startswith("WRONG")


def test_what_was_found_is_shown_where_there_is_no_room_for_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence comes after the report, and the exit code says it, too."""

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("loopwright.storage.whole_file.write_whole", full)
    few = ["matmul", "--m", "8", "--n", "8", "--k", "8", "--trials", "1", "--min-repeat-ms", "1"]
    code, out, err = call("tune", *few, "--target", "llvm cores=1", "--records", str(tmp_path / "r.jsonl"), "--quiet")
    assert code == 2 and re.search(r"\nschedule\n  lw-lower-te-to-loop\n", out) and "replay it" not in out
    assert re.search(r"^loopwright: cannot write .*\.replay\.sh: No space left on device$", err, re.MULTILINE)
