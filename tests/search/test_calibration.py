"""Calibration: samples of random layers, the model that is trained on them, and where it is used."""

import json
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.cli import main
from loopwright.search.calibrate import calibration
from loopwright.search.calibrate.candidates import likely_candidates
from loopwright.search.calibrate.workloads import drawn_workloads
from loopwright.search.cost_model import Floats
from loopwright.search.cost_model.general import General, Growth
from loopwright.search.cost_model.held_out import geometric_mean, is_better, picked
from loopwright.search.cost_model.local import MODEL, SAMPLES, Calibration, folder_of, keep, local_model
from loopwright.search.cost_model.saved import known_features
from loopwright.search.cost_model.shipped import model_for, shipped_model
from loopwright.search.records import file as rec
from loopwright.search.sketch.one_core import as_on_one_core
from loopwright.search.sketch.sketch import Sketch
from loopwright.search.workload import ComputeDAG
from loopwright.storage.code_digest import models_digest

TARGET = "llvm model=znver3 l3_bytes=33554432"
ABOUT = Calibration(TARGET, "a CPU", 600, 30, {"calibrated": 1.1, "ships": 1.2, "estimates": 1.3}, kept=True)


COLUMNS = tuple(known_features())


def features(seed: int) -> Floats:
    return np.round(np.random.default_rng(seed).normal(size=(60, len(COLUMNS)))).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> General:
    drawn = features(0)
    return General.trained(COLUMNS, drawn, np.exp2(drawn[:, 0]), np.repeat(np.arange(6), 10), growth=Growth(trees=4))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def kept(model: General, about: Calibration = ABOUT) -> Path:
    folder = folder_of(resolve_target(about.target))
    assert folder is not None
    keep(model, about, folder)
    return folder / MODEL


def test_a_calibrated_model_takes_the_place_of_the_one_that_ships(model: General) -> None:
    alone, others = resolve_target(TARGET), resolve_target("llvm model=znver2")
    assert model_for(alone, "float32") is shipped_model("llvm")
    kept(model)
    found = model_for(alone, "float32")
    assert found is not None
    assert np.array_equal(found.predict(features(1))[0], model.predict(features(1))[0])
    assert model_for(others, "float32") is shipped_model("llvm")
    assert model_for(alone, "float16") is None
    assert Calibration.of(alone) == ABOUT
    assert Calibration.of(others) is None


def test_it_serves_all_cores_and_cpus_that_none_ships_for(model: General) -> None:
    arm = "llvm model=cortex-a72"
    assert lw.SearchTask("matmul", (64, 64, 64), target=f"{arm} cores=4").compared_by is None
    kept(model, replace(ABOUT, target=arm))
    task = lw.SearchTask("matmul", (64, 64, 64), target=f"{arm} cores=4")
    assert task.compared_by is local_model(resolve_target(arm))
    assert task.default_schedule


def test_candidates_are_described_as_the_model_beneath_knows_them(model: General) -> None:
    def described(sketches: Sequence[Sketch]) -> list[Floats]:
        return [each.features(each.default[None]) for each in sketches if each.seen_template != each.template]

    def same(some: Sequence[Sketch], others: Sequence[Sketch]) -> bool:
        pairs = zip(described(some), described(others), strict=True)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    kept(model)
    task = lw.SearchTask("conv2d", (1, 14, 14, 64, 64), target=TARGET)
    assert not same(task.compared_sketches, task.sketches)
    assert same(as_on_one_core(task.sketches, task.module, task.target, 1, as_seen=False), task.sketches)


def test_a_model_corrects_its_ground_and_files_hold_both(model: General, tmp_path: Path) -> None:
    drawn, tasks = features(2), np.repeat(np.arange(6), 10)
    times_s = np.exp2(-model.predict(drawn)[0] + drawn[:, 1])
    upon = General.trained(COLUMNS, drawn, times_s, tasks, growth=Growth(trees=4), ground=model)
    missed = upon.predict(features(3))[0] - model.predict(features(3))[0]
    assert np.corrcoef(missed, -features(3)[:, 1])[0, 1] > 0.5
    upon.save(tmp_path / "upon")
    found = lw.load_cost_model(tmp_path / "upon")
    assert np.array_equal(found.predict(features(3))[0], upon.predict(features(3))[0])
    General.trained(COLUMNS, drawn, times_s, tasks, growth=Growth(trees=4), ground=upon).save(tmp_path / "deeper")
    with pytest.raises(lw.CostModelError, match="the ground of a model has one itself"):
        lw.load_cost_model(tmp_path / "deeper")


def test_one_that_picks_no_better_is_not_used(model: General) -> None:
    kept(model, replace(ABOUT, kept=False))
    assert model_for(resolve_target(TARGET), "float32") is shipped_model("llvm")


@pytest.mark.parametrize("fault", ["damaged", "cut off", "empty", "another file", "another version", "no numbers"])
def test_what_cannot_be_used_is_said_and_left_out(model: General, fault: str) -> None:
    path = kept(model, replace(ABOUT, estimates="0" * 64 if fault == "another version" else ABOUT.estimates))
    data = path.read_bytes()
    match fault:
        case "damaged":
            path.write_bytes(data[:-9] + b"x" + data[-8:])
        case "cut off":
            path.write_bytes(data[: len(data) // 2])
        case "empty":
            path.write_bytes(b"")
        case "another file":
            model.save(path)
        case "no numbers":
            keep(model, replace(ABOUT, picks={"calibrated": float("nan")}), path.parent)
    target = resolve_target(TARGET)
    with pytest.warns(lw.CalibrationWarning, match="loopwright calibrate"):
        assert model_for(target, "float32") is shipped_model("llvm")
    if fault != "another version":
        with pytest.raises(lw.CostModelError, match="is no calibrated cost model"):
            Calibration.of(target)
    kept(model)
    assert model_for(target, "float32") is not shipped_model("llvm")


def test_warnings_are_of_the_line_that_asks_for_a_schedule(model: General) -> None:
    kept(model).write_bytes(b"")
    task = lw.SearchTask("matmul", (64, 64, 64), target=TARGET)
    with pytest.warns(lw.CalibrationWarning, match="is not used") as said:
        assert task.compared_by is shipped_model("llvm")
    assert [one.filename for one in said] == [__file__]


def test_several_processes_may_keep_a_model_at_once(model: General) -> None:
    path = kept(model)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: kept(model), range(32)))
    assert Calibration.of(resolve_target(TARGET)) == ABOUT
    assert [*path.parent.iterdir()] == [path]


def test_choices_that_are_kept_know_of_it(model: General) -> None:
    before = models_digest()
    path = kept(model)
    assert models_digest() != before
    path.unlink()
    assert models_digest() == before


def test_choices_are_kept_where_models_go_meanwhile_or_cannot_be_reached(
    model: General, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept(model)
    digest = models_digest()
    gone = path.parent.with_name("llvm-gone") / MODEL
    gone.parent.mkdir()
    gone.symlink_to(home / "nothing")
    assert models_digest() == digest
    path.unlink()
    none = models_digest()
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ("x" * 300)))
    assert models_digest() == none
    assert model_for(resolve_target(TARGET), "float32") is shipped_model("llvm")


def test_workloads_are_different_and_the_same_each_time() -> None:
    found = [*islice(drawn_workloads(3), 40)]
    hashes = [ComputeDAG.from_tensors(tensors).hash for _, tensors in found]
    assert hashes == [ComputeDAG.from_tensors(tensors).hash for _, tensors in islice(drawn_workloads(3), 40)]
    assert len({*hashes}) == 40
    assert len({name for name, _ in found}) > 5
    texts = [str(ComputeDAG.from_tensors(tensors)) for _, tensors in found]
    assert {str(tensor.dtype) for _, tensors in found for tensor in tensors} == {"float32"}
    assert all(texts)


def test_candidates_are_distinct_legal_and_of_several_sketches() -> None:
    task = lw.SearchTask("conv2d", (1, 14, 14, 64, 64), target=TARGET)
    found = likely_candidates(np.random.default_rng(0), task.compared_sketches, task.compared_by, 0, 20)
    assert len({(number, row.tobytes()) for number, row in found}) == len(found) == 20
    assert len({number for number, _ in found}) > 2
    assert all(task.sketches[number].legal(row[None]).all() for number, row in found)


def test_picks_are_of_workloads_of_several_samples() -> None:
    scores, times_s = np.array([1.0, 2.0, 5.0, 3.0, 1.0]), np.array([1.0, 2.0, 1.0, 4.0, 7.0])
    found = picked(scores, times_s, np.array([0, 0, 1, 1, 2]))
    assert found.tolist() == [2.0, 1.0]
    assert geometric_mean(found) == pytest.approx(2**0.5)


def test_a_model_that_is_better_by_luck_is_not_better() -> None:
    others = np.full(10, 1.2)
    lucky = others * np.array([0.6, *[1.01] * 9])
    assert geometric_mean(lucky) < geometric_mean(others)
    assert not is_better(lucky, others)
    assert not is_better(others, others)
    assert is_better(others * np.random.default_rng(0).uniform(0.85, 1.02, 10), others)


@pytest.mark.usefixtures("quick_measuring")
def test_samples_are_gone_on_with_and_trained_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibration, "FEWEST", 2)
    monkeypatch.setattr(calibration, "drawn_workloads", lambda seed: iter(_small()))
    lines: list[str] = []
    with pytest.raises(lw.CalibrationError, match="at least 2 workloads, and there are 1"):
        lw.calibrate(time_limit_s=60, workloads=1, candidates=3, say=lines.append)
    found = lw.calibrate(time_limit_s=60, workloads=3, candidates=3, say=lines.append)
    assert [line for line in lines if "earlier" in line] == ["1 workload from earlier calls"]
    assert (found.workloads, found.samples) == (3, 9)
    assert {*found.picks} >= {"calibrated", "estimates"}
    folder = folder_of(resolve_target("llvm"))
    assert folder is not None
    assert len(rec.load(folder / SAMPLES)) == 9
    again = lw.calibrate(time_limit_s=0, say=lines.append)
    assert replace(again, made_s=0.0) == replace(found, made_s=0.0)
    assert main(["calibrate", "--list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["calibrations"].values()
    assert listed["samples"] == 9
    assert main(["calibrate", "--remove"]) == 0
    assert not folder.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Calibration.of(resolve_target("llvm")) is None


def _small() -> list[tuple[str, list[lw.te.Tensor]]]:
    found = []
    for size in (32, 48, 64):
        a, b = lw.te.placeholder((size, 32), name="a"), lw.te.placeholder((32, size), name="b")
        found.append(("matmul", [a, b, lw.topi.matmul(a, b)]))
    return found


def test_other_targets_are_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(lw.CalibrationError, match="calibration is of CPUs"):
        lw.calibrate("cuda model=h200")
    assert main(["calibrate", "--target", "no"]) == 2
    assert main(["calibrate", "--train-only"]) == 1
    assert "at least 10 workloads, and there are 0" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "least"), [("--candidates", 2), ("--seed", 0), ("--workloads", 1)])
def test_numbers_that_teach_nothing_are_refused(option: str, least: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", option, str(least - 1)])
    assert ended.value.code == 2
    assert f"must be a whole number of at least {least}" in capsys.readouterr().err
    wrong: dict[str, Any] = {option[2:]: least - 1}
    with pytest.raises(ValueError, match="at least"):
        lw.calibrate(**wrong)
