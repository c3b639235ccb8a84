"""Show the best record of a file: its schedule, the code of it, the IR it gives, or the kernel's source."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import printable
from ..search.records.record import duration
from ._errors import UserError
from ._inputs import file_name
from ._source import pick_record, replayable, task_of

if TYPE_CHECKING:
    from ..search.task import SearchTask

_MODES = ("schedule", "python", "dag", "ir", "source")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", type=file_name, help="record file that `tune` wrote")
    parser.add_argument("--mode", choices=_MODES, default="schedule", help="what to show (default: schedule)")
    add_choice(parser)
    parser.add_argument("--json", action="store_true", help="print the record, with what is shown, as one JSON object")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """The options that choose a record, and say where its workload is."""
    parser.add_argument("--workload", metavar="KEY", help="hash (or its first digits), key or name of the workload")
    parser.add_argument("--target", help="only records of this target")
    parser.add_argument(
        "--workload-file", type=file_name, metavar="FILE", help="the workload's IR, if not beside the records"
    )


def _rendered(task: SearchTask, schedule: str, mode: Any) -> str:
    try:
        return task.render(schedule, mode)
    except ValueError as error:
        raise UserError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    record = pick_record(options.records, options.workload, options.target)
    if options.mode == "schedule":
        text = record.schedule
    else:
        task = task_of(record, options.records, options.workload_file)
        text = (
            str(task.compute_dag)
            if options.mode == "dag"
            else _rendered(task, replayable(record).schedule, options.mode)
        )
    if options.json:
        shown: dict[str, Any] = json.loads(record.to_json())
        print(json.dumps({**shown, "mode": options.mode, "shown": text}))
    else:
        speed = f"{duration(record.time_s)} on {record.device}, target {record.target}"
        print(printable(f"{record.workload_key}: {speed}"), file=sys.stderr)
        print(printable(text))
    return 0
