"""Tune all tasks of a network, compile it with what was found, and report what it reaches."""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import printable
from ..search.records.record import duration
from ._errors import UserError, interruption_code
from ._measuring import measure_option_of
from ._network import name_of, read_network, takes_winograd, tasks_of
from ._report import limits_once, table
from ._searching import require_records, said, said_on, tuning_options_of

if TYPE_CHECKING:
    from ..search.tune.scheduler import NetworkResult

TRIALS_A_TASK = 64


def tune_network(options: argparse.Namespace) -> int:
    """Carry out `loopwright tune` for a network."""
    from ..graph.network_run_off import compile_tuned
    from ..search.tune.options import TuningError
    from ..search.tune.scheduler import TaskScheduler

    if options.tuner is not None:
        raise UserError(f"--tuner searches one template, and {options.workload} is a network: leave it out")
    measure = measure_option_of(options)
    net = read_network(options, options.workload)
    try:
        tasks, weights = tasks_of(net, options.target, options.templates, bool(options.winograd))
    except ValueError as error:
        raise UserError(str(error)) from None
    if not tasks:
        none = "has a template" if options.templates else "has a reduction"
        raise UserError(f"{options.workload} has nothing to tune: no kernel of it {none}; compile it as it is")
    trials = options.trials or TRIALS_A_TASK * len(tasks)
    if trials < len(tasks):
        raise UserError(f"--trials must be at least the number of tasks, {len(tasks)}, got {trials}")
    records = options.records or Path(f"{name_of(options.workload)}.jsonl")
    require_records(records)
    say = said_on(options)
    for number, (task, weight) in enumerate(zip(tasks, weights, strict=True)):
        what = printable(f"{task.name}, {task.flops / 1e6:.1f} MFLOP, {task.workload_key}")
        said(say, f"task {number:>3}: {weight} x {what}")
    known = " (exists: gone on with)" if records.exists() else ""
    said(say, f"\nrecords: {records}{known}")
    limits = limits_once(tasks[0].target, {task.compute_dag.dtype for task in tasks})
    tuning = tuning_options_of(options, records, trials, limits)
    start_s = time.monotonic()
    try:
        result = TaskScheduler(tasks, weights, load_records=records).tune(tuning, measure)
    except KeyboardInterrupt as error:
        again = shlex.join(["loopwright", *options.command_line])
        print(f"go on with: {again}", file=sys.stderr)
        return interruption_code(error)
    wall_s = time.monotonic() - start_s
    if result.failure:
        raise TuningError(result.failure)
    compiled = compile_tuned(net, options.target, records, winograd=takes_winograd(options), measure=measure)
    measured = compiled.executor().benchmark(repeat=3, min_repeat_ms=200)
    report = _report(options, result, measured.median, wall_s, records)
    print(json.dumps(report) if options.json else _as_text(report, printable(repr(compiled))))
    return 0 if all(best is not None for best in result.best) else 1


def _report(
    options: argparse.Namespace, result: NetworkResult, measured_s: float, wall_s: float, records: Path
) -> dict[str, Any]:
    from ..search.tune.scheduler import NetworkResult

    assert isinstance(result, NetworkResult)
    rows = result.state.rows
    untuned = [row for row in rows if not row.is_another_way]
    defaults = [row.weight * row.tuning.default.time_s for row in untuned if row.tuning.default is not None]
    untuned_s = sum(defaults) if len(defaults) == len(untuned) else math.nan
    return {
        "network": name_of(options.workload),
        "target": options.target,
        "latency_s": measured_s,
        "tasks_s": result.latency_s if math.isfinite(result.latency_s) else None,
        "untuned_tasks_s": None if math.isnan(untuned_s) else untuned_s,
        "trials": result.state.done,
        "resumed": result.state.resumed,
        "wall_s": wall_s,
        "records": os.fspath(records),
        "tasks": [
            {
                "task": row.number,
                "name": row.tuning.task,
                "weight": row.weight,
                "latency_s": row.latency_s if math.isfinite(row.latency_s) else None,
                "gflops_per_s": row.gflops_per_s,
                "trials": row.tuning.done,
                "errors": dict(row.tuning.errors),
            }
            for row in rows
        ],
    }


def _as_text(report: dict[str, Any], compiled: str) -> str:
    tasks_s, untuned_s = report["tasks_s"], report["untuned_tasks_s"]
    estimated = "-" if tasks_s is None else duration(tasks_s)
    if tasks_s and untuned_s:
        estimated += f"; untuned {duration(untuned_s)}, {untuned_s / tasks_s:.2f} times as long"
    rows = [
        ("latency", f"{duration(report['latency_s'])} from input to output"),
        ("tasks", estimated),
        ("trials", f"{report['trials']} ({report['resumed']} from the records); {report['wall_s']:.1f} s"),
        ("records", report["records"]),
    ]
    return f"\n{compiled}\n{table(rows)}"
