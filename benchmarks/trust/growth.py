"""Resources that a process keeps after many tunings and many builds: descriptors, threads, children, maps and memory.

Each kind of call is repeated in a process of its own, every time on another shape, so that a cache that keeps one entry
a workload shows. The first fifth is for what is made once (imports, pools, caches of bounded size); after it there must
be no more descriptors, threads and children, and maps and memory may grow by no more than allocators wander.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import loopwright as lw
from loopwright import te, topi
from trust.row import Row

TUNINGS, BUILDS = 200, 1000
WARM_UP = 0.2
"""Part of the calls after which nothing that is made once should still be made."""
SAMPLES = 25
MOST_MAPS = 16
"""Maps more or fewer at the end: malloc gives arenas back, and takes them, as it likes."""
MOST_BYTES_A_CALL = 32 << 10
"""Memory that may stay for each call: fragments. An LLVM module or a sketch that stays is some hundred kilobytes."""


@dataclass(frozen=True)
class Usage:
    """The resources that this process holds."""

    descriptors: int
    threads: int
    children: int
    maps: int
    rss_bytes: int

    @staticmethod
    def now() -> Usage:
        gc.collect()
        own = Path("/proc/self")
        threads = list((own / "task").iterdir())
        children = sum(len((thread / "children").read_text().split()) for thread in threads)
        maps = len((own / "maps").read_text().splitlines())
        rss_bytes = int((own / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return Usage(len(os.listdir(own / "fd")), len(threads), children, maps, rss_bytes)


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """A row for tunings and one for builds."""
    for what, most in (("tune", TUNINGS), ("build", BUILDS)):
        count = max(4, round(most * scale))
        start_s = time.monotonic()
        command = [sys.executable, __file__, what, str(count), str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        samples = [(n, Usage(**values)) for n, values in json.loads(done.stdout.splitlines()[-1])]
        yield _row(what, count, samples, time.monotonic() - start_s)


def _row(what: str, count: int, samples: Sequence[tuple[int, Usage]], seconds: float) -> Row:
    first, last = samples[0][1], samples[-1][1]
    maps = _slope([(n, u.maps) for n, u in samples]) * count
    a_call = _slope([(n, u.rss_bytes) for n, u in samples])
    bad = {
        "descriptors left": max(0, last.descriptors - first.descriptors),
        "threads left": max(0, last.threads - first.threads),
        "children left": last.children,
        "growing maps": int(maps > MOST_MAPS),
        "growing memory": int(a_call > MOST_BYTES_A_CALL),
    }
    note = (
        f"{last.descriptors} descriptors, {last.threads} threads; maps {first.maps} to {last.maps}, "
        f"memory {first.rss_bytes / 1e6:.0f} to {last.rss_bytes / 1e6:.0f} MB, {a_call / 1e3:.1f} kB a call"
    )
    return Row(f"{what} in one process", count, bad, seconds, note, tuple(f"{n}: {u}" for n, u in samples))


def _slope(points: Sequence[tuple[int, float]]) -> float:
    """The median of the slopes between all points (Theil and Sen): single jumps do not count."""
    return statistics.median((y - x) / (m - n) for (n, x), (m, y) in combinations(points, 2))


def repeat(call: Callable[[int], object], count: int) -> list[tuple[int, Usage]]:
    """Call it with 0, 1, ... and return what is held after the warm-up, and now and then from there on."""
    samples = []
    begin = max(2, int(count * WARM_UP))
    step = max(1, (count - begin) // SAMPLES)
    for number in range(count):
        call(number)
        if number + 1 == count or (number >= begin and (number - begin) % step == 0):
            samples.append((number, Usage.now()))
    return samples


def workload(number: int) -> Sequence[te.Tensor]:
    """A small layer; no two of a run have the same shape."""
    m, n, k = 8 + number % 10, 8 + number // 10 % 10, 8 + number // 100
    data, weight = te.placeholder((m, k), name="data"), te.placeholder((n, k), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.dense(data, weight))]


def tune_once(number: int) -> None:
    """Tune for a few trials with records, and build the best."""
    task = lw.SearchTask(workload, args=(number,), target="llvm cores=1")
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "r.jsonl"
        options = lw.TuningOptions(num_measure_trials=4, batch_size=2, records=records, progress=False, final_laps=1)
        measure = task.measure_options()
        timing = replace(measure.timing, repeat=1, min_repeat_ms=0.0)
        task.tune(options, replace(measure, builders=1, preflight=None, timing=timing))
        task.apply_best(records)


def build_once(number: int) -> None:
    """Build for one thread or two, and run."""
    task = lw.SearchTask(workload, args=(number,), target=f"llvm cores={1 + number % 2}")
    kernel = task.build()
    inputs = task.reference.inputs
    kernel(*inputs)
    kernel(*inputs)


if __name__ == "__main__":
    calls = {"tune": tune_once, "build": build_once}
    found = repeat(calls[sys.argv[1]], int(sys.argv[2]))
    print(json.dumps([(number, asdict(usage)) for number, usage in found]))
