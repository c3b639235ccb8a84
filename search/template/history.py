"""Which config a build gets: the best on record in the contexts around it, a pre-tuned one, or a fallback."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING

from .. import records as rec
from ..records import Record, RecordError
from .config import Config
from .fallback import fallback_config

if TYPE_CHECKING:
    from ...dialects.target import Target
    from .task import TemplateTask

SKETCH_PREFIX = "template:"
"""Records of templates name them with this prefix where others name their sketch."""

_contexts: ContextVar[tuple[History, ...]] = ContextVar("contexts", default=())
"""The histories applied around this point, outermost first; each thread and task has its own."""


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

    def query(self, target: str | Target, workload: str, template: str | None = None) -> Record | None:
        """The fastest record of a workload, given by its hash, on a target; of one template only, if it is named.

        None where there is none. Where no record has just this target, the same kind and model will do.
        """
        text = str(target)
        exact = self._groups.get((workload, text), [])
        near = [r for (w, t), group in self._groups.items() if w == workload and _alike(t, text) for r in group]
        for group in (exact, near):
            if template is not None:
                group = [r for r in group if r.sketch == SKETCH_PREFIX + template]
            if group:
                return rec.best(group)
        return None

    def config(self, task: TemplateTask) -> Config | None:
        """The best config of a task; None where there is no record of it that still means the same."""
        record = self.query(task.target, task.compute_dag.hash, task.name)
        if record is None:
            return None
        values = record.template.get("config")
        try:
            return task.config(values) if isinstance(values, Mapping) else None
        except ValueError:
            return None

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


def _alike(one: str, other: str) -> bool:
    """True where two target texts are of the same kind and the same named model."""
    a, b = (dict(part.partition("=")[::2] for part in text.split()[1:]) for text in (one, other))
    same_kind = one.partition(" ")[0] == other.partition(" ")[0]
    return same_kind and "model" in a and a.get("model") == b.get("model")


def apply_history_best(records: str | os.PathLike[str] | Iterable[Record]) -> History:
    """A History of a file or of records: `with apply_history_best(file): ...`, or to be asked.

    RecordError where the file cannot be read.
    """
    return History(rec.load(records) if isinstance(records, str | os.PathLike) else records)


def histories() -> tuple[History, ...]:
    """The histories applied around this point, innermost first."""
    return _contexts.get()[::-1]


def best_record(target: str | Target, workload: str) -> Record | None:
    """The record that the contexts around this point, then the pre-tuned set, hold for a workload's hash."""
    from .. import pretuned

    for history in (*histories(), pretuned.history()):
        if (record := history.query(target, workload)) is not None:
            return record
    return None


def best_config(task: TemplateTask) -> Config:
    """The config of the innermost context that has one, else a pre-tuned one, else a fallback, with a warning once."""
    from .. import pretuned

    for history in (*histories(), pretuned.history()):
        if (config := history.config(task)) is not None:
            return config
    text = f"no record for template {task.title} on {task.target}: a config nobody measured is used"
    warnings.warn(text, FallbackWarning, stacklevel=3)
    return fallback_config(task)


def pick_best(
    records: str | os.PathLike[str] | Iterable[Record], out: str | os.PathLike[str] | None = None
) -> list[Record]:
    """The best record of each workload on each target and device; written to `out`, with the best that is there.

    RecordError where a file cannot be read or written.
    """
    loaded = rec.load(records) if isinstance(records, str | os.PathLike) else list(records)
    if out is None:
        return rec.distill(loaded)
    if os.path.exists(out):
        loaded = rec.merge([rec.load(out), loaded])
    best = rec.distill(loaded)
    beside = f"{os.fspath(out)}.new"
    if os.path.exists(beside):
        os.remove(beside)
    rec.append(beside, best)
    try:
        os.replace(beside, out)
    except OSError as error:
        raise RecordError(f"cannot write record file {os.fspath(out)!r}: {error.strerror}") from error
    return best
