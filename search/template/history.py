"""Choice of a build's config: the best on record in the contexts around it, a pre-tuned one, or a fallback."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType

import numpy as np

from ...dialects.target import Target
from ..records import pretuned
from ..records.file import Record
from ..records.index import RecordIndex, Source, records_in
from .bound import BoundTemplate
from .config import Config
from .fallback import explained_fallback

_contexts: ContextVar[tuple[History, ...]] = ContextVar("contexts", default=())
"""The histories applied around this point, outermost first; each thread and task has its own."""


_warned: set[tuple[str, str]] = set()
"""Templates with their arguments, and targets, that this process has warned of."""


class FallbackWarning(UserWarning):
    """A template is built with a config that nobody measured."""


class History(RecordIndex):
    """The best config of each template, workload and target, from records.

    As a context manager it holds for all templates built inside; inner contexts are asked first. Otherwise `query`
    and `config` ask it directly.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        super().__init__(records)
        self._token: Token[tuple[History, ...]] | None = None

    def config(self, task: BoundTemplate) -> Config | None:
        """The best config of a task that keeps the limits of its target; None where there is no record of one."""
        return recorded_config(self, task)

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


def recorded_config(known: RecordIndex, task: BoundTemplate) -> Config | None:
    """The best config on record that keeps the limits of a task's target; None where there is no record of one."""
    ranked = known.ranked(task.target, task.compute_dag.hash, task.name)
    configs = (config for record in ranked if (config := _config_of(task, record)) is not None)
    best = next(configs, None)
    if best is None or task.why_impossible(best) is None:
        return best
    others = list({config.index: config for config in configs}.values())
    rows = np.array([config.row for config in others], dtype=np.int64).reshape(len(others), -1)
    return next(itertools.compress(others, task.possible(rows)), None)


def _config_of(task: BoundTemplate, record: Record) -> Config | None:
    """Read the choices of a task's knobs from a record; None where the knobs have changed since."""
    values = record.template.get("config")
    try:
        return task.config(values) if isinstance(values, Mapping) else None
    except ValueError:
        return None


def apply_history_best(records: Source) -> History:
    """A History of files and records, one or several: `with apply_history_best(file): ...`, or to be asked.

    RecordError where a file cannot be read.
    """
    return History(records_in(records))


def histories() -> tuple[History, ...]:
    """The histories applied around this point, innermost first."""
    return _contexts.get()[::-1]


def best_record(target: str | Target, workload: str) -> Record | None:
    """The record that the contexts around this point, then the pre-tuned set, hold for a workload's hash."""
    for known in (*histories(), pretuned.index()):
        if (record := known.query(target, workload)) is not None:
            return record
    return None


def best_config(task: BoundTemplate) -> Config:
    """The config of the innermost context that has one, else a pre-tuned one, else a fallback, with a warning once."""
    for known in (*histories(), pretuned.index()):
        if (config := recorded_config(known, task)) is not None:
            return config
    chosen, refusal = explained_fallback(task)
    if (task.title, str(task.target)) not in _warned:
        _warned.add((task.title, str(task.target)))
        text = f"no record for template {task.title} on {task.target}: a config nobody measured is used"
        why = f", and not the one that the template chooses for that: {refusal}" if refusal is not None else ""
        warnings.warn(text + why, FallbackWarning, stacklevel=3)
    return chosen
