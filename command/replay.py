"""Compile a recorded or given schedule again, check its result against NumPy, and time it; --export takes it to C."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import printable
from ..search.records.record import duration
from ._errors import UserError
from ._export import add_export_options, check_export, export, in_words
from ._inputs import file_name, from_zero, positive
from ._report import check, limits_for, place, speed_json, speed_rows, table
from ._source import file_task, pick_record, replayable, task_of
from .show import add_choice

if TYPE_CHECKING:
    from ..search.records.file import Record
    from ..search.task import SearchTask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=file_name, help="a record file, or a workload's IR (.mlir)")
    parser.add_argument("--schedule", metavar="TEXT", help="a schedule as text instead of the recorded one")
    add_choice(parser)
    parser.add_argument("--min-repeat-ms", type=from_zero, default=200.0, help="length of a repeat (default: 200)")
    parser.add_argument("--repeat", type=positive, default=5, help="repeats (default: 5)")
    add_export_options(parser)
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(options: argparse.Namespace) -> int:
    from ..backends.llvm.cpu import MissingFeatures

    task, schedule, record = _chosen(options)
    check_export(options, str(task.target))
    try:
        kernel = task.build(schedule)
    except ValueError as error:
        raise UserError(str(error)) from None
    try:
        checked = check(task, kernel)
    except MissingFeatures as error:
        if options.export is None:
            raise
        return _exported_unseen(task, schedule, export(kernel, options, task.name), str(error), options.json)
    limits = limits_for(task.target, [task.compute_dag.dtype], record)
    written = export(kernel, options, task.name) if checked.right else {}
    result = kernel.benchmark(*task.reference.inputs, min_repeat_ms=options.min_repeat_ms, repeat=options.repeat)
    if options.json:
        report = {
            "workload_key": task.workload_key,
            "target": str(task.target),
            "schedule": schedule,
            "right": checked.right,
            "max_abs_error": checked.max_abs_error,
            "latency_s": result.min,
            "median_s": result.median,
            "times_s": result.times_s,
            **speed_json(task, result.min, limits),
            "recorded_s": None if record is None else record.time_s,
            **written,
        }
        print(json.dumps(report))
        return 0 if checked.right else 1
    rows = [
        (
            "latency",
            f"{duration(result.min)} (shortest of {len(result.times_s)} repeats, median {duration(result.median)})",
        )
    ]
    if record is not None:
        rows.append(("recorded", f"{duration(record.time_s)} on {printable(record.device)}"))
    rows += [*speed_rows(task, result.min, limits), ("check", str(checked))]
    print(printable("\n".join([f"{task.name} on {place(task)}", table(rows), *in_words(written)])))
    return 0 if checked.right else 1


def _exported_unseen(task: SearchTask, schedule: str, written: dict[str, Any], why: str, as_json: bool) -> int:
    """Report the export of a kernel for another CPU, which cannot be checked or timed here."""
    if as_json:
        known = {"workload_key": task.workload_key, "target": str(task.target), "schedule": schedule}
        print(json.dumps({**known, "right": None, **written}))
    else:
        print(printable("\n".join([f"not checked: {why}", *in_words(written)])))
    return 0


def _chosen(options: argparse.Namespace) -> tuple[SearchTask, str, Record | None]:
    """Return the task, the schedule, and the record it is from."""
    if options.source.suffix == ".mlir":
        for flag, value in (("--workload", options.workload), ("--workload-file", options.workload_file)):
            if value is not None:
                raise UserError(f"{flag} is for record files, and {options.source} is a workload: leave it out")
        task = file_task(options.source, options.target or "llvm")
        return task, task.default_schedule if options.schedule is None else options.schedule, None
    record = pick_record(options.source, options.workload, options.target)
    task = task_of(record, options.source, options.workload_file)
    if options.schedule is not None:
        return task, options.schedule, None
    return task, replayable(record).schedule, record
