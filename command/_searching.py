"""Options of how long and how is searched: those of `lw.TuningOptions`, under the names of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ._errors import UserError
from ._inputs import cost_model, positive, seconds, strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..search.measure.limits import Limits
    from ..search.tune.options import TuningOptions

FLAGS = {"num_measure_trials": "trials", "time_limit_s": "time_limit"}
"""Keywords of `lw.TuningOptions` whose options have other names."""


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `lw.TuningOptions`."""
    from ..search.cost_model.make import model_names
    from ..search.strategies.make import STRATEGIES

    count = parser.add_mutually_exclusive_group()
    count.add_argument(
        "--trials",
        type=positive,
        metavar="N",
        help="schedules to measure in all, those in the record file included (default: 64, for networks 64 a task)",
    )
    count.add_argument(
        "--more-trials", type=positive, metavar="N", help="schedules to measure beside those in the record file"
    )
    parser.add_argument(
        "--early-stopping", type=positive, metavar="N", help="end after N trials without a better schedule"
    )
    parser.add_argument("--time-limit", type=seconds, metavar="S", help="end after S seconds, run-off included")
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    parser.add_argument(
        "--strategy",
        type=strategy,
        metavar="NAME",
        help=f"what proposes schedules: {', '.join(STRATEGIES)} (default: evolution)",
    )
    parser.add_argument(
        "--cost-model",
        type=cost_model,
        metavar="NAME",
        help=f"what ranks them before they are measured: {', '.join(model_names())} (default: trees)",
    )


def said_on(options: argparse.Namespace) -> TextIO | None:
    """The stream for what is said before a search: None, which prints nothing, where that is asked for."""
    if options.quiet:
        return None
    return sys.stderr if options.json else sys.stdout


def said(stream: TextIO | None, text: str) -> None:
    """Print a line now, where there is a stream for it."""
    if stream is not None:
        print(text, file=stream, flush=True)


def require_records(path: Path) -> None:
    """UserError where a search cannot append its records to a file, before it begins."""
    from ..search.records.file import RECORD_MARKS
    from ..storage.ownership import require_ours

    try:
        require_ours(path, "record file", RECORD_MARKS)
    except OSError as error:
        raise UserError(f"cannot open record file '{path}': {error.strerror}") from None
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    if not path.exists() and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise UserError(f"cannot open record file '{path}': {folder} is no folder that can be written to")


def tuning_options_of(
    options: argparse.Namespace, records: Path, trials: int, limits: Limits | Callable[[], Limits | None]
) -> TuningOptions:
    """The options that are asked for, with this many trials in all, unless new ones are counted."""
    from ..search.tune.options import TuningOptions

    return TuningOptions(
        num_measure_trials=trials,
        more_trials=options.more_trials,
        records=records,
        seed=options.seed,
        early_stopping=options.early_stopping,
        time_limit_s=options.time_limit,
        strategy=options.strategy or "evolution",
        cost_model=options.cost_model or "trees",
        verbose=options.verbose,
        progress=not options.quiet,
        limits=limits,
        spelled=as_flag,
    )


def as_flag(keyword: str, value: object) -> str:
    """An option with its value as the command line has it: `--more-trials 8`."""
    return f"--{FLAGS.get(keyword, keyword).replace('_', '-')} {value}"
