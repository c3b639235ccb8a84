"""Make a pre-tuned set: tune networks for a target, and keep the best record of each kernel."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import UserError, interruption_code
from ._inputs import file_name, positive, seconds
from ._measuring import add_measure_options, measure_option_of
from ._network import add_network_options, name_of, read_network, tasks_of

if TYPE_CHECKING:
    from ..dialects.target import Target
    from ..search.records.record import Record
    from ._source import AnyTask

TRIALS = 64
"""Trials of a kernel, unless told otherwise."""
KINDS = ("sketches", "templates")
"""Ways of searching for the schedule of a kernel."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("networks", nargs="+", metavar="NETWORK", help="networks by name, or ONNX models (.onnx)")
    parser.add_argument(
        "--target",
        default="llvm",
        help="'llvm' is this machine, 'llvm model=haswell' a CPU whose features this one has, 'cuda' the GPU here",
    )
    parser.add_argument("--search", nargs="+", choices=KINDS, default=list(KINDS), help="what is tuned (default: both)")
    parser.add_argument(
        "--trials", type=positive, default=TRIALS, metavar="N", help=f"trials of each kernel (default: {TRIALS})"
    )
    parser.add_argument(
        "--time-limit", type=seconds, metavar="S", help="seconds for each network and each kind of search, at most"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    parser.add_argument("--name", help="name of the set (default: the model of the target)")
    parser.add_argument(
        "--folder", type=file_name, help="where sets lie (default: the folder of the package that looks there)"
    )
    parser.add_argument(
        "--records",
        type=file_name,
        metavar="FOLDER",
        help="where trials are kept, and gone on with (default: NAME.trials)",
    )
    parser.add_argument("--note", default="", help="a sentence for the set's description, such as how busy it was")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_measure_options(parser)
    add_network_options(parser)


def run(options: argparse.Namespace) -> int:
    from ..backends.targets import resolve_target
    from ..search.records import pretuned
    from ..search.records.file import load
    from ..search.records.index import records_in
    from ..search.tune.loop import TuningError

    try:
        target = resolve_target(options.target)
    except ValueError as error:
        raise UserError(str(error)) from None
    name = options.name or target.model.replace("-", "_")
    trials = options.records or Path(f"{name}.trials")
    say = sys.stderr if options.json else sys.stdout
    files: list[Path] = []
    for network, kind, tasks, weights in _work(options, target):
        file = trials / f"{name_of(network)}-{kind}.jsonl"
        print(f"{network}: {len(tasks)} {kind} to search, records: {file}", file=say, flush=True)
        files.append(file)
        try:
            _tune(options, tasks, weights, file)
        except TuningError as error:
            print(f"{network}: {error}", file=sys.stderr)
        except KeyboardInterrupt as error:
            print(f"go on with: {shlex.join(['loopwright', *options.command_line])}", file=sys.stderr)
            return interruption_code(error)
    right = [record for record in records_in([file for file in files if file.is_file()]) if record.ok]
    if not right:
        raise UserError(f"no schedule of {', '.join(options.networks)} was measured: there is no set to make")
    path = pretuned.add(right, name, options.folder or pretuned.FOLDER)
    found = load(path)
    description = path.with_suffix(".md")
    description.write_text(_described(options, str(target), found))
    if options.json:
        report = {"set": str(path), "description": str(description), "records": len(found), "target": str(target)}
        print(json.dumps(report))
    else:
        print(f"{path}: {len(found)} records, {_of_templates(found)} of them of templates; {description} says of what")
    return 0


def _work(options: argparse.Namespace, target: Target) -> Iterator[tuple[str, str, Sequence[AnyTask], list[int]]]:
    """Each network with each kind of search that has something to search in it."""
    for network in options.networks:
        net = read_network(options, network)
        for kind in options.search:
            tasks, weights = tasks_of(net, target, kind == "templates", bool(options.winograd))
            if tasks:
                yield network, kind, tasks, weights


def _tune(options: argparse.Namespace, tasks: Sequence[AnyTask], weights: list[int], file: Path) -> None:
    """Tune each kernel as often: all are to be of use, in whichever network they appear."""
    from ..search.tune.options import TuningOptions
    from ..search.tune.scheduler import TaskScheduler

    tuning = TuningOptions(
        num_measure_trials=options.trials * len(tasks),
        records=file,
        seed=options.seed,
        time_limit_s=options.time_limit,
        progress=not options.json,
        batch_size=min(options.trials, TuningOptions().batch_after(0)),
    )
    scheduler = TaskScheduler(tasks, weights, load_records=file, strategy="round-robin")
    scheduler.tune(tuning, measure_option_of(options))


def _of_templates(records: Sequence[Record]) -> int:
    return sum(bool(record.template) for record in records)


def _described(options: argparse.Namespace, target: str, records: Sequence[Record]) -> str:
    """The description of a set: what it is for, and on what it was measured."""
    devices = ", ".join(sorted({record.device for record in records}))
    of = f"batch {options.batch or 1}, layout {options.layout or 'as they come'}, {options.dtype or 'float32'}"
    of += f", precision {options.precision}" if options.precision else ""
    budget = f"up to {options.trials} trials a kernel of {' and of '.join(options.search)}"
    winograd = ", convolutions by Winograd's transforms too" if options.winograd else ""
    lines = [
        f"# Pre-tuned records for `{' '.join(target.split()[:2])}`",
        "",
        f"- measured on {devices}, as `{target}`; last on {time.strftime('%Y-%m-%d', time.gmtime())}",
        f"- last of {', '.join(map(name_of, options.networks))}, {of}: {budget}{winograd}",
        f"- {len(records)} records, {_of_templates(records)} of them of templates",
    ]
    return "\n".join([*lines, *([f"- {options.note}"] if options.note else [])]) + "\n"
