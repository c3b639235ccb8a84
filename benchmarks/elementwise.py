"""Compare what memory limits on a CPU with PyTorch: untuned, tuned and the peer in turn in one process, as a table.

The untuned kernel is the default schedule of a build, the tuned one the best after `--trials` trials on the same
threads. All three work on the same arrays. Figures are medians of alternating rounds, each the shortest of some calls
in a row, so that what else runs on the machine is seen as little as it can be; ratios are the peer's time over ours
(above 1: we are faster).
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rounds import PAUSE_S, Timer, call_by_clock, medians_in_turn
from tables import table_lines

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm.device import device_name

CALLS = 30
"""Calls of a round."""


@dataclass(frozen=True)
class Case:
    """An operator on one array of `shape`: ours on a tensor; the peer's as `peer(torch, data, output)`."""

    name: str
    shape: tuple[int, ...]
    ours: Callable[[te.Tensor], te.Tensor]
    peer: Callable[[Any, Any, Any], Any]

    def tensors(self) -> list[te.Tensor]:
        data = te.placeholder(self.shape, name="data")
        return [data, self.ours(data)]


def _pool_peer(torch: Any, x: Any, _: Any) -> Any:
    return torch.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)


CASES = (
    Case("relu", (4096, 1024), topi.nn.relu, lambda t, x, y: t.clamp_min(x, 0.0, out=y)),
    Case("gelu", (4096, 1024), topi.nn.gelu, lambda t, x, y: t.ops.aten.gelu.out(x, out=y)),
    Case("transpose", (2048, 2048), topi.transpose, lambda t, x, y: y.copy_(x.t())),
    Case(
        "nhwc_to_nchw",
        (1, 56, 56, 256),
        lambda x: topi.transpose(x, (0, 3, 1, 2)),
        lambda t, x, y: y.copy_(x.permute(0, 3, 1, 2)),
    ),
    Case("sum_axis_0", (4096, 1024), lambda x: topi.sum(x, axis=0), lambda t, x, y: t.sum(x, 0, out=y)),
    Case("sum_axis_1", (4096, 1024), lambda x: topi.sum(x, axis=1), lambda t, x, y: t.sum(x, 1, out=y)),
    Case("softmax_axis_0", (4096, 1024), lambda x: topi.nn.softmax(x, 0), lambda t, x, y: t.softmax(x, 0, out=y)),
    Case("argmax", (1024, 4096), lambda x: topi.argmax(x, 1), lambda t, x, y: x.argmax(1)),
    Case("max_pool_3x3", (1, 112, 112, 64), lambda x: topi.nn.max_pool(x, 3, 2, 1, layout="NHWC"), _pool_peer),
)
"""PyTorch writes to an array that is there where it can: its pooling has results of its own, its argmax 64-bit ones."""


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds, `bytes` of inputs and outputs."""

    case: Case
    default_s: float
    best_s: float
    peer_s: float
    bytes: int
    decisions: int
    trials: int
    errors: str
    tuning_s: float


def main() -> None:
    options = _options()
    import torch

    torch.set_num_threads(options.threads)
    rows: list[Row] = []
    for case in CASES:
        if not options.cases or case.name in options.cases:
            rows.append(_compare(case, options, torch))
            print(_line(rows[-1]), flush=True)
    text = _table(rows, options, torch.__version__)
    print(text)
    if options.output:
        Path(options.output).write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trials", type=int, default=32, help="0: the untuned kernel alone")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cases", nargs="+", choices=[c.name for c in CASES])
    parser.add_argument("--output", help="write the table to this file")
    return parser.parse_args()


def _compare(case: Case, options: argparse.Namespace, torch: Any) -> Row:
    task = lw.SearchTask(case.tensors, target=f"llvm cores={options.threads}")
    schedule, trials, errors = task.default_schedule, 0, "none"
    start = time.perf_counter()
    if options.trials:
        result = task.tune(lw.TuningOptions(num_measure_trials=options.trials, progress=False))
        schedule, trials, errors = result.best.schedule, result.state.done, result.state.error_counts() or "none"
    tuning_s = time.perf_counter() - start
    default, best = task.build(task.default_schedule), task.build(schedule)
    reference = task.reference
    with torch.inference_mode():
        data = torch.from_numpy(reference.inputs[0]).clone()
        array, output = data.numpy(), np.empty_like(reference.expected[0])
        theirs = torch.from_numpy(np.empty_like(output))
        for got in (default(array), best(array), case.peer(torch, data, theirs).numpy()):
            np.testing.assert_allclose(
                got, reference.expected[0], atol=reference.tolerances[0].atol, rtol=1e-3, err_msg=case.name
            )
        calls = {
            "default": lambda: default(array, output),
            "ours": lambda: best(array, output),
            "peer": lambda: case.peer(torch, data, theirs),
        }
        timers = {name: _shortest(call_by_clock(call)) for name, call in calls.items()}
        times = medians_in_turn(timers, options.rounds, PAUSE_S)
    moved = array.nbytes + output.nbytes
    decisions = sum(1 for sketch in task.sketches for hole in sketch.holes if len(hole.choices) > 1)
    return Row(case, *times.values(), moved, decisions, trials, errors, tuning_s)


def _shortest(timer: Timer) -> Timer:
    """The least that a timer gives of some calls."""
    return lambda: min(timer() for _ in range(CALLS))


def _line(row: Row) -> str:
    shape = "x".join(map(str, row.case.shape))
    return (
        f"| {row.case.name} | {shape} | {row.default_s * 1e6:.0f} | {row.best_s * 1e6:.0f} | {row.peer_s * 1e6:.0f} "
        f"| {row.peer_s / row.default_s:.2f}x | {row.peer_s / row.best_s:.2f}x "
        f"| {row.bytes / row.best_s / 1e9:.0f} | {row.decisions} | {row.trials} | {row.errors} "
        f"| {row.tuning_s:.0f} |"
    )


def _table(rows: Sequence[Row], options: argparse.Namespace, torch_version: str) -> str:
    heading = (
        "| operator | shape | untuned (us) | tuned (us) | PyTorch (us) | untuned: ratio | tuned: ratio | GB/s "
        "| decisions | trials | failed trials | tuning (s) |"
    )
    lines = [
        "# What memory limits, on a CPU: loopwright and PyTorch in one process",
        "",
        f"{datetime.date.today()}, {device_name()}, {options.threads} threads, PyTorch {torch_version} (CPU, oneDNN), "
        f"loopwright {lw.__version__}. Medians of {options.rounds} alternating rounds, each the "
        f"shortest of {CALLS} calls.",
        "",
        "Ratio: PyTorch's time / ours. GB/s: bytes of inputs and outputs over the tuned time; the arrays fit the last",
        "cache. Both sides write to arrays that are there already, but for PyTorch's argmax and pooling, whose results",
        "it allocates.",
        "",
        *table_lines(heading, (_line(row) for row in rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
