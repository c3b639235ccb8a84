"""Measured candidates of many random workloads, which the cost models that ship are trained on: a file of arrays.

    python benchmarks/collect_samples.py --target cuda --seconds 160 --output samples-h200.npz

Processes build, one runs and times what they made by replayed graphs, caches warm. Candidates of the first round are
drawn by the rules' estimates, with much noise; those of later rounds are what a model trained on the rounds before
likes best, of each sketch some, so that it learns where it is wrong. Outputs of all candidates of a workload are
compared with each other's on the same random inputs; what differs is left out, and said. `--fake` takes features for
times and builds nothing: to try the script without a device.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import queue
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sampled_workloads import KINDS, Workload, sampled
from train_cost_model import Samples, joined

import loopwright as lw
from loopwright.backends.cuda import device
from loopwright.backends.cuda.device import build
from loopwright.search.cost_model.general import General
from loopwright.search.features.catalogue import PRIOR, names
from loopwright.search.sketch.sketch import Sketch

COLUMNS = (*names(), PRIOR.name)
ROUNDS = (0.4, 0.35, 0.25)
"""Shares of the time of the rounds."""
DRAWN = 384
"""Candidates of a sketch that are looked at, of which some are measured."""
REPEAT_S, REPEATS = 2e-3, 3
HOPELESS = 30.0
"""Times the best of the workload: what is as slow is run once more, and not timed to the end."""
_RANDOM_ELEMENTS = 1 << 22
_COMPARED = 1 << 14
"""Elements of an output, about, that are compared."""


@dataclass(frozen=True)
class Sample:
    """A candidate of workload `number`: the sketch's number, its features and seconds."""

    number: int
    sketch: int
    round: int
    features: npt.NDArray[np.float32]
    time_s: float = float("nan")


@dataclass
class Searched:
    """A workload in a builder process."""

    number: int
    workload: str
    sketches: Sequence[Sketch]
    seen: set[tuple[int, bytes]] = field(default_factory=set)
    waiting: list[tuple[int, npt.NDArray[np.int64]]] = field(default_factory=list)


def main() -> None:
    options = _options()
    start_s = time.monotonic()
    workloads = sampled(options.seed, options.workloads, options.least_s, options.kinds)
    context = multiprocessing.get_context("spawn")
    built, found = context.Queue(4 * options.builders), context.Queue()
    builders = []
    for index in range(options.builders):
        ours, theirs = context.Pipe()
        own = [(n, workloads[n]) for n in range(index, len(workloads), options.builders)]
        process = context.Process(target=_builder, args=(index, own, options, theirs, built), daemon=True)
        process.start()
        builders.append((process, ours))
    runner = context.Process(target=_runner, args=(options, built, found), daemon=True)
    runner.start()
    samples: list[Sample] = []
    begun_s = time.monotonic()
    ends_s = begun_s + np.cumsum(ROUNDS) * (options.seconds - (begun_s - start_s))
    known = Samples.read(Path(options.start)) if options.start else None
    model = _trained([], workloads, known) if known else None
    for number, until_s in enumerate(ends_s):
        for _, connection in builders:
            connection.send((number, float(until_s), None if model is None else _as_file(model, options.output)))
        while time.monotonic() < until_s + 1:
            if not runner.is_alive():
                print("the runner ended, and is started again", flush=True)
                runner = context.Process(target=_runner, args=(options, built, found), daemon=True)
                runner.start()
            _take_in(found, samples, 0.5)
        print(f"{time.monotonic() - start_s:.0f} s: round {number}, {len(samples)} samples", flush=True)
        _save(samples, workloads, options)
        if number + 1 < len(ends_s):
            model = _trained(samples, workloads, known)
    for process, _ in builders:
        process.kill()
    runner.kill()
    print(f"{time.monotonic() - start_s:.0f} s in all")
    _summary(samples, workloads)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda", help="cuda, a device that is here, or with --fake any target")
    parser.add_argument("--workloads", type=int, default=260)
    parser.add_argument("--seconds", type=float, default=160.0, help="of building and measuring")
    parser.add_argument("--builders", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least-s", type=float, default=0.0, help="roofline of a workload, at least")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), help="of workloads: these alone")
    parser.add_argument("--start", help="samples of another run, which the first model is trained on too")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--output", default="samples.npz")
    options = parser.parse_args()
    if options.target == "cuda":
        from loopwright.backends.cuda.driver import target_of_device

        options.target = str(target_of_device())
    return options


def _take_in(found: Any, samples: list[Sample], wait_s: float) -> None:
    until_s = time.monotonic() + wait_s
    while (left_s := until_s - time.monotonic()) > 0:
        try:
            samples.append(found.get(timeout=left_s))
        except queue.Empty:
            return


def _right(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if np.isfinite(sample.time_s)]


def _trained(samples: Sequence[Sample], workloads: Sequence[Workload], known: Samples | None) -> General:
    right = _right(samples)
    parts = [known] if known else []
    if right:
        features, times_s = np.stack([s.features for s in right]), np.array([s.time_s for s in right])
        numbers = np.array([s.number for s in right])
        parts.append(Samples(COLUMNS, tuple(w.kind for w in workloads), features, times_s, numbers))
    return joined(parts).train()


def _as_file(model: General, output: str) -> str:
    path = f"{output}.model"
    model.save(path)
    return path


def _save(samples: Sequence[Sample], workloads: Sequence[Workload], options: argparse.Namespace) -> None:
    right = _right(samples)
    said = {"target": options.target, "loopwright": lw.__version__, "seed": options.seed, "columns": COLUMNS}
    said["workloads"] = [[w.kind, *w.args] for w in workloads]
    np.savez_compressed(
        options.output,
        about=np.array(json.dumps(said)),
        features=np.stack([s.features for s in right]),
        times_s=np.array([s.time_s for s in right], dtype=np.float32),
        workloads=np.array([s.number for s in right], dtype=np.int16),
        sketches=np.array([s.sketch for s in right], dtype=np.int8),
        rounds=np.array([s.round for s in right], dtype=np.int8),
    )


def _summary(samples: Sequence[Sample], workloads: Sequence[Workload]) -> None:
    by_kind: dict[str, list[Sample]] = collections.defaultdict(list)
    for sample in samples:
        by_kind[workloads[sample.number].kind].append(sample)
    for kind, own in by_kind.items():
        measured, failed = len({sample.number for sample in own}), len(own) - len(_right(own))
        print(f"{kind}: {len(own)} samples of {measured} workloads, {failed} failed")


# -- builders ---------------------------------------------------------------------------------------------------------


def _builder(
    index: int, own: Sequence[tuple[int, Workload]], options: argparse.Namespace, orders: Any, built: Any
) -> None:
    rng = np.random.default_rng([options.seed, index])
    tasks: dict[int, Searched] = {}
    while True:
        number, until_s, path = orders.recv()
        model = None if path is None else lw.load_cost_model(path)
        for task in tasks.values():
            task.waiting = []
        while time.monotonic() < until_s:
            for at, workload in own:
                if time.monotonic() > until_s:
                    break
                try:
                    if at not in tasks:
                        made = workload.task(options.target)
                        tasks[at] = Searched(at, str(made.module), made.sketches)
                    _build_some(rng, tasks[at], model, number, options, built)
                except Exception as error:  # one workload must not cost the others their time
                    print(f"{workload}: {type(error).__name__}: {str(error).splitlines()[0][:300]}", flush=True)


def _build_some(
    rng: np.random.Generator, task: Searched, model: Any, number: int, options: argparse.Namespace, built: Any
) -> None:
    """Build the next two candidates of a workload."""
    if not task.waiting:
        drawn = _drawn(rng, task) if number == 0 else []
        liked = _liked(rng, task, model) if model else []
        task.waiting = [one for pair in itertools.zip_longest(drawn, liked) for one in pair if one is not None]
    for _ in range(min(2, len(task.waiting))):
        sketch, row = task.waiting.pop(0)
        task.seen.add((sketch, row.tobytes()))
        features = task.sketches[sketch].features(row[None])[0]
        sample = Sample(task.number, sketch, number, features)
        blob = b"" if options.fake else build(task.workload, task.sketches[sketch].schedule(row))
        built.put((asdict(sample), blob))


def _drawn(rng: np.random.Generator, task: Searched) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Candidates by the estimates of each sketch, the more likely the better, from one sketch after the other."""
    found = [(0, task.sketches[0].default)]
    for number in rng.permutation(len(task.sketches)):
        sketch = task.sketches[number]
        rows = _rows(rng, sketch)
        order = np.arange(len(rows)) if sketch.prior is None else np.argsort(sketch.prior(sketch.columns(rows)))
        chosen = order[(len(rows) * rng.random(4) ** 3).astype(int)]
        found += [(int(number), rows[at]) for at in dict.fromkeys(chosen.tolist())]
    first, rest = found[0], found[1:]
    shuffled = [rest[n] for n in rng.permutation(len(rest))]
    return [one for one in [first, *shuffled] if (one[0], one[1].tobytes()) not in task.seen]


def _liked(rng: np.random.Generator, task: Searched, model: General) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Return what the model likes best, unlike each other: two of each sketch, and the best of all."""
    scored = []
    for number, sketch in enumerate(task.sketches):
        rows = _rows(rng, sketch)
        fresh = np.array([(number, row.tobytes()) not in task.seen for row in rows], dtype=bool)
        rows = rows[fresh]
        if len(rows):
            scored += [
                (score, number, row) for score, row in zip(model.predict(sketch.features(rows))[0], rows, strict=True)
            ]
    scored.sort(key=lambda one: -one[0])
    taken: list[tuple[int, npt.NDArray[np.int64]]] = []
    counts: collections.Counter[int] = collections.Counter()
    for _, number, row in scored:
        alike = any(n == number and (row != other).sum() < 0.3 * len(row) for n, other in taken)
        if not alike and (counts[number] < 2 or len(taken) < 6) and len(taken) < 14:
            counts[number] += 1
            taken.append((number, row))
    return taken


def _rows(rng: np.random.Generator, sketch: Sketch) -> npt.NDArray[np.int64]:
    if not sketch.holes:
        return sketch.default[None]
    return np.unique(sketch.population.sample(rng, DRAWN), axis=0)


# -- the runner -------------------------------------------------------------------------------------------------------


class Buffers:
    """Arguments of one workload on the device, and what its first candidate wrote."""

    def __init__(self, executable: Any) -> None:
        self.runtime = executable.runtime
        self.arguments = executable.arguments
        values = np.random.default_rng(0).standard_normal(_RANDOM_ELEMENTS).astype(np.float32)
        self.buffers = []
        self.first: list[npt.NDArray[Any]] | None = None
        self.best_s = float("inf")
        for argument in self.arguments:
            array = np.resize(values, argument.shape).astype(argument.dtype)
            self.buffers.append(self.runtime.allocate(array.nbytes))
            self.runtime.upload(self.buffers[-1], array)

    def agrees(self, executable: Any) -> bool:
        """True where the outputs are those of the first candidate."""
        got = []
        for argument, buffer in zip(self.arguments, self.buffers, strict=True):
            if argument.is_output:
                array = np.empty(argument.shape, argument.dtype)
                executable.runtime.download(array, buffer)
                got.append(array.reshape(-1)[:: max(1, array.size // _COMPARED)].astype(np.float64))
        if self.first is None:
            self.first = got
        pairs = zip(got, self.first, strict=True)
        return all(np.allclose(a, b, rtol=1e-2, atol=1e-2 * (1e-6 + float(np.abs(b).max()))) for a, b in pairs)


def _runner(options: argparse.Namespace, built: Any, found: Any) -> None:
    known: dict[int, Buffers] = {}
    while True:
        said, blob = built.get()
        sample = Sample(**said)
        try:
            time_s = (
                2.0 ** float(sample.features[COLUMNS.index("bound.total")])
                if options.fake
                else _timed(blob, sample, known)
            )
        except Exception as error:
            text = str(error).splitlines()[0][:300] if str(error) else ""
            print(f"workload {sample.number}: {type(error).__name__}: {text}", flush=True)
            found.put(sample)
            if "Error" in type(error).__name__ and ("cu" in text or "CUDA" in text):
                traceback.print_exc()
                time.sleep(0.2)  # what is in the queue is sent by a thread
                os._exit(1)
            continue
        found.put(Sample(**{**said, "time_s": time_s}))


def _timed(blob: bytes, sample: Sample, known: dict[int, Buffers]) -> float:
    """Seconds of one run; NaN where the outputs are others than those of the first candidate."""
    executable: Any = device.load(blob)
    if sample.number not in known:
        known[sample.number] = Buffers(executable)
    buffers = known[sample.number]
    executable.run_on(buffers.buffers, [])
    if not buffers.agrees(executable):
        print(
            f"workload {sample.number}, sketch {sample.sketch}: another result than the first candidate's", flush=True
        )
        return float("nan")
    probe_s = min(executable.time_on(buffers.buffers, 1) for _ in range(2))
    if probe_s > HOPELESS * buffers.best_s:
        return float(probe_s)
    number = int(np.clip(REPEAT_S / probe_s, 1, 100))
    time_s = float(min(executable.time_on(buffers.buffers, number) for _ in range(REPEATS))) / number
    buffers.best_s = min(buffers.best_s, time_s)
    return time_s


if __name__ == "__main__":
    main()
