"""Parts of reductions joined in the launch that computes them, beside a second kernel that joins them, on CUDA.

Each case takes the sketches of a search that come in both ways, with the same decisions for both: the defaults, and
those of random candidates that the sketch's own estimate likes best. Kernels are built by `--jobs` processes, then
timed in turn by the device's clock, replayed as graphs. Every result is compared with the interpreter's, two runs bit
by bit, and once more behind all replays. `--sanitize` runs small cases under compute-sanitizer, where that is there.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from rounds import medians_in_turn
from sanitize import MissingSanitizer, Sample, find_sanitizer, report, sanitize

import loopwright as lw
from loopwright import te
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch
from loopwright.testing.narrow import attention, dense, pointwise

TARGET = "cuda model=h200"
DRAWN = 300
"""Random candidates that the best ones are chosen from."""
ROUNDS = 5
RUNS = 100
"""Runs of a kernel in a round, of replayed graphs."""

WAYS = ("clustered",)
"""Endings of the names of sketches that join parts in another way than by a second kernel."""
Workload = Callable[[], list[te.Tensor]]


SIZES = ((4, 4096, 4096), (16, 4096, 4096), (64, 64, 8192), (128, 256, 4096))
CASES: dict[str, Workload] = {
    **{f"product {m}x{n}x{k} float16": partial(dense, m, n, k, "float16") for m, n, k in SIZES},
    "pointwise 7x7 512->2048 float16": partial(pointwise, 7, 512, 2048, "float16"),
    "pointwise 7x7 2048->512 float16": partial(pointwise, 7, 2048, 512, "float16"),
    "pointwise 14x14 1024->256 float16": partial(pointwise, 14, 1024, 256, "float16"),
    **{
        f"attention 32x{q} of 128, {n} keys": partial(attention, 32 // q, q, n, 128)
        for q, n in ((1, 512), (1, 1024), (1, 4096), (4, 1024))
    },
}
SMALL: dict[str, Workload] = {
    "product 32x64x1024 float16": partial(dense, 32, 64, 1024, "float16"),
    "pointwise 7x7 512->64 float16": partial(pointwise, 7, 512, 64, "float16"),
    "attention 2x1 of 64, 256 keys": partial(attention, 2, 1, 256, 64),
}


@dataclass(frozen=True)
class Built:
    """A kernel: its sketch, its way to join parts, its decisions by number, and what it was built to, or why not.

    Undivided ones have number -1.
    """

    sketch: str
    way: str
    number: int
    artifact: bytes
    error: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=6, help="candidates of each sketch")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--build-only", action="store_true", help="build and stop: takes no device")
    parser.add_argument("cases", nargs="*", help="parts of names of cases")
    chosen = parser.parse_args()
    cases = {n: w for n, w in CASES.items() if not chosen.cases or any(part in n for part in chosen.cases)}
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        if chosen.sanitize:
            return check_small(pool)
        for name, waiting, task in [(n, *begin(pool, w, chosen.candidates)) for n, w in cases.items()]:
            built = [each.result() for each in waiting]
            for each in built:
                if each.error:
                    print(f"{name}: {each.sketch} {each.number} was not built: {each.error}", flush=True)
            if not chosen.build_only:
                print_case(name, task, [each for each in built if each.artifact])
    return 0


def begin(pool: ProcessPoolExecutor, workload: Workload, count: int) -> tuple[list[Any], lw.SearchTask]:
    """Begin to build the candidates of each way, and the default of each other sketch."""
    task = lw.SearchTask(workload, target=TARGET)
    sketches = {sketch.name: sketch for sketch in generate_sketches(task.module, task.target)}
    text, waiting = str(task.module), []
    for name, sketch in sketches.items():
        way = next((way for way in WAYS if name.endswith(f"_{way}")), "")
        plain = sketches.get(name.removesuffix(f"_{way}"))
        if way and plain is not None:
            for number, row in enumerate(candidates(sketch, count)):
                key = number + 100 * WAYS.index(way)
                waiting.append(pool.submit(build, text, plain.name, way, key, sketch.schedule(row)))
                waiting.append(pool.submit(build, text, plain.name, "", key, plain.schedule(same(sketch, plain, row))))
        elif not any(f"{name}_{way}" in sketches for way in WAYS):
            waiting.append(pool.submit(build, text, name, "", -1, sketch.schedule(sketch.default)))
    return waiting, task


def candidates(sketch: Sketch, count: int) -> list[Any]:
    """The default, and the random candidates that its estimate likes best."""
    rows = sketch.sample(np.random.default_rng(0), DRAWN)
    estimate = sketch.estimate(rows)
    order = np.argsort(estimate, kind="stable") if estimate is not None else np.arange(len(rows))
    return [sketch.default, *rows[order[: count - 1]]]


def same(sketch: Sketch, other: Sketch, row: Any) -> Any:
    """Return the decisions of another sketch that choose the same numbers."""
    chosen = {hole.name: hole.choices[choice] for hole, choice in zip(sketch.holes, row, strict=True)}
    return np.array([hole.choices.index(chosen[hole.name]) for hole in other.holes])


def build(text: str, sketch: str, way: str, number: int, schedule: str) -> Built:
    """Build one kernel, in a process of its own."""
    from loopwright.backends.cuda.device import build

    try:
        return Built(sketch, way, number, build(text, schedule))
    except Exception as error:
        return Built(sketch, way, number, b"", f"{type(error).__name__}: {error}"[:300])


def print_case(name: str, task: lw.SearchTask, built: Sequence[Built]) -> None:
    """Time the kernels of a case in turn; print the best of each way, and the ratio of the same decisions."""
    from loopwright.backends.cuda.device import load

    arrays = task.reference.inputs
    outputs = {each: np.zeros_like(task.reference.expected[0]) for each in built}
    loaded = {each: load(each.artifact) for each in built}
    wrong = [each for each in built if not is_right(task, loaded[each], outputs[each])]
    best_s = medians_in_turn(
        {each: partial(_seconds, loaded[each], [*arrays, outputs[each]]) for each in built}, ROUNDS
    )
    again = np.empty_like(task.reference.expected[0])
    for each in built:
        loaded[each].run([*arrays, again])
        if again.tobytes() != outputs[each].tobytes():
            wrong.append(each)
    best = {each: time_s * 1e6 for each, time_s in best_s.items()}
    print(f"{name}: {len(built)} kernels, {len(wrong)} wrong {[(x.sketch, x.way, x.number) for x in wrong]}")
    for sketch in dict.fromkeys(x.sketch for x in built):
        print_sketch(sketch, {(x.way, x.number): t for x, t in best.items() if x.sketch == sketch})


def _seconds(kernel: Any, arrays: Sequence[Any]) -> float:
    """Seconds of a run."""
    return float(kernel.time(arrays, RUNS)) / RUNS


def print_sketch(sketch: str, times: dict[tuple[str, int], float]) -> None:
    """Print the best of each way to join, and in brackets its speed over two kernels of the same decisions."""
    apart = {n: t for (way, n), t in times.items() if not way}
    line = f"  {sketch:38} two kernels {min(apart.values()):7.2f} us"
    for way in WAYS:
        found = {n: t for (other, n), t in times.items() if other == way and n in apart}
        if found:
            ratios = [apart[n] / t for n, t in found.items()]
            saved = statistics.median([apart[n] - t for n, t in found.items()])
            mean = float(np.exp(np.mean(np.log(ratios))))
            speed = min(apart.values()) / min(found.values())
            line += f", {way} {min(found.values()):7.2f} us {speed:5.3f}x [{mean:5.3f}x, saved {saved:5.2f} us]"
    print(line if -1 not in apart else line.replace("two kernels", "undivided  "), flush=True)


def is_right(task: lw.SearchTask, loaded: Any, into: Any) -> bool:
    """Run twice; True where both runs give the same bits, near enough to what is expected."""
    reference, first = task.reference, np.zeros_like(into)
    loaded.run([*reference.inputs, first])
    loaded.run([*reference.inputs, into])
    near = np.allclose(into, reference.expected[0], **reference.tolerances[0]._asdict())
    return bool(near) and first.tobytes() == into.tobytes()


def check_small(pool: ProcessPoolExecutor) -> int:
    """Run small cases under compute-sanitizer's memcheck and racecheck."""
    samples = []
    for name, workload in SMALL.items():
        waiting, task = begin(pool, workload, 2)
        found, ref = [each.result() for each in waiting], task.reference
        samples += [
            Sample(f"{name} {x.sketch}", "", x.artifact, ref.inputs, ref.expected, ref.tolerances)
            for x in found
            if x.way and x.artifact
        ]
    try:
        clean = [report(tool, sanitize(find_sanitizer(), tool, samples, 300)) for tool in ("memcheck", "racecheck")]
    except MissingSanitizer as error:
        print(error)
        return 1
    return 0 if all(clean) else 1


if __name__ == "__main__":
    raise SystemExit(main())
