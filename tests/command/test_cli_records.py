"""`loopwright records merge` and `distill`, and `lw.pick_best`: what lies beside the files goes along."""

import json
from pathlib import Path

import pytest
from commands import call

import loopwright as lw
from loopwright import te, topi
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record
from loopwright.search.records.network_files import TunedNetwork, WeightedTask, write_network
from loopwright.search.records.workload_files import workload_file, write_workload
from loopwright.search.report.write import networks_of

pytestmark = pytest.mark.usefixtures("quick_measuring")


def layer() -> list[te.Tensor]:
    a, b = te.placeholder((4, 8), name="a"), te.placeholder((8, 6), name="b")
    return [a, b, topi.matmul(a, b)]


def tuned_in(folder: Path, weight: float) -> tuple[Path, str]:
    """A record file of a workload that no name stands for, with its IR and the weights of a network beside it."""
    task, path = lw.SearchTask(layer, target="llvm cores=1"), folder / "layer.jsonl"
    digest, key = task.compute_dag.hash, task.workload_key
    times = (weight * 1e-6,)
    record = Record(key, digest, str(task.target), "default", (), task.default_schedule, times, timestamp=weight)
    rec.append(path, [record])
    write_workload(path, digest, str(task.module))
    write_network(path, TunedNetwork(str(task.target), (WeightedTask("layer", digest, weight),)))
    return path, digest


@pytest.mark.slow(1.2)
def test_merged_records_bring_what_lies_beside_them(tmp_path: Path) -> None:
    (first, digest), (second, _) = tuned_in(tmp_path / "one", 1.0), tuned_in(tmp_path / "two", 2.0)
    merged = tmp_path / "all" / "merged.jsonl"
    code, _, err = call("records", "merge", str(first), str(second), "-o", str(merged))
    assert (code, err) == (0, "")
    assert len(networks_of(merged)) == 2
    assert json.loads(call("replay", str(merged), "--json")[1])["right"]
    assert call("report", str(merged), "--no-measure")[0] == 0
    assert lw.load_best(merged, target="llvm cores=1").workload_hash == digest
    with lw.apply_history_best(merged) as history:
        assert history.query("llvm cores=1", digest) is not None
    kept = tmp_path / "kept.jsonl"
    assert call("records", "distill", str(merged), "-o", str(kept))[0] == 0
    assert json.loads(call("replay", str(kept), "--json")[1])["right"] and len(networks_of(kept)) == 2
    picked = tmp_path / "picked.jsonl"
    lw.pick_best(merged, picked)
    assert json.loads(call("replay", str(picked), "--json")[1])["right"]


@pytest.mark.slow(1.2)
def test_merging_says_what_is_missing_and_replaces_no_other_workload(tmp_path: Path) -> None:
    (first, digest), merged = tuned_in(tmp_path / "one", 1.0), tmp_path / "merged.jsonl"
    beside = workload_file(merged, digest)
    other = lw.SearchTask("matmul", (2, 3, 4), "llvm cores=1")
    beside.write_text(str(other.module))
    code, _, err = call("records", "merge", str(first), "-o", str(merged))
    assert code == 2 and f"holds workload {other.compute_dag.hash}, where the IR of {digest} goes" in err
    assert not merged.exists() and beside.read_text() == str(other.module)
    beside.write_text("module {")  # torn
    assert call("records", "merge", str(first), "-o", str(merged))[0] == 0
    assert json.loads(call("replay", str(merged), "--json")[1])["right"]
    workload_file(first, digest).unlink()
    code, _, err = call("records", "merge", str(first), "-o", str(tmp_path / "again.jsonl"))
    assert code == 0 and f"no IR of workload {digest} is beside the files" in err
    assert call("records", "merge", str(first), "-o", str(merged))[2] == ""  # it is beside that one
