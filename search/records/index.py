"""Records by workload and target: the best one of each, asked directly or as a context around a build."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextvars import Token
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from ...backends.missing import MissingRequirement
from ...backends.targets import resolve_target
from ...dialects.caller import warn_caller
from ...dialects.target import Target, parse_target
from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole
from ..applied import APPLIED
from ..workload import ComputeDAG
from . import file as rec
from .carried import carry_along
from .file import RECORD_MARKS, Record, RecordError, RecordWarning
from .match import Choice, Wanted, is_within, ranked
from .workload_files import dag_of_file, dag_of_key

Source = str | os.PathLike[str] | Record | Iterable["str | os.PathLike[str] | Record"]
"""Source of records: a file, a record, or some of those."""

SKETCH_PREFIX = "template:"
"""Records of templates name them with this prefix where others name their sketch."""


ConfigT = TypeVar("ConfigT", covariant=True)


class OfTemplate(Protocol[ConfigT]):
    """A template task, which reads its configs from records."""

    @property
    def name(self) -> str: ...

    @property
    def compute_dag(self) -> ComputeDAG: ...

    def recorded(self, records: Iterable[Record]) -> ConfigT | None: ...


class History:
    """Records, looked up by workload and target.

    As a context manager it holds for all that is built inside; inner contexts are asked first. Otherwise `query` asks
    it directly. Beside `files` there may be the IR of workloads.
    """

    def __init__(self, records: Iterable[Record], files: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.records = list(records)
        self._files = tuple(files)
        self._groups: dict[str, list[Record]] = {}
        for record in self.records:
            self._groups.setdefault(record.workload_hash, []).append(record)
        self._token: Token[tuple[History, ...]] | None = None

    def query(self, target: str | Target, workload: str | Wanted, template: str | None = None) -> Record | None:
        """The fastest record of a workload on a target; of one template only, if it is named.

        `workload` is a task, its `workload` (the key), or a hash. None where there is no record. Where none has just
        this target, one of the same model will do, whose schedule keeps the limits of the target: see `on_device`.
        """
        device = self._target(target, workload)
        if device is None:
            return None
        found = self.of(_hash_of(workload), template)
        if isinstance(workload, str):
            return on_device(found, device, self._files)[0]
        return Choice(found, ForTarget(workload.compute_dag, device)).record

    def config(self, task: OfTemplate[ConfigT]) -> ConfigT | None:
        """The best config of a template task that keeps the limits of its target; None where there is none."""
        return task.recorded(self.of(task.compute_dag.hash, task.name))

    def of(self, workload: str, template: str | None = None) -> list[Record]:
        """The records of a workload given by its hash; of one template only, if it is named."""
        found = self._groups.get(workload, [])
        return found if template is None else [r for r in found if r.sketch == SKETCH_PREFIX + template]

    def _target(self, target: str | Target, workload: str | Wanted) -> Target | None:
        """A target as records have it: `llvm`, which no record has, stands for this machine's."""
        if isinstance(target, Target):
            return target
        try:
            if any(record.target == target for record in self.of(_hash_of(workload))):
                return parse_target(target)
            return resolve_target(target)
        except (ValueError, MissingRequirement):
            return None

    def __enter__(self) -> History:
        if self._token is not None:
            raise RuntimeError("this history is applied already; make another one to apply it again inside")
        self._token = APPLIED.set((*APPLIED.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        APPLIED.reset(self._token)
        self._token = None


def histories() -> tuple[History, ...]:
    """The histories applied around this point, innermost first."""
    return APPLIED.get()[::-1]


def apply_history_best(records: Source) -> History:
    """A History of files and records, one or several: `with apply_history_best(file): ...`, or to be asked.

    RecordError where a file cannot be read.
    """
    return History(records_in(records), files_in(records))


@dataclass(frozen=True)
class ForTarget:
    """A workload on a target."""

    compute_dag: ComputeDAG
    target: Target


def on_device(
    records: Sequence[Record], target: Target, files: Iterable[str | os.PathLike[str]]
) -> tuple[Record | None, str]:
    """The best of one workload's records that is of use on a target, and why those that rank before it are not.

    Records of other targets of the model are held to the limits of this one by the workload's IR, which lies beside one
    of `files`, or is that of the named workload in the key. Where neither is so, a RecordWarning says that nobody
    looked at the limits.
    """
    first = next(ranked(records, target), None)
    if first is None or is_within(first.target, target):
        return first, ""
    dag = next((dag for file in files if (dag := dag_of_file(first, file)) is not None), None) or dag_of_key(first)
    if dag is None:
        model = f"{target.kind} model={target.model}"
        text = (
            f"the best record of workload {first.workload_hash} is of a '{model}' with wider limits, and whether it "
            "keeps those asked for is not known, as the workload's IR is not at hand: ask with the task"
        )
        warn_caller(text, RecordWarning)
        return first, ""
    choice = Choice(records, ForTarget(dag, target))
    return choice.record, choice.reasons


def _hash_of(workload: Any) -> str:
    """The hash of a workload given by a task, a key or the hash."""
    if isinstance(workload, str):
        return str(json.loads(workload)[-1]) if workload.startswith("[") else workload
    if not hasattr(workload, "compute_dag"):
        raise TypeError(f"a workload is a task, its workload key or hash, got {type(workload).__name__}")
    return str(workload.compute_dag.hash)


def records_in(source: Source) -> list[Record]:
    """Return the records of a source; RecordError where a file cannot be read."""
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


def files_in(source: Source) -> list[str | os.PathLike[str]]:
    """Return the files that a source names."""
    if isinstance(source, str | os.PathLike):
        return [source]
    if isinstance(source, Sequence):
        return [item for item in source if isinstance(item, str | os.PathLike)]
    return []


def pick_best(records: Source, out: str | os.PathLike[str] | None = None) -> list[Record]:
    """The best record of each workload on each target and device, and the best of each template for it.

    They are written to `out`, if it is given, with the best that is there; what lies beside the files goes along, where
    there is any (see `carry_along`). RecordError where a file cannot be read or written.
    """
    loaded = records_in(records)
    if out is None:
        return _best_of(loaded)
    if os.path.exists(out):
        loaded = rec.merge([rec.load(out), loaded])
    best = _best_of(loaded)
    try:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        carry_along(files_in(records), best, out)
        require_ours(out, "record file", RECORD_MARKS)
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
