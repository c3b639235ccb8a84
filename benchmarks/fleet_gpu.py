"""A fleet beside tuning on this machine: the same candidates through both, on one device and on all.

`python benchmarks/fleet_gpu.py [--kind cuda] [--candidates 48]`: wall time of measuring, agreement of the times, and
what a second device gains. Rounds alternate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

import loopwright as lw
from fleet import overlaps
from loopwright import te, topi
from loopwright.search.measure.measurer import Measurement, MeasureOptions, Measurer, MeasureTask

SIZE = 1024


def matmul(size: int, target: str) -> lw.SearchTask:
    a, b = te.placeholder((size, size), name="a"), te.placeholder((size, size), name="b")
    return lw.SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target=target)


def candidates(task: lw.SearchTask, count: int) -> list[str]:
    """Distinct legal schedules at random, the same in every run."""
    rng = np.random.default_rng(0)
    found: list[str] = []
    while len(found) < count:
        for sketch in task.sketches:
            rows = sketch.sample(rng, count)
            found += [sketch.schedule(row) for row in rows[sketch.legal(rows)]]
    return list(dict.fromkeys(found))[:count]


def start(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "loopwright", "fleet", *words], stdout=subprocess.PIPE, text=True)


def measured(
    options: MeasureOptions, data: MeasureTask, schedules: list[str]
) -> tuple[list[Measurement], float, float]:
    """The measurements, the seconds that they took, and those with the start of the processes."""
    began_s = time.perf_counter()
    with Measurer(options) as measurer:
        measurer.use(data)
        start_s = time.perf_counter()
        found = measurer.measure(schedules, fresh=True)
        ended_s = time.perf_counter()
    return found, ended_s - start_s, time.perf_counter() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="cuda")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--candidates", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--min-repeat-ms", type=float, default=40.0)
    parser.add_argument("--port", type=int, default=9390)
    options = parser.parse_args()
    task = matmul(options.size, options.kind)
    schedules = candidates(task, options.candidates)
    reference = task.reference
    data = reference.task(str(task.module))
    at = f"127.0.0.1:{options.port}"
    usual = replace(task.measure_options(), builders=min(16, os.cpu_count() or 1), preflight=None)
    terms = {"repeat": 3, "min_repeat_ms": options.min_repeat_ms, "timeout": 30.0}
    processes = [start(["tracker", "--port", str(options.port)])]
    assert processes[0].stdout is not None
    processes[0].stdout.readline()
    common = ["device", "--tracker", at, "--target", options.kind]
    processes += [start([*common, "--key", "one"]), start([*common, "--key", "all", "--devices", "all", "--name", "a"])]
    ways = {
        "local": replace(lw.LocalRunner(**terms).options(usual), overlap=True),  # type: ignore[arg-type]
        "fleet, 1 device": lw.FleetRunner("one", at, **terms).options(usual),  # type: ignore[arg-type]
        "fleet, all devices": lw.FleetRunner("all", at, **terms).options(usual),  # type: ignore[arg-type]
    }
    walls: dict[str, list[float]] = {way: [] for way in ways}
    wholes: dict[str, list[float]] = {way: [] for way in ways}
    best: dict[str, list[list[float]]] = {way: [] for way in ways}
    try:
        until_s = time.monotonic() + 60
        while len({d.key for d in lw.fleet_status(at).devices}) < 2 and time.monotonic() < until_s:
            time.sleep(0.5)
        time.sleep(2.0)
        print(lw.fleet_status(at), flush=True)
        for _ in range(options.rounds):
            for way, how in ways.items():
                found, wall_s, whole_s = measured(how, data, schedules)
                walls[way].append(wall_s)
                wholes[way].append(whole_s)
                best[way].append([min(m.times_s) if m.ok else float("nan") for m in found])
                right, over = sum(m.ok for m in found), overlaps(found)
                print(
                    f"{way}: {wall_s:.2f} s, with processes {whole_s:.2f} s, ok {right}, overlapping {over}", flush=True
                )
    finally:
        lw.stop_fleet(at)
        for process in processes:
            process.wait(30)
    print(f"\n| way | trials/s | wall (s) | of local | with processes (s) |\n|{'---|' * 5}")
    for way in ways:
        wall_s, whole_s = min(walls[way]), min(wholes[way])
        ratio = wall_s / min(walls["local"])
        print(f"| {way} | {len(schedules) / wall_s:.2f} | {wall_s:.2f} | {ratio:.3f} | {whole_s:.2f} |")
    local = np.nanmin(best["local"], axis=0)
    for way in ways:
        ratios = (np.array(best[way][-1]) if way == "local" else np.nanmin(best[way], axis=0)) / (
            np.array(best[way][0]) if way == "local" else local
        )
        ratios = ratios[np.isfinite(ratios)]
        within = float(np.mean(np.abs(ratios - 1) <= 0.03))
        print(
            f"times, {way} over local: median {statistics.median(ratios):.4f}, {within:.0%} of {len(ratios)} within 3%"
        )


if __name__ == "__main__":
    main()
