"""Operators of real networks (`operator_cases.py`) beside PyTorch, untuned and tuned: a table of both halves.

`--half later` measures those of `later_cases.py`, which were listed when rules and models were done, `--half drawn
--seed N` those of shapes that are drawn at random (`drawn_cases.py`), `--half one-tap` convolutions of one tap
(`one_tap_cases.py`), `--half families --seed N` convolutions of drawn families (`conv_families.py`), `--half mixed
--seed N` products, moves, rows, reductions, scans and gathers of drawn shapes (`mixed_cases.py`), `--half elements
--seed N` pads, tiles, selections, casts and others (`element_cases.py`), `--half pools --seed N` pools
(`pool_cases.py`).

    python benchmarks/operators.py --target cuda --trials 64 --output operators.jsonl

fp32, TF32 off; each result is checked against the reference first. On a CUDA device both sides are replayed as CUDA
graphs; on a CPU calls are timed on `--threads` threads of both, and on one thread in seconds of the CPU, in which what
else a machine does counts least; on several a turn in which other processes have the cores is taken again. Ours and the
peer take turns, and a figure is the median of the turns; a ratio above 1 means that ours is faster. `--write-schedules
FILE` writes the untuned schedules, and `--before FILE` measures such ones of an older version beside those of this one.
`--onnxruntime` measures that too, in a session of the same operator with all its operands as inputs, and ratios are of
the faster of both. Several processes (`--jobs`) prepare cases at once, and one at a time has the device, or with
`--pinned` each has cores. Results are a line of JSON each, and a file that is there is gone on with.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import gpu
import numpy as np
from conv_families import families
from drawn_cases import drawn
from element_cases import of_elements
from in_onnxruntime import session_of
from later_cases import LATER
from mixed_cases import mixed
from neighbours import undisturbed
from one_tap_cases import one_tap
from operator_cases import CASES, Case
from pool_cases import pools
from rounds import PAUSE_S, POOL_PAUSE_S, calls_by_clock, clock_of_a_thread, medians_in_turn, runs_by_clock
from tables import table_lines

import loopwright as lw
from loopwright.backends.arrays import aligned_copy, aligned_results
from loopwright.search.sketch.likely import likeliest_candidate

Row = dict[str, Any]
HALVES = ("held-out", "shown", "later", "drawn", "one-tap", "families", "mixed", "elements", "pools")
"""Lists of cases in the order they are measured; all but the first two where they are asked for by name."""
PEERS = ("peer_s", "torch_s", "onnxruntime_s")
"""Timers of others, the faster of which is the peer."""
AT_LEAST_S = {False: 0.005, True: 0.002}
"""Of calls in a turn, by whether they are of a GPU."""
BY_CLOCK_S = 3 * AT_LEAST_S[False]
"""Of calls in a turn that are timed from here."""

_device: AbstractContextManager[Any] = nullcontext()
"""Of this process: entered by whoever uses the device."""


def main() -> int:
    options = _options()
    path = Path(options.output) if options.output else None
    done: dict[str, Row] = {}
    if path and path.exists():
        done = {row["case"]: row for row in map(json.loads, path.read_text().splitlines())}
    in_turn = sorted(_cases(options), key=lambda case: HALVES.index(case.half))
    if options.write_schedules:
        chosen = {
            case.name: lw.SearchTask(case.operator.tensors, target=_target(options)).default_schedule
            for case in in_turn
            if _asked(case, options)
        }
        Path(options.write_schedules).write_text(json.dumps(chosen, indent=1))
        return 0
    left = [case.name for case in in_turn if case.name not in done and _asked(case, options)]
    context = multiprocessing.get_context("spawn")
    lock = nullcontext() if options.pinned else context.Lock()
    cores = context.Queue()
    for number in range(options.jobs if options.pinned else 0):
        cores.put(sorted(os.sched_getaffinity(0))[number * options.threads : (number + 1) * options.threads])
    with ProcessPoolExecutor(
        options.jobs, context, _begin, (lock, options.threads, cores if options.pinned else None)
    ) as pool:
        for trying in as_completed([pool.submit(_tried, name, options) for name in left]):
            row = trying.result()
            done[row["case"]] = row
            print(_line(row), flush=True)
            if path:
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(table([done[case.name] for case in in_turn if case.name in done]))
    return int(any("failed" in row for row in done.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm", help="llvm or cuda; a device that is here")
    parser.add_argument("--write-schedules", metavar="FILE", help="write the untuned schedules, and measure nothing")
    parser.add_argument("--before", metavar="FILE", help="also untuned schedules that an older version wrote")
    parser.add_argument("--onnxruntime", action="store_true", help="on a CPU: as a second peer")
    parser.add_argument("--analytic", action="store_true", help="also what the rules' estimates choose, untuned")
    parser.add_argument("--trials", type=int, default=0, help="of a search; without, the untuned schedule alone")
    parser.add_argument("--limit-s", type=float, default=60, help="seconds of a search, at most")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU, for both sides")
    parser.add_argument("--kinds", nargs="+", choices=sorted({case.kind for case in (*CASES, *LATER)}))
    parser.add_argument("--half", nargs="+", choices=HALVES, default=HALVES[:2], help="default: the first two")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn cases")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--pinned", action="store_true", help="on a CPU: jobs measure at once, each on cores of its own"
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--records", default="operator-records", help="folder of record files, one a case")
    parser.add_argument("--output", help="a file of JSON lines, which is gone on with")
    return parser.parse_args()


def _cases(options: argparse.Namespace) -> tuple[Case, ...]:
    more = (*(one_tap() if "one-tap" in options.half else ()),)
    if "families" in options.half:
        more = (*more, *families(options.seed))
    if "mixed" in options.half:
        more = (*more, *mixed(options.seed))
    if "elements" in options.half:
        more = (*more, *of_elements(options.seed))
    if "pools" in options.half:
        more = (*more, *pools(options.seed))
    return (*CASES, *LATER, *drawn(options.seed), *more)


def _asked(case: Case, options: argparse.Namespace) -> bool:
    return case.half in options.half and (not options.kinds or case.kind in options.kinds)


def _begin(lock: AbstractContextManager[Any], threads: int, cores: Any) -> None:
    """Prepare a process: what it takes to use the device, threads of a call, and a queue of cores to be pinned to."""
    global _device
    if cores is not None:
        os.sched_setaffinity(0, cores.get())
    import torch

    _device = lock
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


# -- one case, in a process of its own --------------------------------------------------------------------------------


def _tried(name: str, options: argparse.Namespace) -> Row:
    case = next(case for case in _cases(options) if case.name == name)
    row = {"case": name, "kind": case.kind, "half": case.half}
    try:
        return {**row, **measured(case, options)}
    except Exception as error:  # one case must not cost the others their time
        return {**row, "failed": f"{type(error).__name__}: {error}"[:500]}


def measured(case: Case, options: argparse.Namespace) -> Row:
    """Tune, check and time a case; seconds."""
    import torch

    on_gpu = options.target.startswith("cuda")
    task = lw.SearchTask(case.operator.tensors, target=_target(options))
    inputs = task.reference.inputs
    row: Row = {"flops": task.flops}
    kernels = {"untuned_s": task.build(task.default_schedule)}
    if options.before:
        kernels["before_s"] = task.build(json.loads(Path(options.before).read_text())[case.name])
    if options.analytic:
        first = task.sketches[0]
        sketch, decisions = likeliest_candidate(task.sketches) if on_gpu else (first, first.default)
        kernels["analytic_s"] = task.build(sketch.schedule(decisions))
    if options.trials:
        kernels["tuned_s"], row["tuning_s"], row["trials"] = _tuned(task, case, options)
    with _device:
        for kernel in kernels.values():
            _check(kernel, task)
        clock = time.perf_counter if on_gpu or options.threads > 1 else clock_of_a_thread()
        by_clock = not on_gpu and options.threads == 1
        ours = partial(_ours_by_clock, clock=clock) if by_clock else partial(_ours, on_gpu=on_gpu)
        calls = {name: ours(kernel, inputs) for name, kernel in kernels.items()}
        arrays = [torch.from_numpy(array) for array in inputs]
        peer = case.operator.peer(torch, [array.cuda() if on_gpu else array for array in arrays])
        calls["peer_s"] = gpu.graphed(torch, peer) if on_gpu else calls_by_clock(peer, clock, BY_CLOCK_S)
        if options.onnxruntime:
            calls["torch_s"] = calls.pop("peer_s")
            try:
                other = _in_onnxruntime(torch, case, arrays, options.threads)
                other()
                calls["onnxruntime_s"] = calls_by_clock(other, clock, BY_CLOCK_S)
            except Exception as error:  # of any kind: it has not all operators in all types
                row["not_in_onnxruntime"] = f"{type(error).__name__}: {error}"[:200]
        pause_s = POOL_PAUSE_S if options.onnxruntime and options.threads > 1 else PAUSE_S
        if not on_gpu and options.threads > 1:
            calls = {name: undisturbed(timer, pause_s) for name, timer in calls.items()}
        found = medians_in_turn(calls, options.turns, 0.0 if on_gpu else pause_s)
        return row | {"peer_s": min(s for name, s in found.items() if name in PEERS)} | found


def _in_onnxruntime(torch: Any, case: Case, arrays: Sequence[Any], threads: int) -> Callable[[], Any]:
    class Peer(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return case.operator.peer(torch, given)()

    return session_of(Peer(), arrays, threads)


def _target(options: argparse.Namespace) -> Any:
    if options.target == "cuda":
        from loopwright.backends.cuda.driver import target_of_device

        return target_of_device()
    return f"{options.target} cores={options.threads}" if options.target == "llvm" else options.target


def _tuned(task: lw.SearchTask, case: Case, options: argparse.Namespace) -> tuple[Any, float, int]:
    """The best kernel, the seconds that finding it took, and the trials; nobody else has the device meanwhile."""
    os.makedirs(options.records, exist_ok=True)
    records = Path(options.records) / f"{''.join(c if c.isalnum() else '-' for c in case.name)}.jsonl"
    asked = lw.TuningOptions(
        num_measure_trials=options.trials, time_limit_s=options.limit_s, records=records, progress=False
    )
    with _device:
        start_s = time.perf_counter()
        result = task.tune(asked)
        return task.apply_best(records), time.perf_counter() - start_s, result.state.done


def _check(kernel: Any, task: lw.SearchTask) -> None:
    reference = task.reference
    found = kernel(*reference.inputs)
    outputs = found if isinstance(found, tuple | list) else [found]
    for got, wanted, tolerance in zip(outputs, reference.expected, reference.tolerances, strict=True):
        np.testing.assert_allclose(got, wanted, **tolerance._asdict())


def _ours(kernel: Any, inputs: Sequence[Any], on_gpu: bool) -> Callable[[], float]:
    replayed = {"graph": True} if on_gpu else {}
    return lambda: float(kernel.benchmark(*inputs, repeat=3, min_repeat_ms=AT_LEAST_S[on_gpu] * 1e3, **replayed).median)


def _ours_by_clock(kernel: Any, inputs: Sequence[Any], clock: Callable[[], float]) -> Callable[[], float]:
    arrays = [aligned_copy(array) for array in inputs]
    arrays += aligned_results([(out.shape, out.dtype) for out in kernel.arguments if out.is_output], *arrays)
    return runs_by_clock(partial(kernel._executable.time, arrays), clock, BY_CLOCK_S)


# -- the table --------------------------------------------------------------------------------------------------------


def _line(row: Row) -> str:
    if "failed" in row:
        return f"| {row['kind']} | {row['case']} | {row['half']} | {row['failed'].splitlines()[0][:200]} |"
    cells = [f"{row['peer_s'] * 1e6:.1f}", f"{row['untuned_s'] * 1e6:.1f}", f"{row['peer_s'] / row['untuned_s']:.2f}x"]
    if "before_s" in row:
        cells += [f"{row['before_s'] * 1e6:.1f}", f"{row['peer_s'] / row['before_s']:.2f}x"]
    if "analytic_s" in row:
        cells += [f"{row['analytic_s'] * 1e6:.1f}", f"{row['peer_s'] / row['analytic_s']:.2f}x"]
    if "tuned_s" in row:
        cells += [f"{row['tuned_s'] * 1e6:.1f}", f"{row['peer_s'] / row['tuned_s']:.2f}x"]
        cells += [f"{row['trials']} in {row['tuning_s']:.0f} s"]
    return f"| {row['kind']} | {row['case']} | {row['half']} | {' | '.join(cells)} |"


def table(rows: Sequence[Row]) -> str:
    """Lines of all rows, and what each half comes to."""
    tuned = any("tuned_s" in row for row in rows)
    peer = "the faster" if any("onnxruntime_s" in row for row in rows) else "PyTorch"
    heads = ["kind", "case", "half", f"{peer} (us)", "untuned (us)", f"{peer} / untuned"]
    heads += ["before (us)", f"{peer} / before"] if any("before_s" in row for row in rows) else []
    heads += ["by estimates (us)", f"{peer} / by estimates"] if any("analytic_s" in row for row in rows) else []
    heads += ["tuned (us)", f"{peer} / tuned", "trials"] if tuned else []
    lines = [*table_lines(f"| {' | '.join(heads)} |", map(_line, rows)), ""]
    right = [row for row in rows if "failed" not in row]
    for half in HALVES:
        for key in ("untuned_s", "before_s", "analytic_s", "tuned_s"):
            ratios = [row["peer_s"] / row[key] for row in right if row["half"] == half and key in row]
            if ratios:
                lines.append(f"{half.capitalize()}, {key.removesuffix('_s')}: {_summary(ratios)}.")
    return "\n".join(lines)


def _summary(ratios: Iterable[float]) -> str:
    values = sorted(ratios)
    mean = math.exp(statistics.fmean(map(math.log, values)))
    slower = sum(value < 0.95 for value in values)
    return f"{len(values)} cases, {mean:.2f}x in geometric mean, {values[0]:.2f}x at least, {slower} below 0.95x"


if __name__ == "__main__":
    sys.exit(main())
