"""A network compiled with Winograd's transforms where they are faster on record, and without them, in turn.

All ways to compute each convolution are tuned with as many trials, by templates or by sketches, on one thread. The same
records then make two networks: all direct, and what `lw.compile` chooses. They are run on the same input, compared, and
timed in turn, medians of rounds. The records go to a file: a call goes on from those that are there.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.search.measure.backend_api import backend_path, load_backend

EXTRACT = {"template": lw.extract_template_tasks, "sketches": lw.extract_tasks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm cores=1")
    parser.add_argument("--network", default="resnet-18", choices=list(lw.testing.NETWORKS))
    parser.add_argument("--layout", choices=["NCHW", "NHWC"], default="NHWC")
    parser.add_argument("--search", choices=EXTRACT, default="template")
    parser.add_argument("--trials", type=int, default=24, help="of each task")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--records", type=Path, help="default: winograd-<network>-<search>.jsonl")
    parser.add_argument("--output", type=Path, help="write the table to this file, too")
    options = parser.parse_args()
    target = resolve_target(options.target)
    net = lw.testing.network(options.network, layout=options.layout)
    tasks, weights = EXTRACT[options.search](net, target, winograd=True)
    records = options.records or Path(f"winograd-{options.network}-{options.search}.jsonl")
    started_s = time.perf_counter()
    tuning = lw.TuningOptions(num_measure_trials=options.trials * len(tasks))
    lw.TaskScheduler(tasks, weights, load_records=records, strategy="round-robin").tune(tuning)
    spent_s = time.perf_counter() - started_s
    compiling_s = time.perf_counter()
    ways = {"direct": lw.compile(net, target, records, winograd=False)}
    between_s = time.perf_counter()
    ways["chosen"] = lw.compile(net, target, records)
    compiling_s, more_s = between_s - compiling_s, time.perf_counter() - between_s
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal(value.shape).astype(value.dtype) for value in net.inputs.values()]
    executors = {name: compiled.executor() for name, compiled in ways.items()}
    outputs = {name: np.asarray(executor(*feeds)[0]) for name, executor in executors.items()}
    rounds = [[_time_s(executor) for executor in executors.values()] for _ in range(options.rounds)]
    direct_s, chosen_s = map(statistics.median, zip(*rounds, strict=True))
    ratio = statistics.median(direct / chosen for direct, chosen in rounds)
    off = np.abs(outputs["chosen"] - outputs["direct"]).max() / np.abs(outputs["direct"]).max()
    lines = [
        f"## {options.network} on {load_backend(backend_path(target.kind)).device_name()}",
        "",
        f"{datetime.date.today()}, {target.cores} thread(s), fp32, {options.layout}, {options.search}, loopwright "
        f"{lw.__version__}, NumPy {np.__version__}, Python {platform.python_version()}; {len(tasks)} tasks with "
        f"{options.trials} trials each in {spent_s:.0f} s, {options.rounds} rounds in turn. Compiling took "
        f"{compiling_s:.1f} s, with the choice {more_s:.1f} s.",
        "",
        "| | direct (ms) | chosen (ms) | direct / chosen, median of rounds | outputs differ by (of the largest) |",
        "|---|---|---|---|---|",
        f"| {options.network} | {direct_s * 1e3:.2f} | {chosen_s * 1e3:.2f} | {ratio:.2f}x | {off:.1e} |",
        "",
        "| kernel of a convolution | steps | chosen |",
        "|---|---|---|",
        *_choices(ways),
    ]
    print("\n".join(lines))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


def _time_s(executor: Any) -> float:
    return float(executor.benchmark(repeat=1, min_repeat_ms=50).median)


def _choices(ways: dict[str, lw.CompiledNetwork]) -> list[str]:
    """A row for each kernel of the direct network whose steps the chosen one takes another kernel for."""
    rows: dict[str, tuple[int, str]] = {}
    plans = [ways[name].plan for name in ("direct", "chosen")]
    for old, new in zip(plans[0].steps, plans[1].steps, strict=True):
        direct, chosen = plans[0].kernels[old.kernel], plans[1].kernels[new.kernel]
        if "conv2d" in direct.label:
            key = direct.workload_key.rpartition(",")[0]
            way = chosen.workload_key.rpartition(",")[0] if chosen.is_winograd else "direct"
            rows[key] = (rows.get(key, (0, ""))[0] + 1, way)
    return [f"| `{key}` | {steps} | `{way}` |" for key, (steps, way) in rows.items()]


if __name__ == "__main__":
    main()
