"""Measured candidates of many random workloads, which the cost models that ship are trained on: a file of arrays.

    python benchmarks/collect_samples.py --target cuda --seconds 160 --output samples-h200.npz
    python benchmarks/collect_samples.py --target llvm --threads 1 --builders 12 --seconds 250 --output samples-xeon.npz

On a GPU processes build, and one runs and times what they made by replayed graphs. On a CPU each process has cores of
its own, and times what it has built: on one thread in seconds of the CPU. All of them share the last cache and memory,
so that fewer processes than cores are less wrong about what does not fit the others. Caches are warm either way, but
for `--rotated-bytes`.
Candidates of the first round are drawn by the rules' estimates, with much noise; those of later rounds are what a model
trained on the rounds before likes best, of each sketch some, so that it learns where it is wrong. Outputs of all
candidates of a workload are compared with each other's on the same random inputs; what differs is left out, and said.
The file holds what candidates are (their holes' values), so that estimates can be computed of them anew, and features.
`--fake` takes features for times and builds nothing: to try the script without a device.
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rebuilt_samples import COLUMNS
from rounds import clock_of_a_thread
from sample_buffers import Buffers, DeviceBuffers, HostBuffers
from sampled_workloads import KINDS, Workload, mix_of, sampled
from train_cost_model import Samples, joined

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.search.calibrate.candidates import DRAWN, LIKELY, drawn_of, liked
from loopwright.search.cost_model.general import General
from loopwright.search.measure.backend_api import backend_path, load_backend
from loopwright.search.sketch.likely import STEPS, likely_rows
from loopwright.search.sketch.sketch import Sketch

ROUNDS = (0.4, 0.35, 0.25)
"""Shares of the time of the rounds."""
SPREAD, SPREAD_NOISE, SPREAD_FAR = 12, 0.15, 1.6
"""Of a sketch, candidates unlike each other that are drawn at once, and how much chance there is in their order, in
logarithms of their estimates; none is estimated at more than so many times the least."""
REPEAT_S, REPEATS = 2e-3, 3
HOPELESS = {"cuda": 30.0, "llvm": 6.0}
"""Times the best of the workload: what is as slow is not timed to the end. A CPU needs 1,000 times as long to run a
workload, and as long to build it."""
AGAIN = 5
"""Runs more of what looks so slow. Of 8,868 candidates on fifteen cores 102 took 4 times the best one's time and three
times what estimates said beside the others', some of them with the very features of fast ones."""


@dataclass(frozen=True)
class Sample:
    """A candidate of workload `number`: the sketch's number, its features, what fills its holes, and its seconds."""

    number: int
    sketch: int
    round: int
    features: npt.NDArray[np.float32]
    holes: tuple[str, ...]
    values: tuple[int, ...]
    time_s: float = float("nan")


@dataclass
class Searched:
    """A workload in a builder process."""

    number: int
    workload: str
    sketches: Sequence[Sketch]
    rounds: int
    """Rounds in which candidates are changed by their estimates alone, as untuned schedules are chosen."""
    spread: bool = False
    """Drawn ones are unlike in what decides how a product's loop runs."""
    seen: set[tuple[int, bytes]] = field(default_factory=set)
    waiting: list[tuple[int, npt.NDArray[np.int64]]] = field(default_factory=list)


def main() -> None:
    options = _options()
    start_s = time.monotonic()
    mix = mix_of(options.target)
    workloads = sampled(options.seed, options.workloads, options.least_s, options.kinds, mix)
    context = multiprocessing.get_context("spawn")
    built, found = context.Queue(4 * options.builders), context.Queue()
    builders = []
    for index in range(options.builders):
        ours, theirs = context.Pipe()
        own = [(n, workloads[n]) for n in range(index, len(workloads), options.builders)]
        process = context.Process(target=_builder, args=(index, own, options, theirs, built, found), daemon=True)
        process.start()
        builders.append((process, ours))
    runner = context.Process(target=_runner, args=(options, built, found), daemon=True)
    runner.start()
    samples: list[Sample] = []
    begun_s = time.monotonic()
    ends_s = begun_s + np.cumsum(ROUNDS) * (options.seconds - (begun_s - start_s))
    known = joined([Samples.read(path) for path in options.start]) if options.start else None
    model = options.model or (_as_file(_trained([], workloads, known, options), options.output) if known else None)
    for number, until_s in enumerate(ends_s):
        for process, connection in builders:
            if not process.is_alive():
                print(f"a builder ended with {process.exitcode}, and its workloads are left", flush=True)
                continue
            connection.send((number, float(until_s), model))
        while time.monotonic() < until_s + 1:
            if not runner.is_alive():
                print("the runner ended, and is started again", flush=True)
                runner = context.Process(target=_runner, args=(options, built, found), daemon=True)
                runner.start()
            _take_in(found, samples, 0.5)
        print(f"{time.monotonic() - start_s:.0f} s: round {number}, {len(samples)} samples", flush=True)
        _save(samples, workloads, options)
        if number + 1 < len(ends_s):
            model = _as_file(_trained(samples, workloads, known, options), options.output)
    for process, _ in builders:
        process.kill()
    runner.kill()
    print(f"{time.monotonic() - start_s:.0f} s in all")
    _summary(samples, workloads)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--target", default="cuda", help="cuda or llvm, a device that is here, or with --fake any target"
    )
    parser.add_argument("--threads", type=int, default=1, help="of a kernel on a CPU: as many cores for each process")
    parser.add_argument("--workloads", type=int, default=260)
    parser.add_argument("--seconds", type=float, default=160.0, help="of building and measuring")
    parser.add_argument("--builders", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least-s", type=float, default=0.0, help="roofline of a workload, at least")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), help="of workloads: these alone")
    parser.add_argument(
        "--start", type=Path, nargs="+", help="samples of other runs, which the first model is trained on too"
    )
    parser.add_argument("--model", help="file of the model of the first round, instead of one that is trained")
    parser.add_argument(
        "--spread", action="store_true", help="draw candidates that are unlike in results and threads of a block"
    )
    parser.add_argument(
        "--rotated-bytes",
        type=int,
        default=0,
        help="of copies of all inputs but the first, read in turn: more than a GPU's cache for weights from memory",
    )
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--output", default="samples.npz")
    options = parser.parse_args()
    if options.target == "cuda":
        from loopwright.backends.cuda.driver import target_of_device

        options.target = str(target_of_device())
    elif options.target == "llvm":
        options.target = str(resolve_target(f"llvm cores={options.threads}"))
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


def _trained(
    samples: Sequence[Sample], workloads: Sequence[Workload], known: Samples | None, options: argparse.Namespace
) -> General:
    right = _right(samples)
    parts = [known] if known else []
    if right:
        features, times_s = np.stack([s.features for s in right]), np.array([s.time_s for s in right])
        numbers, target = np.array([s.number for s in right]), options.target.split()[0]
        parts.append(Samples(COLUMNS, tuple(w.kind for w in workloads), features, times_s, numbers, target))
    return joined(parts).train()


def _as_file(model: General, output: str) -> str:
    path = f"{output}.model"
    model.save(path)
    return path


def _save(samples: Sequence[Sample], workloads: Sequence[Workload], options: argparse.Namespace) -> None:
    right = _right(samples)
    if not right:
        return
    said = {"target": options.target, "loopwright": lw.__version__, "seed": options.seed, "columns": COLUMNS}
    said["workloads"] = [[w.kind, *w.args] for w in workloads]
    said["constant"] = [w.constant for w in workloads]
    spaces = list(dict.fromkeys(s.holes for s in right))
    said["holes"] = spaces
    np.savez_compressed(
        options.output,
        about=np.array(json.dumps(said)),
        features=np.stack([s.features for s in right]),
        times_s=np.array([s.time_s for s in right], dtype=np.float32),
        workloads=np.array([s.number for s in right], dtype=np.int16),
        sketches=np.array([s.sketch for s in right], dtype=np.int8),
        rounds=np.array([s.round for s in right], dtype=np.int8),
        spaces=np.array([spaces.index(s.holes) for s in right], dtype=np.int16),
        values=np.array([value for s in right for value in s.values], dtype=np.int32),
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
    index: int, own: Sequence[tuple[int, Workload]], options: argparse.Namespace, orders: Any, built: Any, found: Any
) -> None:
    rng = np.random.default_rng([options.seed, index])
    tasks: dict[int, Searched] = {}
    timer = _own_timer(index, options)
    backend = load_backend(backend_path(options.target.split()[0]))
    while True:
        number, until_s, path = orders.recv()
        model = None if path is None else lw.load_cost_model(path)
        for task in tasks.values():
            task.waiting = []
        for at, workload in _in_turns(own, until_s):
            try:
                if at not in tasks:
                    tasks[at] = _searched(at, workload, options)
                for sample, schedule in _next(rng, tasks[at], model, number):
                    blob = b"" if options.fake else backend.build(tasks[at].workload, schedule)
                    if timer is None:
                        built.put((asdict(sample), blob))
                    else:
                        found.put(timer.timed(sample, blob))
            except Exception as error:  # one workload must not cost the others their time
                print(f"{workload}: {type(error).__name__}: {str(error).splitlines()[0][:300]}", flush=True)


def _in_turns(own: Sequence[tuple[int, Workload]], until_s: float) -> Iterator[tuple[int, Workload]]:
    """Workloads by their numbers, over and over until a time of the clock."""
    return itertools.takewhile(lambda _: time.monotonic() < until_s, itertools.cycle(own))


def _searched(number: int, workload: Workload, options: argparse.Namespace) -> Searched:
    made = workload.task(options.target)
    return Searched(number, str(made.module), made.sketches, STEPS if made.target.is_gpu else 0, options.spread)


def _own_timer(index: int, options: argparse.Namespace) -> Timer | None:
    """On a CPU, what times on cores that are this process's alone; None where another process has the device."""
    if not options.target.startswith("llvm"):
        return None
    cores = sorted(os.sched_getaffinity(0))[index * options.threads : (index + 1) * options.threads]
    os.sched_setaffinity(0, cores)
    return Timer(options)


def _next(rng: np.random.Generator, task: Searched, model: Any, number: int) -> Iterator[tuple[Sample, str]]:
    """The next two candidates of a workload, and their schedules."""
    if not task.waiting:
        drawn = _drawn(rng, task) if number == 0 or model is None else []
        known = liked(task.sketches, model, task.rounds, task.seen) if model else []
        task.waiting = [one for pair in itertools.zip_longest(drawn, known) for one in pair if one is not None]
    for _ in range(min(2, len(task.waiting))):
        sketch, row = task.waiting.pop(0)
        task.seen.add((sketch, row.tobytes()))
        features = task.sketches[sketch].features(row[None])[0]
        holes = tuple(hole.name for hole in task.sketches[sketch].holes)
        values = tuple(hole.choices[at] for hole, at in zip(task.sketches[sketch].holes, row, strict=True))
        yield Sample(task.number, sketch, number, features, holes, values), task.sketches[sketch].schedule(row)


def _drawn(rng: np.random.Generator, task: Searched) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Candidates by the estimates of each sketch, the more likely the better, from one sketch after the other."""
    found = [(0, task.sketches[0].default)]
    for number in rng.permutation(len(task.sketches)):
        sketch = task.sketches[number]
        if task.spread and sketch.prior is not None:
            found += [(int(number), row) for row in _unlike(rng, sketch, task.rounds)]
            continue
        found += drawn_of(rng, int(number), task.sketches, task.rounds)
    first, rest = found[0], found[1:]
    shuffled = [rest[n] for n in rng.permutation(len(rest))]
    return [one for one in [first, *shuffled] if (one[0], one[1].tobytes()) not in task.seen]


def _unlike(rng: np.random.Generator, sketch: Sketch, rounds: int) -> list[npt.NDArray[np.int64]]:
    """Some candidates of little estimate that differ in results, threads, stages or copies, one of each."""
    rows = np.unique(sketch.population.sample(rng, DRAWN), axis=0)
    rows = np.unique(np.concatenate([likely_rows(rng, sketch, rows, LIKELY, rounds), rows]), axis=0)
    columns = sketch.columns(rows)
    assert sketch.prior is not None
    seconds = sketch.prior(columns)
    ones = np.ones(len(rows))

    def product(*ends: str) -> npt.NDArray[np.float64]:
        return np.prod([ones, *(column for name, column in columns.items() if name.endswith(ends))], axis=0)

    keys = np.stack([product("_inner", "_virtual"), product("_threads"), product("_stages"), product("_registers")], 1)
    noisy = seconds * np.exp(SPREAD_NOISE * rng.gumbel(size=len(rows)))
    best: dict[bytes, int] = {}
    for at in np.argsort(noisy, kind="stable"):
        if seconds[at] <= SPREAD_FAR * seconds.min():
            best.setdefault(keys[at].tobytes(), int(at))
    return [rows[at] for at in list(best.values())[:SPREAD]]


# -- timing -----------------------------------------------------------------------------------------------------------


class Timer:
    """Runs and times candidates in this process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.fake, self.rotated_bytes = options.fake, options.rotated_bytes
        self.kind = options.target.split()[0]
        self.load = load_backend(backend_path(self.kind)).load
        self.clock = clock_of_a_thread() if options.threads == 1 else time.perf_counter
        self.known: dict[int, Buffers] = {}

    def timed(self, sample: Sample, blob: bytes) -> Sample:
        """Return the sample with its seconds of one run; NaN where its outputs are others than the first one's."""
        if self.fake:
            return replace(sample, time_s=2.0 ** float(sample.features[COLUMNS.index("bound.total")]))
        return replace(sample, time_s=self._seconds(blob, sample))

    def _seconds(self, blob: bytes, sample: Sample) -> float:
        executable: Any = self.load(blob)
        if sample.number not in self.known:
            on_cpu = self.kind == "llvm"
            self.known[sample.number] = (
                HostBuffers(executable, self.clock) if on_cpu else DeviceBuffers(executable, self.rotated_bytes)
            )
        buffers = self.known[sample.number]
        buffers.run(executable)
        if not buffers.agree(executable):
            print(
                f"workload {sample.number}, sketch {sample.sketch}: another result than the first candidate's",
                flush=True,
            )
            return float("nan")
        hopeless_s, probe_s = HOPELESS[self.kind] * buffers.best_s, min(buffers.time(executable, 1) for _ in range(2))
        if probe_s > hopeless_s:  # or others had the core: some runs more take less than building it took
            probe_s = min(probe_s, *(buffers.time(executable, 1) for _ in range(AGAIN)))
        if probe_s > hopeless_s:
            return probe_s
        number = int(np.clip(REPEAT_S / probe_s, 1, 100))
        time_s = min(buffers.time(executable, number) for _ in range(REPEATS)) / number
        buffers.best_s = min(buffers.best_s, time_s)
        return time_s


def _runner(options: argparse.Namespace, built: Any, found: Any) -> None:
    timer = Timer(options)
    while True:
        said, blob = built.get()
        sample = Sample(**said)
        try:
            found.put(timer.timed(sample, blob))
        except Exception as error:
            text = str(error).splitlines()[0][:300] if str(error) else ""
            print(f"workload {sample.number}: {type(error).__name__}: {text}", flush=True)
            found.put(sample)
            if "Error" in type(error).__name__ and ("cu" in text or "CUDA" in text):
                traceback.print_exc()
                time.sleep(0.2)  # what is in the queue is sent by a thread
                os._exit(1)


if __name__ == "__main__":
    main()
