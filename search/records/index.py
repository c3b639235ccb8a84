"""Records by workload and target: the best one of each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ...backends.missing import MissingRequirement
from ...backends.targets import resolve_target
from ...dialects.target import Target
from ...storage.whole_file import write_whole
from ..workload import ComputeDAG
from . import file as rec
from .file import Record, RecordError

Source = str | os.PathLike[str] | Record | Iterable["str | os.PathLike[str] | Record"]
"""Where records come from: a file, a record, or some of those."""

SKETCH_PREFIX = "template:"
"""Records of templates name them with this prefix where others name their sketch."""


class OfWorkload(Protocol):
    """A task, whose workload records are looked up for."""

    @property
    def compute_dag(self) -> ComputeDAG: ...


class RecordIndex:
    """The records of each workload on each target, the best one first."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self._groups: dict[tuple[str, str], list[Record]] = {}
        for record in self.records:
            if record.ok:
                self._groups.setdefault((record.workload_hash, record.target), []).append(record)

    def query(self, target: str | Target, workload: str | OfWorkload, template: str | None = None) -> Record | None:
        """The fastest record of a workload on a target; of one template only, if it is named.

        `workload` is a task, its `workload` (the key), or a hash. None where there is no record. Where none has just
        this target, the same kind and model will do.
        """
        return next(self.ranked(target, _hash_of(workload), template), None)

    def ranked(self, target: str | Target, workload: str, template: str | None) -> Iterator[Record]:
        """The records of a workload, from the best one on: those of this target, then those of the same model."""
        text = self._full(target, workload)
        near = [r for (w, t), group in self._groups.items() if w == workload and _alike(t, text) for r in group]
        for group in (self._groups.get((workload, text), []), near):
            if template is not None:
                group = [r for r in group if r.sketch == SKETCH_PREFIX + template]
            if group:
                best = rec.best(group)
                yield best
                yield from sorted((r for r in group if r is not best), key=lambda r: (r.stopped_early, r.time_s))

    def _full(self, target: str | Target, workload: str) -> str:
        """A target's text as records have it: `llvm`, which no record has, stands for this machine's."""
        text = str(target)
        if (workload, text) in self._groups or not isinstance(target, str):
            return text
        try:
            return str(resolve_target(target))
        except (ValueError, MissingRequirement):
            return text


def _hash_of(workload: Any) -> str:
    """The hash of a workload given by a task, a key or the hash."""
    if isinstance(workload, str):
        return str(json.loads(workload)[-1]) if workload.startswith("[") else workload
    if not hasattr(workload, "compute_dag"):
        raise TypeError(f"a workload is a task, its workload key or hash, got {type(workload).__name__}")
    return str(workload.compute_dag.hash)


def _alike(one: str, other: str) -> bool:
    """True where two target texts differ, and are of the same kind and the same named model."""
    a, b = (dict(part.partition("=")[::2] for part in text.split()[1:]) for text in (one, other))
    same_kind = one != other and one.partition(" ")[0] == other.partition(" ")[0]
    return same_kind and "model" in a and a.get("model") == b.get("model")


def records_in(source: Source) -> list[Record]:
    """All records of a source; RecordError where a file cannot be read."""
    if isinstance(source, Record):
        return [source]
    if isinstance(source, str | os.PathLike):
        return rec.load(source)
    if not isinstance(source, Iterable):
        raise TypeError(f"records are a file, a Record, or a list of those, got {type(source).__name__}")
    found: list[Record] = []
    for item in source:
        if not isinstance(item, Record | str | os.PathLike):
            raise TypeError(f"records are a file, a Record, or a list of those, got a list with {type(item).__name__}")
        found += records_in(item)
    return found


def pick_best(records: Source, out: str | os.PathLike[str] | None = None) -> list[Record]:
    """The best record of each workload on each target and device, and the best of each template for it.

    They are written to `out`, if it is given, with the best that is there. RecordError where a file cannot be read or
    written.
    """
    loaded = records_in(records)
    if out is None:
        return _best_of(loaded)
    if os.path.exists(out):
        loaded = rec.merge([rec.load(out), loaded])
    best = _best_of(loaded)
    try:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, "".join(record.to_json() + "\n" for record in best))
    except OSError as error:
        raise RecordError(f"cannot write record file {os.fspath(out)!r}: {error.strerror}") from error
    return best


def _best_of(records: list[Record]) -> list[Record]:
    best = rec.distill(records)
    by_template: dict[str, list[Record]] = {}
    for record in records:
        if record.sketch.startswith(SKETCH_PREFIX):
            by_template.setdefault(record.sketch, []).append(record)
    own = [record for group in by_template.values() for record in rec.distill(group)]
    return best + [record for record in own if record not in best]
