"""Networks of published sizes on a CPU, untuned and after a search, beside PyTorch and onnxruntime: several at once.

    python benchmarks/cpu_networks.py --threads 1 2 --limit-s 300 --records records --output rows.jsonl

Models are those of `wild_models.py`, with random weights, fp32, batch 1. Each runs in a process of its
own on `--cores` cores of its own, untuned by `lw.compile`, tuned by `lw.optimize` with `--limit-s` seconds for a search
that goes on from its file of `--records`. Both are timed in turn with PyTorch, in the faster of its two layouts, and
onnxruntime, each on as many threads: medians of the rounds by the clock on the wall, with pauses for threads of others
to fall asleep. A ratio is the faster peer's time over ours. `--profile` names the workloads that take longest.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from in_onnxruntime import session_of
from rounds import POOL_PAUSE_S, calls_by_clock, medians_in_turn
from tables import table_lines

DEFAULT = (
    "tv_resnet18",
    "tv_resnet50",
    "mobilenet_v1",
    "tv_mobilenet_v2",
    "hf_bert_base",
    "hf_gpt2_prefill",
    "seg_deeplabv3_mobilenet_v3_large",
)
AT_LEAST_S = 0.05
"""Of calls in a turn."""
Row = dict[str, Any]
Call = Callable[[], object]


def main() -> int:
    options = _options()
    if options.worker:
        for threads in options.threads:
            print(json.dumps(_measured(options.worker, threads, options)), flush=True)
        return 0
    cores = sorted(os.sched_getaffinity(0))
    places = [cores[n * options.cores : (n + 1) * options.cores] for n in range(len(cores) // options.cores)]
    rows: list[Row] = []
    free: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for place in places:
        free.put(place)
    with ThreadPoolExecutor(len(places)) as pool:
        for done in as_completed([pool.submit(_in_a_process, name, free) for name in options.models]):
            name, found, code = done.result()
            rows += found
            if len(found) < len(options.threads):
                print(f"| {name} | failed (exit code {code}) |", flush=True)
            for row in found:
                print(_line(row), *_slowest(row), sep="\n", flush=True)
            if options.output:
                Path(options.output).write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(_table(rows))
    return int(len(rows) < len(options.models) * len(options.threads))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(DEFAULT), help="names of `wild_models.py`")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of all, one after the other")
    parser.add_argument("--cores", type=int, default=2, help="of each process")
    parser.add_argument("--limit-s", type=float, default=0.0, help="of each search; 0 for none")
    parser.add_argument("--records", help="folder of record files, one a model and number of threads")
    parser.add_argument("--peers", nargs="+", choices=("onnxruntime", "torch"), default=["onnxruntime", "torch"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", type=int, default=0, metavar="KERNELS", help="so many of the slowest workloads")
    parser.add_argument("--small", action="store_true", help="of small sizes, to try this out")
    parser.add_argument("--output", help="a file of JSON lines")
    parser.add_argument("--worker", metavar="MODEL", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_a_process(name: str, free: queue.SimpleQueue[list[int]]) -> tuple[str, list[Row], int]:
    """This program for one model, on cores of its own: its rows, and its exit code."""
    cores = free.get()
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", name]
    pinned = partial(os.sched_setaffinity, 0, cores)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinned, check=False)
    free.put(cores)
    return name, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.returncode


# -- one model on so many threads, in a process of its own -----------------------------------------------------------


def _measured(name: str, threads: int, options: argparse.Namespace) -> Row:
    import torch
    from wild_models import built

    import loopwright as lw

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model, inputs = built(name, options.small)
    wanted = _first(model(*inputs)).numpy()
    net, target = lw.from_exported(torch.export.export(model, inputs)), f"llvm cores={threads}"
    start_s = time.perf_counter()
    compiled = {"untuned": lw.compile(net, target)}
    row: Row = {"model": name, "threads": threads, "compile_s": time.perf_counter() - start_s}
    if options.limit_s:
        compiled["tuned"] = _tuned(net, target, f"{name}-{threads}", options, row)
    executors = {which: each.executor() for which, each in compiled.items()}
    for executor in executors.values():
        executor.set_input(**dict(zip(executor.input_names, (each.numpy() for each in inputs), strict=True)))
        executor.run()
    row["error"] = max(_error(executor.get_output(0), wanted) for executor in executors.values())
    calls: dict[str, Call] = {which: executor.run for which, executor in executors.items()}
    calls |= _peers(model, inputs, threads, options.peers)
    row |= _timed(calls, options.rounds)
    if options.profile:
        for which, executor in executors.items():
            row[f"kernels_{which}"] = _kernels(executor, options.profile)
    return row


def _tuned(net: Any, target: str, name: str, options: argparse.Namespace, row: Row) -> Any:
    import loopwright as lw

    with tempfile.TemporaryDirectory() as folder:
        records = Path(options.records or folder) / f"{name}.jsonl"
        records.parent.mkdir(parents=True, exist_ok=True)
        start_s = time.perf_counter()
        made = lw.optimize(net, target, time_limit_s=options.limit_s, records=records, progress=False)
        row["search_s"] = time.perf_counter() - start_s
        row["trials"] = len(records.read_text().splitlines())
    return made


def _peers(model: Any, inputs: Sequence[Any], threads: int, names: Sequence[str]) -> dict[str, Call]:
    import torch

    found: dict[str, Call] = {}
    if "onnxruntime" in names:
        found["onnxruntime"] = _onnxruntime(model, inputs, threads)
    if "torch" not in names:
        return found
    found["torch"] = lambda: model(*inputs)
    if inputs[0].ndim == 4:
        last = copy.deepcopy(model).to(memory_format=torch.channels_last)
        image = inputs[0].to(memory_format=torch.channels_last)
        found["torch_last"] = lambda: last(image)
    return found


def _onnxruntime(model: Any, inputs: Sequence[Any], threads: int) -> Call:
    """The model in onnxruntime; checked."""
    call = session_of(model, inputs, threads)
    error = _error(call()[0], _first(model(*inputs)).numpy())
    if not error < 1e-3:
        raise ValueError(f"onnxruntime is off by {error:.1e}")
    return call


def _first(results: Any) -> Any:
    return results[0] if isinstance(results, (tuple, list)) else results


def _error(got: Any, wanted: Any) -> float:
    return float(abs(got - wanted).max() / abs(wanted).max())


def _timed(calls: dict[str, Call], rounds: int) -> Row:
    """Median milliseconds of each, in turn."""
    timers = {name: calls_by_clock(call, time.perf_counter, AT_LEAST_S) for name, call in calls.items()}
    return {f"{name}_ms": time_s * 1e3 for name, time_s in medians_in_turn(timers, rounds, POOL_PAUSE_S).items()}


def _kernels(executor: Any, most: int) -> list[tuple[str, int, float, float, str]]:
    """The workloads that take longest: key, calls, microseconds of all, GFLOP/s and schedule."""
    found: dict[str, list[Any]] = {}
    for row in executor.profile().rows:
        found.setdefault(row.kernel.workload_key, []).append(row)
    slowest = sorted(found.items(), key=lambda item: -sum(row.time_s for row in item[1]))[:most]
    return [(key, len(rows), *_rates(rows), rows[0].kernel.schedule) for key, rows in slowest]


def _rates(rows: Sequence[Any]) -> tuple[float, float]:
    time_s = sum(row.time_s for row in rows)
    return time_s * 1e6, sum(row.kernel.flops for row in rows) / time_s / 1e9


# -- rows as text -----------------------------------------------------------------------------------------------------

HEADS = (
    *("network", "threads", "untuned (ms)", "tuned (ms)", "PyTorch (ms)", "onnxruntime (ms)"),
    *("peer / untuned", "peer / tuned", "trials", "error"),
)


def _line(row: Row) -> str:
    torch_ms = min(row.get("torch_ms", math.inf), row.get("torch_last_ms", math.inf))
    onnx_ms, tuned_ms = row.get("onnxruntime_ms", math.inf), row.get("tuned_ms")
    peer_ms = min(torch_ms, onnx_ms)
    cells = (
        *(row["model"], str(row["threads"]), f"{row['untuned_ms']:.2f}", f"{tuned_ms:.2f}" if tuned_ms else "-"),
        *(_figure(torch_ms), _figure(onnx_ms), f"{peer_ms / row['untuned_ms']:.2f}x"),
        *(f"{peer_ms / tuned_ms:.2f}x" if tuned_ms else "-", str(row.get("trials", "-")), f"{row['error']:.0e}"),
    )
    return f"| {' | '.join(cells)} |"


def _figure(time_ms: float) -> str:
    return f"{time_ms:.2f}" if math.isfinite(time_ms) else "-"


def _slowest(row: Row) -> list[str]:
    rows = row.get("kernels_tuned", row.get("kernels_untuned", []))
    return [f"    {calls} x {key}: {time_us:.0f} us, {gflops:.0f} GFLOP/s" for key, calls, time_us, gflops, _ in rows]


def _table(rows: Sequence[Row]) -> str:
    return "\n".join(table_lines(f"| {' | '.join(HEADS)} |", map(_line, rows)))


if __name__ == "__main__":
    sys.exit(main())
