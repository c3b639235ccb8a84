"""Choice of a build's config: the best on record in the contexts around it, a pre-tuned one, or a fallback."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.missing import MissingRequirement
from ...storage.whole_file import write_whole
from ..records import file as rec
from ..records.file import Record, RecordError
from ..task import SearchTask, resolve_target
from .config import Config
from .fallback import explained_fallback

if TYPE_CHECKING:
    from ...dialects.target import Target
    from .task import TemplateTask

Source = str | os.PathLike[str] | Record | Iterable["str | os.PathLike[str] | Record"]
"""Where records come from: a file, a record, or some of those."""

SKETCH_PREFIX = "template:"
"""Records of templates name them with this prefix where others name their sketch."""

_contexts: ContextVar[tuple[History, ...]] = ContextVar("contexts", default=())
"""The histories applied around this point, outermost first; each thread and task has its own."""


_warned: set[tuple[str, str]] = set()
"""Templates with their arguments, and targets, that this process has warned of."""


class FallbackWarning(UserWarning):
    """A template is built with a config that nobody measured."""


class History:
    """The best config of each template, workload and target, from records.

    As a context manager it holds for all templates built inside; inner contexts are asked first. Otherwise `query`
    and `config` ask it directly.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self._groups: dict[tuple[str, str], list[Record]] = {}
        for record in self.records:
            if record.ok:
                self._groups.setdefault((record.workload_hash, record.target), []).append(record)
        self._token: Token[tuple[History, ...]] | None = None

    def query(
        self, target: str | Target, workload: str | SearchTask | TemplateTask, template: str | None = None
    ) -> Record | None:
        """The fastest record of a workload on a target; of one template only, if it is named.

        `workload` is a task, its `workload` (the key), or a hash. None where there is no record. Where none has just
        this target, the same kind and model will do.
        """
        return next(self._ranked(target, _hash_of(workload), template), None)

    def _ranked(self, target: str | Target, workload: str, template: str | None) -> Iterator[Record]:
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

    def config(self, task: TemplateTask) -> Config | None:
        """The best config of a task that keeps the limits of its target; None where there is no record of one."""
        ranked = self._ranked(task.target, task.compute_dag.hash, task.name)
        configs = (config for record in ranked if (config := _config_of(task, record)) is not None)
        best = next(configs, None)
        if best is None or task.why_not(best) is None:
            return best
        others = list({config.index: config for config in configs}.values())
        rows = np.array([config.row for config in others], dtype=np.int64).reshape(len(others), -1)
        return next(itertools.compress(others, task.legal(rows)), None)

    def __enter__(self) -> History:
        if self._token is not None:
            raise RuntimeError("this history is applied already; make another one to apply it again inside")
        self._token = _contexts.set((*_contexts.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _contexts.reset(self._token)
        self._token = None


def _hash_of(workload: Any) -> str:
    """The hash of a workload given by a task, a key or the hash."""
    if isinstance(workload, str):
        return str(json.loads(workload)[-1]) if workload.startswith("[") else workload
    if not hasattr(workload, "compute_dag"):
        raise TypeError(f"a workload is a task, its workload key or hash, got {type(workload).__name__}")
    return str(workload.compute_dag.hash)


def _config_of(task: TemplateTask, record: Record) -> Config | None:
    """Read the choices of a task's knobs from a record; None where the knobs have changed since."""
    values = record.template.get("config")
    try:
        return task.config(values) if isinstance(values, Mapping) else None
    except ValueError:
        return None


def _alike(one: str, other: str) -> bool:
    """True where two target texts differ, and are of the same kind and the same named model."""
    a, b = (dict(part.partition("=")[::2] for part in text.split()[1:]) for text in (one, other))
    same_kind = one != other and one.partition(" ")[0] == other.partition(" ")[0]
    return same_kind and "model" in a and a.get("model") == b.get("model")


def apply_history_best(records: Source) -> History:
    """A History of files and records, one or several: `with apply_history_best(file): ...`, or to be asked.

    RecordError where a file cannot be read.
    """
    return History(_records_in(records))


def _records_in(source: Source) -> list[Record]:
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
        found += _records_in(item)
    return found


def histories() -> tuple[History, ...]:
    """The histories applied around this point, innermost first."""
    return _contexts.get()[::-1]


def best_record(target: str | Target, workload: str) -> Record | None:
    """The record that the contexts around this point, then the pre-tuned set, hold for a workload's hash."""
    from ..records import pretuned

    for history in (*histories(), pretuned.history()):
        if (record := history.query(target, workload)) is not None:
            return record
    return None


def best_config(task: TemplateTask) -> Config:
    """The config of the innermost context that has one, else a pre-tuned one, else a fallback, with a warning once."""
    from ..records import pretuned

    for history in (*histories(), pretuned.history()):
        if (config := history.config(task)) is not None:
            return config
    chosen, refusal = explained_fallback(task)
    if (task.title, str(task.target)) not in _warned:
        _warned.add((task.title, str(task.target)))
        text = f"no record for template {task.title} on {task.target}: a config nobody measured is used"
        why = f", and not the one that the template chooses for that: {refusal}" if refusal is not None else ""
        warnings.warn(text + why, FallbackWarning, stacklevel=3)
    return chosen


def pick_best(records: Source, out: str | os.PathLike[str] | None = None) -> list[Record]:
    """The best record of each workload on each target and device, and the best of each template for it.

    They are written to `out`, if it is given, with the best that is there. RecordError where a file cannot be read or
    written.
    """
    loaded = _records_in(records)
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
