"""The IR beside records: written once and whole, read back as the task it was, refused in a sentence."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.named_workloads import named_workloads
from loopwright.search.records.file import Record
from loopwright.search.records.rebuilt import rebuilt_task
from loopwright.search.records.workload_files import (
    WorkloadFileError,
    read_module,
    workload_file,
    write_workload,
)


def task_of(k: int = 8) -> lw.SearchTask:
    def product() -> list[te.Tensor]:
        a, b = te.placeholder((4, k), name="a"), te.placeholder((k, 6), name="b")
        return [a, b, topi.matmul(a, b)]

    return lw.SearchTask(product, target="llvm cores=1")


def record_of(task: lw.SearchTask) -> Record:
    return Record(task.workload_key, task.compute_dag.hash, str(task.target), "default", (), task.default_schedule)


def test_a_workload_is_written_once_and_read_back(tmp_path: Path) -> None:
    task, records = task_of(), tmp_path / "folder" / "r.jsonl"
    path = write_workload(records, task.compute_dag.hash, str(task.module))
    assert path == workload_file(records, task.compute_dag.hash) == records.parent / f"r.{task.compute_dag.hash}.mlir"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    written = path.stat().st_ino
    assert write_workload(records, task.compute_dag.hash, str(task.module)).stat().st_ino == written
    found = rebuilt_task(record_of(task), records)
    assert found is not None and found.compute_dag.hash == task.compute_dag.hash and found.target == task.target


def test_a_torn_file_is_replaced(tmp_path: Path) -> None:
    task = task_of()
    path = workload_file(tmp_path / "r.jsonl", task.compute_dag.hash)
    path.write_text(str(task.module)[:40])
    assert rebuilt_task(record_of(task), tmp_path / "r.jsonl") is None
    write_workload(tmp_path / "r.jsonl", task.compute_dag.hash, str(task.module))
    assert rebuilt_task(record_of(task), tmp_path / "r.jsonl") is not None


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    task = task_of()
    text = str(task.module)
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: write_workload(tmp_path / "r.jsonl", "abc", text), range(64)))
    assert [p.name for p in tmp_path.iterdir()] == ["r.abc.mlir"] == [p.name for p in paths]
    assert str(read_module(paths.pop())) == text


def test_what_cannot_be_rebuilt_is_none(tmp_path: Path) -> None:
    task, other = task_of(), task_of(9)
    assert rebuilt_task(record_of(task), tmp_path / "r.jsonl") is None
    workload_file(tmp_path / "r.jsonl", task.compute_dag.hash).write_text(str(other.module))
    assert rebuilt_task(record_of(task), tmp_path / "r.jsonl") is None


def test_a_named_workload_is_made_from_its_key(tmp_path: Path) -> None:
    task = lw.SearchTask(named_workloads()["matmul"], (4, 6, 8), "llvm cores=1")
    found = rebuilt_task(record_of(task), tmp_path / "r.jsonl")
    assert found is not None and found.workload_key == task.workload_key


def test_the_target_is_the_records_and_not_this_machines(tmp_path: Path) -> None:
    task = task_of()
    plain = lw.SearchTask(task.compute_dag.module, target="llvm cores=1 vector_bytes=32")
    assert str(plain.target) == "llvm"  # what is usual is not spelt out
    write_workload(tmp_path / "r.jsonl", plain.compute_dag.hash, str(plain.module))
    rebuilt = rebuilt_task(record_of(plain), tmp_path / "r.jsonl")
    assert rebuilt is not None and rebuilt.target == plain.target


def test_a_file_that_is_no_workload_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_text("builtin.module {}")
    with pytest.raises(WorkloadFileError, match=r"expected one function of lw_te\.compute on tensors"):
        read_module(path)
