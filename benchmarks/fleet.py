"""A fleet on this machine: throughput of simulated devices, overhead a job, fairness, memory, and a run with faults.

`python benchmarks/fleet.py [throughput] [memory] [fairness] [faults]`. Simulated devices take 50 ms a job, whatever the
machine: a process each, with the runner process that real ones have.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright.search.measure.measurer import Measurement, MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT
from loopwright.search.records.file import ErrorCode

SERVICE_S = 0.05
BACKEND = "fleet_simulated"
MARK = "LOOPWRIGHT_FLEET_BENCHMARK"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "loopwright", "fleet", *words]


class Fleet:
    """A tracker and devices as processes of their own, which can be killed, stopped and started."""

    def __init__(self, count: int) -> None:
        root = Path(lw.__file__).resolve().parent
        self.mark = f"{os.getpid()}-{time.time_ns()}"
        path = os.pathsep.join([str(root / "benchmarks"), *sys.path])
        self._env = {**os.environ, "PYTHONPATH": path, MARK: self.mark}
        self.tracker = ""
        self._port = 0
        self.count = count
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Fleet:
        self.start_tracker()
        for number in range(self.count):
            self.start_device(number)
        end_s = time.monotonic() + 60
        while len(lw.fleet_status(self.tracker).devices) < self.count and time.monotonic() < end_s:
            time.sleep(0.2)
        return self

    def start_tracker(self) -> None:
        process = self._popen("tracker", command("tracker", "--port", str(self._port)))
        assert process.stdout is not None
        self.tracker = process.stdout.readline().split()[-1]
        self._port = int(self.tracker.rpartition(":")[2])
        threading.Thread(target=process.stdout.read, daemon=True).start()

    def start_device(self, number: int) -> None:
        words = ["device", "--tracker", self.tracker, "--key", "simulated", "--target", "llvm cores=1"]
        process = self._popen(f"d{number}", command(*words, "--name", f"d{number}", "--backend", BACKEND))
        assert process.stdout is not None
        threading.Thread(target=process.stdout.read, daemon=True).start()

    def _popen(self, name: str, words: Sequence[str]) -> subprocess.Popen[str]:
        self.processes[name] = subprocess.Popen(words, env=self._env, stdout=subprocess.PIPE, text=True)
        return self.processes[name]

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            with contextlib.suppress(OSError):
                process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()

    def left(self) -> list[int]:
        """Processes of this fleet that still live."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    found += [int(entry.name)] if state != "Z" else []
        return found


def task() -> MeasureTask:
    source = np.arange(64, dtype=np.float32)
    return MeasureTask("simulated", [source], [source * 2], [EXACT])


@contextlib.contextmanager
def measuring(fleet: Fleet, timeout: float = 10.0) -> Iterator[Measurer]:
    runner = lw.FleetRunner("simulated", fleet.tracker, repeat=1, number=1, min_repeat_ms=0, timeout=timeout)
    with Measurer(runner.options(MeasureOptions(BACKEND, builders=1, threads=1))) as measurer:
        measurer.use(task())
        yield measurer


def overlaps(found: Sequence[Measurement]) -> int:
    """Jobs that began on a device before the one before had ended there."""
    spans = sorted((str(m.fleet["device"]), m.fleet["started"], m.fleet["ended"]) for m in found if m.fleet)
    return sum(a[0] == b[0] and b[1] < a[2] for a, b in pairwise(spans))


def throughput(jobs: int) -> None:
    print(f"\n| devices | jobs | s | jobs/s | of one device | overhead a job (ms) | overlapping |\n|{'---|' * 7}")
    one = 0.0
    for count in (1, 2, 4):
        with Fleet(count) as fleet, measuring(fleet) as measurer:
            measurer.measure([f"warm={n}" for n in range(4 * count)])
            start_s = time.perf_counter()
            found = measurer.measure([f"n={n} of={count}" for n in range(jobs * count)])
            wall_s = time.perf_counter() - start_s
        rate = len(found) / wall_s
        one = one or rate
        there = overlaps(found)
        overhead_ms = (count / rate - SERVICE_S) * 1e3
        print(
            f"| {count} | {len(found)} | {wall_s:.2f} | {rate:.1f} | {rate / one:.2f} | {overhead_ms:.1f} | {there} |"
        )
        assert all(m.ok for m in found)


def memory(jobs: int) -> None:
    """Resident memory of the tuner, the tracker and a device, as jobs pass."""
    with Fleet(2) as fleet, measuring(fleet) as measurer:
        print(f"\n| jobs | tuner (MB) | tracker (MB) | device (MB) |\n|{'---|' * 4}")
        done = 0
        while done <= jobs:
            sizes = [os.getpid(), fleet.processes["tracker"].pid, fleet.processes["d0"].pid]
            print(f"| {done} | " + " | ".join(f"{_resident_mb(pid):.0f}" for pid in sizes) + " |", flush=True)
            measurer.measure([f"sleep=0 n={n + done}" for n in range(jobs // 5)])
            done += jobs // 5


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def fairness(seconds: float) -> None:
    """Two tuners of one priority, each always with work, on two devices."""
    counts = Counter[str]()

    def tune(name: str, fleet: Fleet) -> None:
        with measuring(fleet) as measurer:
            barrier.wait()
            measurer.submit([f"who={name} n={n}" for n in range(2000)])
            for _ in measurer.results(lambda: None):
                if time.monotonic() > until[0]:
                    measurer.withdraw()
                    break
                counts[name] += 1

    until = [float("inf")]
    barrier = threading.Barrier(2, action=lambda: until.__setitem__(0, time.monotonic() + seconds))
    with Fleet(2) as fleet:
        tuners = [threading.Thread(target=tune, args=(name, fleet)) for name in "ab"]
        for each in tuners:
            each.start()
        for each in tuners:
            each.join()
    total = counts.total()
    print(f"\nfairness: {total} jobs in {seconds:g} s, shares {counts['a'] / total:.1%} and {counts['b'] / total:.1%}")


def faults(trials: int, seed: int) -> None:
    """Kill, stop, hang and restart devices at random, and restart the tracker once, while a search goes on."""
    rng = random.Random(seed)
    happened = Counter[str]()
    ended = threading.Event()
    with Fleet(3) as fleet, measuring(fleet, timeout=1.0) as measurer:

        def disturb() -> None:
            began_s, restarted = time.monotonic(), False
            while not ended.wait(rng.uniform(1.0, 4.0)):
                number = rng.randrange(fleet.count)
                if not restarted and time.monotonic() - began_s > 8.0:
                    restarted = True
                    happened["tracker restarted"] += 1
                    fleet.kill("tracker")
                    fleet.start_tracker()
                elif rng.random() < 0.5:
                    happened["device killed"] += 1
                    fleet.kill(f"d{number}")
                    fleet.start_device(number)
                else:
                    happened["device stopped"] += 1
                    fleet.processes[f"d{number}"].send_signal(signal.SIGSTOP)
                    ended.wait(rng.uniform(0.5, 20.0))
                    fleet.processes[f"d{number}"].send_signal(signal.SIGCONT)

        trouble = threading.Thread(target=disturb)
        trouble.start()
        start_s = time.perf_counter()
        with tempfile.TemporaryDirectory():
            hang = {n for n in range(trials) if rng.random() < 0.02}
            happened["candidates that hang"] = len(hang)
            numbers = measurer.submit([f"n={n}" + (" hang=1" if n in hang else "") for n in range(trials)])
            found = list(measurer.results())
        wall_s = time.perf_counter() - start_s
        ended.set()
        trouble.join()
    time.sleep(2)
    codes = Counter(m.error for m in found)
    for late in [m for m in found if not m.ok and "hang" not in m.schedule]:
        print(f"unexpected: {late.schedule}: {late.error}: {late.message}; {late.run_s:.2f} s, {dict(late.fleet)}")
    once = sorted(m.job for m in found) == sorted(numbers)
    print(f"\nfaults: {dict(happened)}; {trials} trials in {wall_s:.1f} s")
    print(f"every trial is one record: {once}; { ({str(c): n for c, n in codes.items()}) }")
    print(f"jobs that overlap on a device: {overlaps(found)}; processes left: {len(fleet.left())}")
    assert once and not overlaps(found) and not fleet.left() and codes[ErrorCode.OK] >= trials - len(hang) - 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["throughput", "memory", "fairness", "faults"])
    parser.add_argument("--jobs", type=int, default=200, help="jobs a device for the throughput")
    parser.add_argument("--many", type=int, default=10_000, help="jobs while memory is looked at")
    parser.add_argument("--seconds", type=float, default=20.0, help="of sharing")
    parser.add_argument("--trials", type=int, default=500, help="trials with faults")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for what in options.what:
        {
            "throughput": lambda: throughput(options.jobs),
            "memory": lambda: memory(options.many),
            "fairness": lambda: fairness(options.seconds),
            "faults": lambda: faults(options.trials, options.seed),
        }[what]()


if __name__ == "__main__":
    main()
