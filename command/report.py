"""Write an HTML page about a record file: curve, best schedule step by step, errors, what mattered, roofline."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..dialects.shown_text import printable
from ._errors import UserError
from ._inputs import file_name
from ._source import task_of

if TYPE_CHECKING:
    from ..search.records.file import Record
    from ..search.task import SearchTask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", type=file_name, nargs="+", help="record files, of one or several workloads")
    parser.add_argument(
        "-o",
        "--output",
        type=file_name,
        help="page to write, or the curve alone (.svg); default: the first file's name .html",
    )
    parser.add_argument(
        "--workload-file",
        type=file_name,
        action="append",
        default=[],
        metavar="FILE",
        help="the IR of a workload, if not beside the records; may be given several times",
    )
    parser.add_argument(
        "--no-measure", action="store_true", help="do not measure this CPU's limits, which takes a second or two"
    )


def run(options: argparse.Namespace) -> int:
    from ..search.records.file import load, merge
    from ..search.report.group import groups
    from ..search.report.network import traces
    from ..search.report.vega import why_no_charts
    from ..search.report.write import networks_of, write_report

    output = options.output or options.records[0].with_suffix(".html")
    if any(output.exists() and path.exists() and os.path.samefile(output, path) for path in options.records):
        raise UserError(f"the report would replace the record file {output}: give another name with -o")
    records = merge([load(path) for path in options.records]) if len(options.records) > 1 else load(options.records[0])
    given = {task.compute_dag.hash: task for task in map(_given, options.workload_file)}
    find = partial(_task, given, options.records)
    names = ", ".join(path.name for path in options.records)
    networks = list(dict.fromkeys(network for path in options.records for network in networks_of(path)))
    write_report(records, output, find, not options.no_measure, f"Tuning report of {names}", networks)
    for trace in traces(networks, groups(records)):
        print(f"{printable(str(trace))}\n")
    print(f"{output}: {output.stat().st_size / 1e3:.0f} kB")
    if (why := why_no_charts()) is not None:
        print(f"loopwright: charts are {why}", file=sys.stderr)
    return 0


def _given(path: Path) -> SearchTask:
    from ._source import file_task

    return file_task(path, "llvm")


def _task(given: dict[str, SearchTask], files: list[Path], record: Record) -> SearchTask | None:
    """The task of a record, from the files given, those beside the records, or the key; None where nothing has it."""
    from ..backends.targets import resolve_target
    from ..search.task import SearchTask

    known = given.get(record.workload_hash)
    if known is not None:
        return SearchTask(known.compute_dag.module, target=resolve_target(record.target))
    for path in files:
        try:
            return task_of(record, path)
        except (UserError, ValueError):
            continue
    return None
