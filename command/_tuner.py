"""Tuning a template with one of `lw.tuners`, by the options of any other search."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ._errors import UserError

if TYPE_CHECKING:
    from ..search.measure.local import MeasureOption
    from ..search.records.file import Record
    from ..search.template.task import TemplateTask
    from ..search.tune.loop import TuningOptions, TuningResult
    from ..search.tune.progress import TuningState
    from ..search.tuners.classic import AnyCallback


def require_tuner_fits(options: argparse.Namespace, is_template: bool) -> None:
    """UserError where a tuner is asked for that cannot search this, or with options that it does not have."""
    if not is_template:
        raise UserError("--tuner searches configs of a template: name one, or give --templates")
    for flag, value in (("--strategy", options.strategy), ("--cost-model", options.cost_model)):
        if value is not None:
            raise UserError(f"--tuner {options.tuner} has a way of its own to search, so leave out {flag}")


def tune_with(name: str, task: TemplateTask, options: TuningOptions, measure: MeasureOption) -> TuningResult:
    """Search with the tuner of a name, from the trials in the record file on, and show how far it is."""
    from ..search.tune.options import TuningResult
    from ..search.tuners.callbacks import log_to_file, progress_bar, time_limit
    from ..search.tuners.names import tuner_class

    assert options.records is not None
    tuner = tuner_class(name)(task, seed=options.seed)
    known = tuner.resume(options.records)
    count = options.trials_after(known) - known
    if count <= 0:
        asked = options.trials_after(known)
        print(f"{asked} trials asked for in all, and the records hold {known}: none is new", file=sys.stderr)
        return TuningResult(tuner.best, None, tuner.trials, tuner.state, "the records hold no valid trial")
    log = log_to_file(options.records)
    found = options.limits() if callable(options.limits) else options.limits
    limits = {} if found is None else found.as_json()

    def keep(state: TuningState, record: Record) -> object:
        return log(state, replace(record, limits=limits))

    callbacks: list[AnyCallback] = [keep]
    if options.progress:
        callbacks.append(progress_bar(count, task.name, stream=sys.stderr))
    if options.time_limit_s is not None:
        callbacks.append(time_limit(options.time_limit_s))
    return tuner.tune(count, measure, options.early_stopping, callbacks)
