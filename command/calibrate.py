"""Calibrate the cost model of this CPU: time samples of random layers, and train the model that choices go by here."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..dialects.shown_text import printable
from ._errors import UserError, interruption_code
from ._inputs import positive, seconds, whole_from
from ._measuring import add_measure_options, measure_option_of

if TYPE_CHECKING:
    from ..dialects.target import Target

TIME_LIMIT_S = 600.0
"""Seconds of sampling, unless told otherwise: some eighty workloads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", default="llvm", help="a CPU whose features this one has (default: llvm, this one)")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--time-limit",
        type=seconds,
        metavar="S",
        default=TIME_LIMIT_S,
        help=f"seconds of sampling, beside what there is from earlier calls (default: {TIME_LIMIT_S:g})",
    )
    action.add_argument("--train-only", action="store_true", help="train on the samples that are there")
    action.add_argument("--list", action="store_true", help="list the calibrations that are there, of any target")
    action.add_argument("--remove", action="store_true", help="remove the model and its samples")
    parser.add_argument("--workloads", type=positive, metavar="N", help="end at so many workloads")
    parser.add_argument("--candidates", type=whole_from(2), metavar="N", help="samples of a workload (default: 20)")
    parser.add_argument("--seed", type=whole_from(0), default=0, help="seed of the workloads (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_measure_options(parser)


def run(options: argparse.Namespace) -> int:
    from ..backends.targets import resolve_target
    from ..search.calibrate.calibration import CANDIDATES, calibrate

    if options.list:
        return _list(options)
    try:
        target = resolve_target(options.target)
    except ValueError as error:
        raise UserError(str(error)) from None
    if options.remove:
        return _remove(options, target)
    try:
        found = calibrate(
            target,
            0.0 if options.train_only else options.time_limit,
            options.workloads,
            options.seed,
            options.candidates or CANDIDATES,
            measure_option_of(options),
            lambda text: print(text, file=sys.stderr, flush=True),
        )
    except KeyboardInterrupt as error:
        print(f"go on with: {shlex.join(['loopwright', *options.command_line])}", file=sys.stderr)
        return interruption_code(error)
    print(json.dumps({**asdict(found), "in_use": found.in_use}) if options.json else printable(str(found)))
    return 0


def _list(options: argparse.Namespace) -> int:
    from ..search.cost_model.local import Calibration

    every = {str(folder): about for folder, about in Calibration.every()}
    if options.json:
        known = {folder: about and {**asdict(about), "in_use": about.in_use} for folder, about in every.items()}
        print(json.dumps({"calibrations": known}))
        return 0
    for folder, about in every.items():
        print(f"{printable(str(about)) if about is not None else 'damaged: not used'}\n  {folder}")
    if not every:
        print("no calibrations: choices go by the cost model that ships")
    return 0


def _remove(options: argparse.Namespace, target: Target) -> int:
    from ..search.cost_model.local import remove

    removed = remove(target)
    if options.json:
        print(json.dumps({"removed": removed}))
    else:
        print(f"{'removed' if removed else 'there was none'}: {target.with_cores(1)}")
    return 0
