"""Search for fast schedules of a workload or a network, and report what it reaches."""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import one_line
from ..search.records.file import DEFAULT_SKETCH
from ..search.records.record import Record, duration
from ._errors import UserError, interruption_code
from ._inputs import file_name, tuner
from ._measuring import add_measure_options, measure_option_of
from ._network import add_network_options, is_network
from ._report import (
    Check,
    check,
    limits_for,
    limits_once,
    place,
    replay_command,
    speed_json,
    speed_rows,
    table,
    write_replay,
)
from ._searching import add_search_options, require_records, said, said_on, tuning_options_of
from ._source import file_task, is_own_template, named_task, template_task, templated_task
from ._tuner import require_tuner_fits, tune_with

if TYPE_CHECKING:
    from ..search.measure.limits import Limits
    from ..search.measure.local import MeasureOption
    from ..search.task import SearchTask
    from ..search.tune.loop import TuningOptions, TuningResult
    from ._source import AnyTask

TRIALS = 64
"""Trials of a workload, unless told otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..search.named_workloads import named_workloads, parameters

    parser.add_argument(
        "workload", help="a name (below), a file of te-level IR (.mlir), an ONNX model (.onnx) or a network by name"
    )
    parser.add_argument("--target", default="llvm", help="'llvm' is this machine, 'llvm cores=1' one core of it")
    parser.add_argument(
        "--args",
        metavar="A,B,...",
        help="the workload is a template, of this name, or of your own as FILE.py:NAME, called with these arguments",
    )
    parser.add_argument(
        "--templates",
        action="store_true",
        help="search configs of the templates for the operators of the workload, or network, instead of sketches",
    )
    parser.add_argument(
        "--tuner",
        type=tuner,
        metavar="NAME",
        help="search a template with one of lw.tuners: xgb, ga, random or grid (default: the search of sketches)",
    )
    parser.add_argument(
        "--records", type=file_name, help="record file, gone on with if it exists (default: <workload>.jsonl)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    told = parser.add_mutually_exclusive_group()
    told.add_argument("--verbose", action="store_true", help="show each trial")
    told.add_argument("--quiet", action="store_true", help="print the report and nothing else, no progress either")
    add_search_options(parser)
    add_measure_options(parser)
    add_network_options(parser)
    options: dict[str, Any] = {}
    for workload in named_workloads().values():
        options |= parameters(workload)
    options.pop("dtype")  # which networks have, too
    for name, default in options.items():
        flags = [f"--{name.replace('_', '-')}"] + ([f"--{name.upper()}"] if len(name) <= 2 else [])
        more: dict[str, Any] = {"action": "store_true"} if isinstance(default, bool) else {"type": type(default)}
        # Shown in the epilog, workload by workload.
        parser.add_argument(*flags, dest=f"shape_{name}", default=argparse.SUPPRESS, help=argparse.SUPPRESS, **more)
    parser.usage = "%(prog)s WORKLOAD [shape options] [options]"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "workloads, and the options of their shapes with the defaults:\n" + "\n".join(
        f"  {name:<16} {workload.function.__doc__}\n{'':<19}{_shape(parameters(workload))}"
        for name, workload in named_workloads().items()
    )


def _shape(values: dict[str, Any]) -> str:
    return " ".join(f"--{k.replace('_', '-')}" + ("" if isinstance(v, bool) else f" {v}") for k, v in values.items())


def run(options: argparse.Namespace) -> int:
    if is_network(options.workload):
        from ._tune_network import tune_network

        _require_no_shape(options)
        if options.args is not None:
            raise UserError(f"--args are the arguments of a template, and {options.workload} is a network")
        return tune_network(options)
    if options.winograd is not None:
        raise UserError("--winograd is for networks; tune conv2d_winograd, a workload, or a template of that name")
    if options.dtype is not None:
        options.shape_dtype = options.dtype
    _require_no_network(options)
    measure = measure_option_of(options)
    task, name = _task(options)
    _require_possible(task)
    records = options.records or Path(f"{name}.jsonl")
    require_records(records)
    say = said_on(options)
    said(say, f"{task.compute_dag}\n")
    known = " (exists: gone on with)" if records.exists() else ""
    said(say, f"records: {records}{known}")
    limits = limits_once(task.target, [task.compute_dag.dtype])
    tuning = tuning_options_of(options, records, options.trials or TRIALS, limits)
    start_s = time.monotonic()
    try:
        result = _tuned(task, options, tuning, measure)
    except KeyboardInterrupt as error:
        _write_workload(task, records)
        again = shlex.join(["loopwright", *options.command_line])
        print(f"go on with: {again}", file=sys.stderr)
        if records.is_file() and records.stat().st_size:
            print(f"best so far: loopwright show {shlex.quote(str(records))}", file=sys.stderr)
        return interruption_code(error)
    wall_s = time.monotonic() - start_s
    unwritten: list[str] = []
    workload = _or_noted(lambda: _write_workload(task, records), unwritten)
    checked = check(task, _workload_of(task).build(result.best.schedule))
    reached = limits_for(task.target, (), result.best) or (limits() if callable(limits) else limits)
    replay = _or_noted(lambda: write_replay(records, task, result.best.schedule), unwritten)
    if options.json:
        print(json.dumps(_as_json(task, result, checked, reached, wall_s, records, workload, replay)))
    else:
        print(_as_text(task, result, checked, reached, wall_s, replay, tuning.advice_on_more))
    if unwritten:
        raise UserError("; ".join(unwritten))
    return 0 if checked.right else 1


def _or_noted(write: Callable[[], Path], unwritten: list[str]) -> Path | None:
    """The file that is written; None where it is not, and why: what was found is shown first."""
    try:
        return write()
    except UserError as error:
        unwritten.append(str(error))
        return None


def _require_possible(task: AnyTask) -> None:
    """UserError where a workload cannot be addressed, NotEnoughMemory where this machine cannot hold what checks it."""
    from xdsl.utils.exceptions import VerifyException

    from ..backends.host_memory import require_bytes
    from ..dialects.workload import verify_workload
    from ..search.measure.reference import reference_bytes

    dag = task.compute_dag
    try:
        verify_workload(dag.module)
    except VerifyException as error:
        raise UserError(str(error).strip().splitlines()[-1]) from None
    require_bytes(f"tuning {task.name}", reference_bytes(dag.func))


def _require_no_network(options: argparse.Namespace) -> None:
    """UserError where an option says something of a network, and this is a workload."""
    given = {
        "--input-shape": options.input_shape or None,
        "--constant": options.constant or None,
        "--batch": options.batch,
        "--layout": options.layout,
        "--precision": options.precision,
    }
    for flag, value in given.items():
        if value is not None:
            raise UserError(f"{flag} is for networks, and {one_line(options.workload)} is a workload: leave it out")


def _tuned(task: AnyTask, options: argparse.Namespace, tuning: TuningOptions, measure: MeasureOption) -> TuningResult:
    from ..search.template.task import TemplateTask

    if options.tuner is not None:
        assert isinstance(task, TemplateTask)
        return tune_with(options.tuner, task, tuning, measure)
    return task.tune(tuning, measure)


def _task(options: argparse.Namespace) -> tuple[AnyTask, str]:
    """The task, and the name that its record file has by default."""
    if options.tuner is not None:
        require_tuner_fits(options, options.args is not None or options.templates)
    if options.args is not None:
        _require_no_shape(options)
        if options.templates:
            raise UserError("--args names a template already, so leave out --templates")
        template = template_task(options.workload, options.args, options.target)
        return template, template.name
    if is_own_template(options.workload):
        raise UserError(f"'{options.workload}' is a template: give its arguments with --args")
    task = _search_task(options)
    return (templated_task(task) if options.templates else task), task.name


def _search_task(options: argparse.Namespace) -> SearchTask:
    shape = {k.removeprefix("shape_"): v for k, v in vars(options).items() if k.startswith("shape_")}
    path = Path(options.workload)
    if path.suffix or path.is_file():
        _require_no_shape(options)
        return file_task(path, options.target)
    return named_task(options.workload, shape, options.target)


def _workload_of(task: AnyTask) -> SearchTask:
    """The task without its template."""
    from ..search.template.task import TemplateTask

    return task.search_task if isinstance(task, TemplateTask) else task


def _require_no_shape(options: argparse.Namespace) -> None:
    for name in vars(options):
        if name.startswith("shape_"):
            flag = name.removeprefix("shape_")
            raise UserError(f"shapes are for workloads by name: {options.workload} has its own, so leave out --{flag}")


def _write_workload(task: AnyTask, records: Path) -> Path:
    """Write the workload's IR beside the records, which hold only its hash."""
    from ..search.records.workload_files import workload_file, write_workload

    digest = task.compute_dag.hash
    try:
        return write_workload(records, digest, task.compute_dag.text)
    except OSError as error:
        raise UserError(f"cannot write {workload_file(records, digest)}: {error.strerror}") from None


def _as_text(
    task: AnyTask,
    result: TuningResult,
    checked: Check,
    limits: Limits | None,
    wall_s: float,
    replay: Path | None,
    advice: str,
) -> str:
    best, state = result.best, result.state
    repeats = f"shortest of {len(best.times_s)} repeats, {_median(best)}"
    untuned = "failed" if any(trial.sketch == DEFAULT_SKETCH for trial in result.trials) else "not measured"
    if result.default is not None:
        untuned = f"{duration(result.default.time_s)} ({_median(result.default)}); {_gain(result)}"
    spent = f"search {state.search_s:.1f}, build {state.build_s:.1f}, run {state.run_s:.1f}"
    resumed = ""
    if state.resumed:
        hint = f"; {advice}" if state.resumed == state.done else ""
        resumed = f" ({state.resumed} from the records{hint})"
    rows = [
        ("latency", f"{duration(best.time_s)} ({repeats})"),
        *speed_rows(task, best.time_s, limits),
        ("untuned", untuned),
        ("check", str(checked)),
        ("trials", f"{state.done}{resumed}, errors: {state.error_counts()}; {wall_s:.1f} s ({spent})"),
    ]
    if best.template:
        chosen = ", ".join(f"{knob}={value}" for knob, value in best.template["config"].items())
        rows.append(("config", f"{best.template['index']} of {best.template['name']}: {chosen}"))
    from ..passes.pipeline_text import parse_schedule

    steps = "\n".join(f"  {step}" for step in parse_schedule(best.schedule))
    text = f"\n{task.name} on {best.device}, {place(task)}\n{table(rows)}\n\nschedule\n{steps}"
    if replay is None:
        return text
    return f"{text}\n\nreplay it (add --print-between-passes to see every step)\n  {replay_command(replay)}"


def _median(record: Record) -> str:
    return f"median {duration(statistics.median(record.times_s))}"


def _gain(result: TuningResult) -> str:
    """The gain over the schedule of an untuned build, as a clause."""
    assert result.default is not None
    if result.best.schedule == result.default.schedule:
        return "the default schedule won: none of those tried was faster"
    return f"the tuned kernel is {result.speedup:.2f} times as fast"


def _as_json(
    task: AnyTask,
    result: TuningResult,
    checked: Check,
    limits: Limits | None,
    wall_s: float,
    records: Path,
    workload: Path | None,
    replay: Path | None,
) -> dict[str, Any]:
    best, state = result.best, result.state
    return {
        "workload_key": task.workload_key,
        "workload_hash": task.compute_dag.hash,
        "target": str(task.target),
        "device": best.device,
        "latency_s": best.time_s,
        "median_s": statistics.median(best.times_s),
        **speed_json(task, best.time_s, limits),
        "untuned_s": None if result.default is None else result.default.time_s,
        "speedup": None if result.default is None else result.speedup,
        "right": checked.right,
        "max_abs_error": checked.max_abs_error,
        "atol": checked.tolerance.atol,
        "rtol": checked.tolerance.rtol,
        "trials": state.done,
        "resumed": state.resumed,
        "errors": dict(state.errors),
        "wall_s": wall_s,
        "schedule": best.schedule,
        "template": best.template or None,
        "records": str(records),
        "workload_file": None if workload is None else str(workload),
        "replay": None if replay is None else replay_command(replay),
    }
