"""Calibration of a CPU's cost model: samples of random layers, timed here, and a model of them that choices go by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...backends.host_memory import NotEnoughMemory
from ...backends.targets import resolve_target
from ...dialects.counts import require_count
from ...dialects.target import Target
from ..cost_model import Floats
from ..cost_model.general import General
from ..cost_model.held_out import folds_of, geometric_mean, held_out_predictions, is_better, picked, trained_for
from ..cost_model.local import SAMPLES, Calibration, folder_of, keep
from ..cost_model.saved import known_features
from ..cost_model.shipped import shipped_for
from ..features.catalogue import PRIOR
from ..features.of_records import RecordFeatures
from ..measure.local import Measure, measuring
from ..measure.measurement import MeasureError
from ..measure.measurer import Measurer
from ..records import file as rec
from ..records.file import Record, Role
from ..records.workload_files import dag_of_file, write_workload
from ..sketch.one_core import as_on_one_core
from ..strategies.strategy import Proposal
from ..task import SearchTask
from ..task_in_search import TaskInSearch
from ..tune.deadline import Deadline
from ..tune.options import TuningOptions
from ..tune.progress import counted
from ..tune.trial import Trial, record_of
from .candidates import likely_candidates
from .workloads import drawn_workloads

CANDIDATES = 20
"""Of a workload. A choice: with more of each there are fewer workloads, and models are to carry over to others."""
FEWEST = 10
"""Workloads that a model is trained on, at least. A choice: two in each fold."""
FEWEST_CANDIDATES = 2
"""Samples of a workload, at least: of one alone nothing is learned."""
LOOKED_AT = 4096
"""Workloads of a seed that are drawn, at most. A choice: more than a day of sampling."""

Say = Callable[[str], None]


class CalibrationError(MeasureError):
    """There is no calibration: the target is none that is calibrated for, or too little was measured."""


@dataclass(frozen=True)
class _Samples:
    """Samples of workloads: features as models are asked by them, seconds, and the numbers of the workloads."""

    features: Floats
    times_s: Floats
    tasks: npt.NDArray[np.int64]

    @property
    def workloads(self) -> int:
        """Numbers begin at 0, and none is left out."""
        return int(self.tasks.max(initial=-1)) + 1


def calibrate(
    target: str | Target = "llvm",
    time_limit_s: float = 600.0,
    workloads: int | None = None,
    seed: int = 0,
    candidates: int = CANDIDATES,
    measure: Measure = None,
    say: Say = print,
) -> Calibration:
    """Draw samples of random layers on one core of this CPU, and train the cost model that untuned schedules go by.

    Samples are measured for about `time_limit_s` seconds, or until there are so many `workloads`, beside those that are
    there from earlier calls, so that one that was interrupted is gone on with; with 0 seconds the model is trained
    again. It is used from then on where what it picks of workloads that it has not seen is faster than what the
    estimates pick and the model that ships, by more than chance (`is_better`). `say` is told of the progress, a line
    each. CalibrationError where there is nothing to train on, or the target is not of a CPU.
    """
    alone = _one_core(target)
    for name, count in (("candidates", candidates), *([("workloads", workloads)] if workloads is not None else [])):
        require_count(name, count)
    if candidates < FEWEST_CANDIDATES or seed < 0:
        raise ValueError(
            f"candidates must be at least {FEWEST_CANDIDATES}, one of which is picked, and the seed 0 or more, got "
            f"{candidates} and {seed}"
        )
    folder = folder_of(alone)
    if folder is None:
        raise CalibrationError("this user has no home folder (XDG_DATA_HOME names another place)")
    samples = folder / SAMPLES
    if time_limit_s > 0:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Measurer(measuring(measure, SearchTask("matmul", target=alone).measure_options(), None, None)) as measurer:
            _sample(_Sampling(alone, samples, measurer, Deadline.after(time_limit_s), seed, candidates), workloads, say)
    return _trained(alone, samples, folder, say)


def _one_core(target: str | Target) -> Target:
    found = resolve_target(target)
    if found.kind != "llvm":
        raise CalibrationError(f"calibration is of CPUs, and the target is '{found}'; the model that ships stays")
    return found.with_cores(1)


# -- sampling ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sampling:
    """A run of sampling: the target, where records go, the measurer, the time, and candidates of each workload."""

    target: Target
    records: Path
    measurer: Measurer
    deadline: Deadline
    seed: int
    candidates: int


def _sample(to: _Sampling, wanted: int | None, say: Say) -> None:
    """Measure candidates of one workload after the other, of those that the records do not hold yet."""
    rec.require_writable(to.records)
    known = {record.workload_hash for record in rec.load(to.records)} if to.records.is_file() else set()
    found = len(known)
    if known:
        say(f"{counted(found, 'workload')} from earlier calls")
    for number, (name, tensors) in enumerate(drawn_workloads(to.seed)):
        if to.deadline.left_s <= 0 or number >= LOOKED_AT or (wanted is not None and found >= wanted):
            return
        task = SearchTask(tensors, target=to.target)
        if task.compute_dag.hash in known:
            continue
        with suppress(NotEnoughMemory):
            records = _measured(task, to, np.random.default_rng([to.seed, number]))
            if not records:
                continue
            write_workload(to.records, task.compute_dag.hash, task.compute_dag.text)
            rec.append(to.records, records)
            found += 1
            right, left_s = sum(record.ok for record in records), max(0.0, to.deadline.left_s)
            say(f"{counted(found, 'workload')}: {name}, {counted(right, 'sample')}; {left_s:.0f} s left")


def _measured(task: SearchTask, to: _Sampling, rng: np.random.Generator) -> list[Record]:
    """The records of candidates of a task; of a few where the time ends."""
    sketches, model = task.compared_sketches, task.compared_by
    chosen = likely_candidates(rng, sketches, model, 0, to.candidates)
    measurer = to.measurer
    measurer.use(task.reference.task(str(task.module)))
    schedules = {sketches[number].schedule(row): (number, row) for number, row in chosen}
    measurer.submit([*schedules])
    seen, options = TaskInSearch(task), TuningOptions()
    records: list[Record] = []
    for found in measurer.results(lambda: measurer.withdraw() if to.deadline.left_s <= 0 else None):
        number, row = schedules[found.schedule]
        trial = Trial(Proposal(number, tuple(row.tolist()), found.schedule))
        records.append(record_of(seen, trial, found, measurer, options, Role.TRIAL))
    return records


# -- training ---------------------------------------------------------------------------------------------------------


def _trained(target: Target, path: Path, folder: Path, say: Say) -> Calibration:
    """Train on all samples, keep the model, and say how good it is; CalibrationError where there are too few."""
    records = [r for r in rec.load(path) if r.role is Role.TRIAL and r.ok] if path.is_file() else []
    ships = shipped_for(target)
    known = _described(target, records, path, ships is not None)
    if known.workloads < FEWEST:
        raise CalibrationError(
            f"a cost model takes samples of at least {FEWEST} workloads, and there are {known.workloads}: give it more "
            "time"
        )
    say(f"training on {counted(len(known.times_s), 'sample')} of {counted(known.workloads, 'workload')}")
    columns = tuple(known_features())

    def train(seen: npt.NDArray[np.bool_]) -> General:
        return trained_for(target.kind, columns, known.features[seen], known.times_s[seen], known.tasks[seen], ships)

    scores: dict[str, Floats] = {"calibrated": held_out_predictions(train, known.features, folds_of(known.tasks))}
    if ships is not None:
        scores["ships"] = ships.predict(known.features)[0]
    scores["estimates"] = -known.features[:, columns.index(PRIOR.name)]
    ratios = {name: picked(own, known.times_s, known.tasks) for name, own in scores.items()}
    picks = {name: geometric_mean(own) for name, own in ratios.items()}
    own, *others = ratios.values()
    kept = all(is_better(own, other) for other in others)
    device = max(records, key=lambda r: r.timestamp).device
    about = Calibration(str(target), device, len(known.times_s), known.workloads, picks, kept)
    keep(train(np.ones(len(known.tasks), dtype=bool)), about, folder)
    return about


def _described(target: Target, records: Sequence[Record], path: Path, as_seen: bool) -> _Samples:
    """The samples that sketches still give, where they have estimates; described as for `as_on_one_core`."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.workload_hash, []).append(record)
    parts = []
    for group in groups.values():
        if (dag := dag_of_file(group[0], path)) is None:
            continue
        task = SearchTask(dag.module, target=target)
        of_record = RecordFeatures(task.module, target, as_on_one_core(task.sketches, task.module, target, 1, as_seen))
        current = [record for record in group if of_record.is_current(record)]
        features, times_s = of_record(current), np.array([record.time_s for record in current])
        right = np.isfinite(features[:, -1])
        if right.sum() >= FEWEST_CANDIDATES:
            parts.append((features[right], times_s[right]))
    if not parts:
        return _Samples(np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=np.int64))
    tasks = np.repeat(np.arange(len(parts)), [len(times_s) for _, times_s in parts])
    return _Samples(np.concatenate([f for f, _ in parts]), np.concatenate([t for _, t in parts]), tasks)
