"""Compare with PyTorch (oneDNN) and with the CPU's limits in one run: tune, time both in turn, write a table.

Each case is tuned on the same number of threads that it is timed on, or resumed from `--records`. Ours, the peer and
our untuned schedule are timed in turn, `--rounds` times; the figures are medians, the ratio is the peer's time over
ours (above 1: we are faster). Operands are as they come: whatever a side packs, it packs inside of the timed call.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, Case
from rounds import PAUSE_S, calls_by_clock, medians_in_turn
from tables import table_lines

import loopwright as lw
from loopwright.backends.llvm.device import device_name
from loopwright.backends.llvm.host import host_target
from loopwright.backends.llvm.peak import copy_gbytes_per_s, peak_gflops_per_s

AT_LEAST_S = 0.04
"""Seconds of calls that one timing is of."""


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds."""

    case: Case
    threads: int
    ours_s: float
    peer_s: float
    flops: int
    trials: int
    errors: str
    tuning_s: float
    untuned_s: float

    @property
    def ratio(self) -> float:
        return self.peer_s / self.ours_s


def main() -> None:
    options = _options()
    import torch

    rows: list[Row] = []
    limits: dict[int, tuple[float, float]] = {}
    for threads in options.threads:
        target = host_target(threads)
        limits[threads] = peak_gflops_per_s(target), copy_gbytes_per_s(target)
        torch.set_num_threads(threads)
        for case in CASES:
            if options.cases and case.name not in options.cases:
                continue
            row = _compare(case, threads, options, torch)
            rows.append(row)
            print(_line(row, limits), flush=True)
    text = _table(rows, limits, torch.__version__)
    print(text)
    if options.output:
        Path(options.output).write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cases", nargs="+", choices=[c.name for c in CASES])
    parser.add_argument(
        "--records", default="benchmarks/records", help="folder of record files, one a case and threads"
    )
    parser.add_argument("--output", help="write the table to this file")
    return parser.parse_args()


def _compare(case: Case, threads: int, options: argparse.Namespace, torch: Any) -> Row:
    records = Path(options.records)
    records.mkdir(parents=True, exist_ok=True)
    path = records / f"{case.name}-{threads}.jsonl"
    task = lw.SearchTask(case.tensors, target=f"llvm cores={threads}")
    start = time.perf_counter()
    result = task.tune(lw.TuningOptions(num_measure_trials=options.trials, records=path, progress=False))
    tuning_s = time.perf_counter() - start
    kernel, untuned = task.build(result.best.schedule), task.build()
    reference = task.reference
    with torch.inference_mode():
        # Both sides work on the same memory, which PyTorch allocates.
        tensors = [torch.from_numpy(a).clone() for a in reference.inputs]
        arrays = [t.numpy() for t in tensors]
        outputs = [torch.empty(e.shape).numpy() for e in reference.expected]
        peer = case.torch_call(torch, tensors)
        _check(case, reference, kernel(*arrays), peer())
        calls = {"ours": lambda: kernel(*arrays, *outputs), "peer": peer, "untuned": lambda: untuned(*arrays, *outputs)}
        timers = {name: calls_by_clock(call, time.perf_counter, AT_LEAST_S) for name, call in calls.items()}
        found = medians_in_turn(timers, options.rounds, PAUSE_S)
    errors = result.state.error_counts()
    times_s = found["ours"], found["peer"]
    return Row(case, threads, *times_s, task.flops, result.state.done, errors, tuning_s, found["untuned"])


def _check(case: Case, reference: Any, ours: Any, peer: Any) -> None:
    expected = reference.expected[0]
    theirs = peer.permute(0, 2, 3, 1) if case.name.endswith("nhwc") else peer
    for name, got in (("ours", ours), ("peer", theirs.numpy())):
        np.testing.assert_allclose(
            got, expected, atol=reference.tolerances[0].atol, rtol=1e-3, err_msg=f"{case.name}: {name}"
        )


def _share(row: Row, limits: dict[int, tuple[float, float]]) -> str:
    """The part reached of the machine's limit: of its FMA peak, or of its copy bandwidth where memory is the limit."""
    gflops, gbytes = limits[row.threads]
    if row.case.bytes:
        return f"{row.case.bytes / row.ours_s / 1e9 / gbytes:.0%} of copy"
    return f"{row.flops / row.ours_s / 1e9 / gflops:.0%} of FMA"


def _line(row: Row, limits: dict[int, tuple[float, float]]) -> str:
    ours, peer = row.ours_s * 1e6, row.peer_s * 1e6
    speed = row.flops / row.ours_s / 1e9
    asked = f"{row.case.goal:.1f}x {'met' if row.ratio >= row.case.goal else 'missed'}"
    return (
        f"| {row.case.name} | {row.threads} | {ours:.1f} | {peer:.1f} | {row.ratio:.2f}x | {asked} "
        f"| {speed:.1f} | {_share(row, limits)} | {row.untuned_s * 1e6:.1f} | {row.trials} | {row.errors} "
        f"| {row.tuning_s:.1f} |"
    )


def _table(rows: Sequence[Row], limits: dict[int, tuple[float, float]], torch_version: str) -> str:
    versions = {p: importlib.metadata.version(p) for p in ("xdsl", "llvmlite", "numpy", "scikit-learn")}
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    peaks = "; ".join(f"{t} thread(s): {g:.0f} GFLOP/s FMA, {b:.1f} GB/s copy" for t, (g, b) in limits.items())
    heading = (
        "| case | threads | ours (us) | PyTorch (us) | ratio | asked | ours GFLOP/s | of the limit | untuned (us) "
        "| trials | failed trials | tuning (s) |"
    )
    lines = [
        "# CPU: loopwright and PyTorch on the same cores, in one run",
        "",
        f"{datetime.date.today()}, {device_name()}, PyTorch {torch_version} (CPU, oneDNN), "
        f"loopwright {lw.__version__}, {shown}.",
        "",
        f"Limits measured in the same run: {peaks}. Medians of alternating rounds; ratio = PyTorch's time / ours.",
        "",
        *table_lines(heading, (_line(row, limits) for row in rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
