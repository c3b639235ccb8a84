"""Explain why a schedule is fast: its steps one by one, limits of blocks, counters, code, good values of knobs."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ..dialects.shown_text import printable
from ..passes.pipeline_text import parse_schedule
from ._errors import UserError
from ._inputs import file_name
from ._measuring import add_measure_options, measure_option_of
from ._source import file_task, pick_record, replayable, task_of
from .show import add_choice

if TYPE_CHECKING:
    from ..search.measure.limits import Limits
    from ..search.report.group import RecordGroup
    from ..search.task import SearchTask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=file_name, help="a record file, or a workload's IR (.mlir)")
    parser.add_argument("--schedule", metavar="TEXT", help="a schedule as text instead of the recorded one")
    add_choice(parser)
    parser.add_argument("-o", "--output", type=file_name, help="write it here too: a page, or text (.txt)")
    parser.add_argument(
        "--no-counters", action="store_true", help="do not ask for hardware counters (perf events, ncu)"
    )
    parser.add_argument(
        "--no-measure", action="store_true", help="measure nothing, here or of a device elsewhere: the rest of a record"
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    parser.add_argument("--json", action="store_true", help="print all figures as one JSON object")
    add_measure_options(parser)


def run(options: argparse.Namespace) -> int:
    from ..search.explain.explanation import explain

    task, schedule, group, limits = _asked(options)
    recorded = None if group is None or not options.no_measure else group.best
    if options.no_measure and (recorded is None or options.schedule is not None):
        raise UserError("--no-measure explains what a record file holds: give that, and no --schedule")
    try:
        parse_schedule(schedule)
    except ValueError as error:
        raise UserError(str(error)) from None
    found = explain(
        task,
        schedule,
        measure=measure_option_of(options),
        group=group,
        limits=limits,
        recorded=recorded,
        counters=not options.no_counters,
        progress=None if options.quiet else _say,
    )
    if options.output is not None:
        found.write(options.output)
    print(json.dumps(found.as_json()) if options.json else printable(str(found)))
    if options.output is not None and not options.json:
        print(f"\n{options.output}: {options.output.stat().st_size / 1e3:.0f} kB")
    return 0


def _asked(options: argparse.Namespace) -> tuple[SearchTask, str, RecordGroup | None, Limits | None]:
    """The task, the schedule, the records of the same workload, target and device, and the limits that they keep."""
    from ..search.records.file import load
    from ..search.report.group import groups

    if options.source.suffix == ".mlir":
        task = file_task(options.source, options.target or "llvm")
        return task, task.default_schedule if options.schedule is None else options.schedule, None, None
    record = pick_record(options.source, options.workload, options.target)
    task = task_of(record, options.source, options.workload_file)
    group = next(replace(found, task=task) for found in groups(load(options.source)) if record in found.records)
    schedule = replayable(record).schedule if options.schedule is None else options.schedule
    return task, schedule, group, group.limits


def _say(done: int, of: int) -> None:
    end = "\n" if done == of else "\r"
    print(f"measured {done} of {of} variants", end=end, file=sys.stderr, flush=True)
