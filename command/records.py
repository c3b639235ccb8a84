"""Work on record files: count what they hold, list the best, keep only those, or join files with what lies beside."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..dialects.shown_text import printable
from ..search.records.choose import name_in
from ..search.records.record import duration
from ..storage.ownership import require_ours
from ..storage.whole_file import write_whole
from ._errors import UserError
from ._inputs import file_name

if TYPE_CHECKING:
    from ..search.records.file import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for function, text in _ACTIONS.items():
        action = actions.add_parser(function.__name__.strip("_"), help=text, description=text, allow_abbrev=False)
        action.add_argument("files", type=file_name, nargs="+", metavar="FILE", help="record file")
        if function in (_stats, _best):
            action.add_argument("--json", action="store_true", help="print one JSON object")
        else:
            action.add_argument(
                "-o", "--output", type=file_name, required=True, help="file to write, replaced if it exists"
            )
        action.set_defaults(action=function)


def run(options: argparse.Namespace) -> int:
    from ..search.records.file import load

    records = [record for path in options.files for record in load(path)]
    action: Callable[[argparse.Namespace, list[Record]], None] = options.action
    action(options, records)
    return 0


def _stats(options: argparse.Namespace, records: list[Record]) -> None:
    from ..search.records.file import stats

    found = stats(records)
    if options.json:
        rows = [{**asdict(s), "best_s": s.best_s if math.isfinite(s.best_s) else None} for s in found]
        print(json.dumps({"workloads": rows}))
        return
    if not found:
        print("no records")
    for s in found:
        errors = ", ".join(f"{count} {code}" for code, count in s.errors.items()) or "none"
        best = f"best {duration(s.best_s)}" if math.isfinite(s.best_s) else "none right"
        name = f"{s.workload_hash} {name_in(s.workload_key)}"
        print(printable(f"{name}: {s.trials} trials, {s.ok} right, errors {errors}, {best}"))
        counts = ((s.stopped_early, "stopped early"), (s.reused, "of a known binary"))
        notes = [f"{count} {what}" for count, what in counts if count]
        spent = ", ".join([f"{s.measuring_s:.1f} s of building and running", *notes])
        print(printable(f"  {s.device}; {spent}\n  {s.target}"))


def _best(options: argparse.Namespace, records: list[Record]) -> None:
    from ..search.records.file import distill

    found = distill(records)
    if options.json:
        print(json.dumps({"records": [json.loads(r.to_json()) for r in found]}))
        return
    if not found:
        print("no records")
    for r in found:
        name = f"{r.workload_hash} {name_in(r.workload_key)}"
        print(printable(f"{name}: {duration(r.time_s)} on {r.device}, {r.target}\n  {r.schedule}"))


def _distill(options: argparse.Namespace, records: list[Record]) -> None:
    from ..search.records.file import distill, merge

    kept = distill(records)
    lost = len(merge([records])) - len(kept)
    if lost and _is_read(options.output, options.files):
        raise UserError(f"{options.output} is read, and would lose {lost} of its records: name another file with -o")
    _write(options, kept, records)


def _is_read(path: Path, files: Sequence[Path]) -> bool:
    """True where a file that is to be written is one of those read, by any name."""
    return path.exists() and any(path.samefile(file) for file in files)


def _merge(options: argparse.Namespace, records: list[Record]) -> None:
    from ..search.records.file import merge

    _write(options, merge([records]), records)


def _write(options: argparse.Namespace, kept: Sequence[Record], records: Sequence[Record]) -> None:
    """Write records to a file that is complete or not there, and what lies beside those read, of which it may be one.

    What lies beside comes first: a record is not without what it refers to.
    """
    from ..search.records.carried import carry_along
    from ..search.records.file import RECORD_MARKS, RecordError

    path: Path = options.output
    text = "".join(record.to_json() + "\n" for record in kept)
    try:
        require_ours(path, "record file", RECORD_MARKS)
        path.parent.mkdir(parents=True, exist_ok=True)
        notes = carry_along(options.files, kept, path)
        write_whole(path, text)
    except RecordError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"cannot write {error.filename or path}: {error.strerror}") from None
    print(f"{path}: {len(kept)} of {len(records)} records")
    for note in notes:
        print(f"loopwright: {printable(note)}", file=sys.stderr)


_ACTIONS = {
    _stats: "count trials, errors and time for each workload and device",
    _best: "list the best record of each workload and device",
    _distill: "keep only the best record of each workload and device",
    _merge: "join files, each distinct record once, by time",
}
