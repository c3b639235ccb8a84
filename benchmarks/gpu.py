"""Compare with PyTorch (cuDNN, cuBLAS) on a CUDA device in one run: tune, time both as replayed graphs, write a table.

fp32 throughout, TF32 off. Ours and the peer are timed in turn; the figures are medians of the rounds, the ratio is the
peer's time over ours (above 1: we are faster). Operands are as they come and stay in device memory.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases
import numpy as np
from tables import table_lines

import loopwright as lw
from loopwright.backends.cuda.device import build, device_name, load
from loopwright.backends.cuda.driver import target_of_device
from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.timing import TimingSettings

CALLS_A_GRAPH = 20


@dataclass(frozen=True)
class Tuned:
    """The best after so many trials, found in so many seconds; `build_s` is the median of its builds."""

    trials: int
    ours_s: float
    tuning_s: float
    errors: str
    build_s: float
    schedule: str


@dataclass(frozen=True)
class Row:
    """One case; times in seconds."""

    case: cases.Case
    peer_s: float
    flops: int
    tuned: Sequence[Tuned]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[64], help="counts after which the best is compared")
    parser.add_argument("--limit-s", type=float, default=60.0, help="seconds of tuning a case, at most")
    parser.add_argument("--cases", nargs="+", choices=[c.name for c in cases.GPU_CASES])
    parser.add_argument("--records", default="gpu-records", help="folder of record files, one a case")
    parser.add_argument("--builders", type=int)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", help="write the table to this file, and the schedules beside it")
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    rows: list[Row] = []
    bandwidth = copy_gbytes_per_s(torch)
    for case in cases.GPU_CASES:
        if options.cases and case.name not in options.cases:
            continue
        try:
            rows.append(_compare(case, options, torch))
            print(_line(rows[-1], bandwidth), flush=True)
        except Exception as error:  # one case must not cost the others their device time
            print(f"| {case.name} | failed: {type(error).__name__}: {str(error)[:2000]} |", flush=True)
        if options.output:
            _write(Path(options.output), rows, bandwidth, torch.__version__)


def _compare(case: cases.Case, options: argparse.Namespace, torch: Any) -> Row:
    folder = Path(options.records)
    folder.mkdir(parents=True, exist_ok=True)
    task = lw.SearchTask(case.tensors, target=target_of_device())
    found = []
    for trials in options.trials:
        start = time.perf_counter()
        result = task.tune(
            lw.TuningOptions(
                num_measure_trials=trials,
                records=folder / f"{case.name}.jsonl",
                time_limit_s=options.limit_s,
                batch_size=32,
                progress=False,
            ),
            MeasureOptions(
                backend="loopwright.backends.cuda.device",
                overlap=True,
                builders=options.builders,
                timing=TimingSettings(number=1, repeat=3, min_repeat_ms=10.0),
            ),
        )
        found.append((result, time.perf_counter() - start))
    reference = task.reference
    runs = [_checked(task, result.best.schedule, reference) for result, _ in found]
    number = max(CALLS_A_GRAPH, int(0.02 / max(found[-1][0].best.time_s, 1e-6)))
    with torch.inference_mode():
        peer = graphed(torch, case.torch_call(torch, [torch.from_numpy(a).cuda() for a in reference.inputs]))
        ours_s: list[list[float]] = [[] for _ in runs]
        peer_s = []
        for _ in range(options.rounds):
            for times_s, (executable, buffers) in zip(ours_s, runs, strict=True):
                times_s.append(executable.runtime.time(buffers, number, graph=True) / number)
            peer_s.append(peer())
    tuned = [
        Tuned(
            result.state.done,
            statistics.median(times_s),
            tuning_s,
            result.state.error_counts(),
            statistics.median([r.build_s for r in result.trials if r.ok and r.build_s] or [0.0]),
            result.best.schedule,
        )
        for (result, tuning_s), times_s in zip(found, ours_s, strict=True)
    ]
    return Row(case, statistics.median(peer_s), task.flops, tuned)


def _checked(task: lw.SearchTask, schedule: str, reference: Any) -> tuple[Any, list[Any]]:
    """A kernel whose outputs are right, and its operands on the device."""
    executable = load(build(str(task.module), schedule))
    outputs = [np.empty(e.shape, e.dtype) for e in reference.expected]
    arrays = [*(np.ascontiguousarray(a) for a in reference.inputs), *outputs]
    executable.run(arrays)
    for got, expected, tolerance in zip(outputs, reference.expected, reference.tolerances, strict=True):
        np.testing.assert_allclose(got, expected, **tolerance._asdict())
    return executable, executable._upload(arrays, again=True)


def graphed(torch: Any, call: Callable[[], Any], calls: int = CALLS_A_GRAPH) -> Callable[[], float]:
    """Seconds of one call, in a graph of `calls` that is replayed."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()

    def timed() -> float:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()
        first.record()
        for _ in range(5):
            graph.replay()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e-3 / (5 * calls)

    return timed


def copy_gbytes_per_s(torch: Any) -> float:
    """The most that PyTorch's own ways to copy 256 MiB reach, in GB/s read and written."""
    source = torch.empty(1 << 26, device="cuda")
    destination = torch.empty_like(source)
    calls = (lambda: destination.copy_(source), lambda: torch.neg(source, out=destination))
    return max(2.0 * source.numel() * 4 / graphed(torch, call)() / 1e9 for call in calls)


def _line(row: Row, bandwidth: float) -> str:
    best = row.tuned[-1]
    speed = row.flops / best.ours_s / 1e12
    share = (
        f"{row.case.bytes / best.ours_s / 1e9 / bandwidth:.0%} of copy" if row.case.bytes else f"{speed:.1f} TFLOP/s"
    )
    cells = [
        f"{t.ours_s * 1e6:.1f} ({row.peer_s / t.ours_s:.2f}x) | {t.trials} in {t.tuning_s:.0f} s" for t in row.tuned
    ]
    return (
        f"| {row.case.name} | {row.peer_s * 1e6:.1f} | {' | '.join(cells)} "
        f"| {share} | {best.errors} | {best.build_s * 1e3:.0f} |"
    )


def _write(path: Path, rows: Sequence[Row], bandwidth: float, torch_version: str) -> None:
    found = {p: importlib.metadata.version(p) for p in ("xdsl", "numpy", "scikit-learn", "pycuda")}
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    heading = "| case | PyTorch (us) |"
    heading += " ours (us) | trials |" * max((len(row.tuned) for row in rows), default=0)
    heading += " ours | failed trials | median build (ms) |"
    lines = [
        "# GPU: loopwright and PyTorch on one device, in one run",
        "",
        f"{datetime.date.today()}, {device_name()}, PyTorch {torch_version} (fp32, TF32 off), "
        f"loopwright {lw.__version__}, {versions}.",
        "",
        f"Copy bandwidth in the same run: {bandwidth:.0f} GB/s. Both sides replayed as CUDA graphs, operands in device",
        "memory; medians of alternating rounds; ratio = PyTorch's time / ours. Convolutions with bias and relu on both",
        "sides, but for depthwise_alone. A build is all from the schedule to the cubin, in one process of several.",
        "",
        *table_lines(heading, (_line(row, bandwidth) for row in rows)),
        "",
    ]
    path.write_text("\n".join(lines))
    schedules = {row.case.name: row.tuned[-1].schedule for row in rows}
    path.with_suffix(".schedules.json").write_text(json.dumps(schedules, indent=1) + "\n")


if __name__ == "__main__":
    main()
