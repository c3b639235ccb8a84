"""Looking up the best record of a workload that is given by its task, name, key or hash."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...backends.targets import resolve_target
from ...dialects.late import LateModule
from . import file as rec
from .file import Record, RecordError
from .index import ForTarget, on_device
from .match import Choice, same_model
from .record import key_of

if TYPE_CHECKING:
    from .. import task as searches
    from ..template import task as templates
else:  # who asks by name or by hash loads neither
    searches = LateModule("..task", __package__)
    templates = LateModule("..template.task", __package__)

_FEWEST_DIGITS = 4
"""Of a hash that is given by its beginning: among ten workloads two share four digits once in 1,500 files."""


def load_best(
    records: str | os.PathLike[str] | Iterable[Record],
    workload: str | searches.SearchTask | templates.TemplateTask | None = None,
    target: str | None = None,
    device: str | None = None,
) -> Record:
    """Return the best record of a file (or of records): of a task, or of a workload by name, key or hash.

    Without `workload` the records must be of one workload only. `target` and `device` narrow the choice; a task brings
    its own target, and the rule of `SearchTask.best_record`, which holds for a target given as text, too, where the
    workload's IR is at hand (see `History.query`). RecordError says what is there where nothing, or more than one
    workload, fits.
    """
    loaded = rec.loaded(records)
    loaded = rec.select(loaded, device=device)
    if workload is not None and not isinstance(workload, str):
        wanted = workload if target is None else ForTarget(workload.compute_dag, resolve_target(target))
        return Choice(loaded, wanted).require()
    loaded = on_target(loaded, target)
    found = [r for r in loaded if workload is None or is_of(r, workload)]
    there = ", ".join(f"{digest} ({name_in(key)})" for digest, key in workloads(loaded).items()) or "none"
    if workload is not None and not found:
        raise RecordError(f"no record of workload '{workload}'; there are records of {there}")
    if len(workloads(found)) > 1:
        raise RecordError(f"there are records of {len(workloads(found))} workloads, choose one of {there}")
    return best_on(found, target, [records] if isinstance(records, str | os.PathLike) else ())


def best_on(records: Sequence[Record], target: str | None, files: Iterable[str | os.PathLike[str]]) -> Record:
    """The best of one workload's records on a target, if it is named; RecordError with the reasons where none is."""
    if target is None or any(record.target == target for record in records):
        return rec.best(records)
    best, why_not = on_device(records, resolve_target(target), files)
    if best is None and why_not:
        raise RecordError(f"of {len(records)} record(s) none can be used on {target} ({why_not})")
    return rec.best(records) if best is None else best


def on_target(records: list[Record], target: str | None) -> list[Record]:
    """The records of a target given as text: of that very text, else of the same model; all without one."""
    exact = rec.select(records, target=target)
    if exact or target is None:
        return exact
    wanted = resolve_target(target)
    return [r for r in records if same_model(r.target, wanted)]


def workloads(records: Iterable[Record]) -> dict[str, str]:
    """Return the hash and the key of each workload, in order of first appearance."""
    found: dict[str, str] = {}
    for record in records:
        found.setdefault(record.workload_hash, record.workload_key)
    return found


def is_of(record: Record, workload: str) -> bool:
    """True where a record is of a workload given by key, name, hash, or the hash's first digits (four or more)."""
    if workload in (record.workload_key, name_in(record.workload_key)):
        return True
    return len(workload) >= _FEWEST_DIGITS and record.workload_hash.startswith(workload)


def name_in(key: str) -> str:
    """Return the name in a workload key, or the key where it is none of ours."""
    parts = key_of(key)
    return key if parts is None else parts[0]
