"""Callbacks of the classic autotuner, `callback(tuner, inputs, results)`, as callbacks of a search."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dialects.target import Target
from ..records.file import ErrorCode, Record
from ..tune.callback import Callback
from ..tune.progress import TuningState

if TYPE_CHECKING:
    from ..template.config import Config
    from ..template.task import TemplateTask

_ERROR_NUMBERS: Mapping[ErrorCode, int] = {
    ErrorCode.OK: 0,
    ErrorCode.INSTANTIATION_ERROR: 1,
    ErrorCode.COMPILE_ERROR: 3,
    ErrorCode.RUNTIME_ERROR: 4,
    ErrorCode.WRONG_RESULT: 5,
    ErrorCode.COMPILE_TIMEOUT: 6,
    ErrorCode.RUN_TIMEOUT: 7,
    ErrorCode.DEVICE_LOST: 4,
    ErrorCode.UNKNOWN: 8,
}
"""The numbers of autotvm's `MeasureErrorNo`."""


class MeasureInput(NamedTuple):
    """A config that was measured, under the classic names."""

    target: Target
    task: TemplateTask
    config: Config


class MeasureResult(NamedTuple):
    """The outcome: seconds of each repeat, or the error's text; 0 or the error's number; seconds in all."""

    costs: tuple[float | str, ...]
    error_no: int
    all_cost: float
    timestamp: float


ClassicCallback = Callable[[Any, Sequence[MeasureInput], Sequence[MeasureResult]], object]
AnyCallback = Callback[TuningState] | ClassicCallback


def as_callback(callback: AnyCallback, tuner: object, task: TemplateTask) -> Callback[TuningState]:
    """A callback of a tuner's search; one that takes three arguments is called with the tuner, inputs and results."""
    if not _is_classic(callback):
        return callback  # type: ignore[return-value]
    return _Adapted(callback, tuner, task)


class _Adapted:
    """A classic callback as one of a search."""

    def __init__(self, callback: Callable[..., object], tuner: object, task: TemplateTask) -> None:
        self._callback, self._tuner, self._task = callback, tuner, task

    def __call__(self, state: TuningState, record: Record) -> object:
        task = self._task
        given = MeasureInput(task.target, task, task.config(record.decisions))
        costs = record.times_s if record.ok else (record.message,)
        spent_s = record.build_s + record.run_s
        result = MeasureResult(costs, _ERROR_NUMBERS[record.error], spent_s, record.timestamp)
        return self._callback(self._tuner, [given], [result])

    def finish(self) -> None:
        """Tell it that tuning has ended, where it wants to know."""
        getattr(self._callback, "finish", lambda: None)()


def _is_classic(callback: Callable[..., Any]) -> bool:
    """True where a function takes three arguments and not two."""
    try:
        signature = inspect.signature(callback)
        signature.bind(None, None, None)
    except (TypeError, ValueError):
        return False
    try:
        signature.bind(None, None)
    except TypeError:
        return True
    return False
