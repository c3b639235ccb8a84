"""Write a report on records to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from html import escape
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING

from ...dialects.caller import warn_caller
from ...dialects.late import LateModule
from ...dialects.markup import as_text
from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole
from ..measure.limits import Limits, limits_of
from ..records import file as rec
from ..records.file import Record, RecordError
from ..records.network_files import TunedNetwork, networks_beside
from ..records.rebuilt import rebuilt_task, task_of_key
from .charts import CURVE_TITLE, curve_chart
from .document import PAGE_MARK
from .group import RecordGroup, groups
from .network import traces
from .page import page
from .vega import picture

if TYPE_CHECKING:
    from .. import task as searches
else:  # a report of records alone loads no search
    searches = LateModule("..task", __package__)

_HEIGHT = 640
"""Pixels of a report in a notebook, which scrolls."""


class Report(PosixPath):
    """The path of a report, which a notebook shows as the page that it is; it takes the 900 kB of the page there."""

    def _repr_html_(self) -> str | None:
        if self.suffix == ".svg" or not self.is_file():
            return None
        frame = f'sandbox="allow-scripts" title="{as_text(self.name)}" style="width:100%;height:{_HEIGHT}px;border:0"'
        return f'<iframe {frame} srcdoc="{escape(self.read_text(encoding="utf-8"))}"></iframe>'


SUFFIXES = (".html", ".htm", ".svg")
MARKS = (PAGE_MARK.encode(), b"<title>Tuning report of ", CURVE_TITLE.encode())
"""Marks of a report: those of pages, now and before, and of a curve."""


def write_report(
    records: str | os.PathLike[str] | Iterable[Record],
    output: str | os.PathLike[str],
    find_task: Callable[[Record], searches.SearchTask | None] | None = None,
    measure: bool = True,
    title: str = "",
    networks: Sequence[TunedNetwork] | None = None,
) -> Report:
    """Write an HTML page about records, or a file of them, which loads nothing from elsewhere; returns its path.

    To an `output` that ends in `.svg` it writes the tuning curve alone, of records of one workload.

    `find_task` gives the task of a record where the workload is at hand: its IR is then shown step by step. Without it,
    the IR that tuning leaves beside a file is taken, as are the weights of `networks`. With `measure`, the limits of
    this machine's CPU are measured where records are of it and keep none. RecordError where a file cannot be read or
    written, or there is no record.
    """
    default: Callable[[Record], searches.SearchTask | None]
    if isinstance(records, str | os.PathLike):
        name, loaded, default = os.fspath(records), rec.load(records), partial(rebuilt_task, records=records)
    else:
        name, loaded, default = "records", rec.loaded(records), task_of_key
    known = networks_of(records) if networks is None and isinstance(records, str | os.PathLike) else networks or ()
    if not loaded:
        where = f" in {name}" if isinstance(records, str | os.PathLike) else ""
        raise RecordError(f"there is no record to report on{where}: tune first")
    find = find_task or default
    found = [replace(group, task=find(group.first)) for group in groups(loaded)]

    @cache
    def measured(target: str, dtype: str | None) -> Limits | None:
        return limits_of(target, [dtype] if measure and dtype else ())

    def limits(group: RecordGroup) -> Limits | None:
        return group.limits or measured(group.first.target, group.dtype)

    path = Report(output)
    if path.suffix not in SUFFIXES:
        raise RecordError(f"a report is a page (.html) or a curve alone (.svg), not {os.fspath(output)!r}")
    if path.suffix == ".svg":
        if len(found) > 1:
            raise RecordError(f"a curve is of one workload, {name} holds {len(found)}: write a page (.html)")
        text = picture(curve_chart(found[0])) + "\n"
    else:
        text = page(found, title or f"Tuning report of {Path(name).name}", limits, traces(known, found))
    try:
        require_ours(path, "report", MARKS)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise RecordError(f"cannot write report {os.fspath(output)!r}: {error.strerror}") from error
    return path


def networks_of(records: str | os.PathLike[str]) -> list[TunedNetwork]:
    """The networks whose tasks were tuned into a record file; a RecordWarning says which of their files are damaged."""
    found, wrong = networks_beside(records)
    if wrong:
        warn_caller(f"weights of networks are left out: {'; '.join(wrong)}", rec.RecordWarning)
    return found
