"""Workloads of commands: a name with shapes, a file of IR, or a record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import one_line
from ..passes.primitive import ScheduleError
from ..search.records.choose import best_on, is_of, name_in, on_target, workloads
from ._errors import UserError, did_you_mean
from ._own_code import own_template

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..dialects.target import Target
    from ..search.records.file import Record
    from ..search.task import SearchTask
    from ..search.template.task import TemplateTask

    AnyTask = SearchTask | TemplateTask


_LONGEST_REASON = 300


def named_task(name: str, given: Mapping[str, Any], target: str) -> SearchTask:
    """Return the task of a workload by name, with shapes given or by default."""
    from ..search.named_workloads import arguments, named_workloads
    from ..search.task import SearchTask

    known = named_workloads()
    if name not in known:
        if _is_template(name, target):
            raise UserError(f"'{name}' is a template: give its arguments with --args")
        raise UserError(_no_such(name, known))
    try:
        # ShapeError and ExpressionError are ValueErrors; sizes below 1 and unknown types end here too.
        return SearchTask(known[name], arguments(known[name], given), target)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None
    except ZeroDivisionError:
        raise UserError(f"{name}: sizes, strides and groups must be at least 1") from None


def _no_such(name: str, workloads: Iterable[str]) -> str:
    """The sentence about a name that is neither a workload's nor a network's."""
    from ..testing import NETWORKS

    return (
        f"there is no workload or network '{one_line(name)}'{did_you_mean(name, [*workloads, *NETWORKS])}: give a file "
        f"(.mlir, .onnx), a workload ({', '.join(sorted(workloads))}), or a network ({', '.join(sorted(NETWORKS))})"
    )


def _is_template(name: str, target: str) -> bool:
    from ..backends.targets import resolve_target
    from ..search.template.registry import find_template

    try:
        return bool(find_template(name, resolve_target(target)))
    except ValueError:
        return False


def is_own_template(text: str) -> bool:
    """True where a word names a template of the user's: `FILE.py:NAME`, or `MODULE:NAME`."""
    return ":" in text and not Path(text).is_file()


def template_task(name: str, text: str, target: str) -> TemplateTask:
    """Return the task of a template by name, or of the user's; `text` is its arguments, JSON without the brackets."""
    from ..search.template.task import TemplateTask

    try:
        args = json.loads(f"[{text}]")
    except ValueError:
        raise UserError(f"""--args takes numbers, "texts" and [lists] with commas between, got '{text}'""") from None
    template = own_template(name) if is_own_template(name) else name
    try:
        return TemplateTask(template, _tuples(args), target)
    except (ValueError, TypeError, ScheduleError) as error:
        raise UserError(f"template {name}: {error}") from None


def _tuples(values: list[Any]) -> tuple[Any, ...]:
    return tuple(_tuples(value) if isinstance(value, list) else value for value in values)


def templated_task(task: SearchTask) -> TemplateTask:
    """Return the task of the same workload with the template of its operator."""
    from ..graph.template_tasks import templated

    try:
        return templated(task)
    except (ValueError, ScheduleError) as error:
        raise UserError(str(error)) from None


def file_task(path: Path, target: str | Target) -> SearchTask:
    """Return the task of a file of te-level IR; it is called what the file is called."""
    from ..search.task import SearchTask

    module = read_module(path)
    try:
        task = SearchTask(module, target=target)
    except ValueError as error:
        raise UserError(str(error)) from None
    task.name = path.name.split(".")[0]
    return task


def read_module(path: Path) -> ModuleOp:
    """Read the te-level module in a file."""
    from ..search.records.workload_files import WorkloadFileError
    from ..search.records.workload_files import read_module as read

    if path.suffix == ".onnx":
        raise UserError(f"{path} is a network, which tune, compile, run and bench take; give te-level IR (.mlir) here")
    if path.suffix == ".jsonl":
        raise UserError(f"{path} is for records, and a workload is wanted: a name, or te-level IR (.mlir)")
    try:
        return read(path)
    except WorkloadFileError as error:
        raise UserError(str(error)) from None


def pick_record(path: Path, workload: str | None, target: str | None) -> Record:
    """The best record in a file of the workload given by hash (or its first digits), key or name, and of the target."""
    from ..backends.targets import resolve_target
    from ..search.records import file as rec

    loaded = rec.load(path)
    if target is not None:
        try:
            wanted = str(resolve_target(target))
        except ValueError as error:
            raise UserError(str(error)) from None
        loaded = on_target(loaded, wanted)
    found = [r for r in loaded if workload is None or is_of(r, workload)]
    if not loaded:
        raise UserError(f"{path} holds no record{'' if target is None else f' of target {wanted}'}: tune first")
    keys = workloads(found or loaded)
    if not found:
        raise UserError(f"{path} holds no record of workload '{workload}'; it holds {_listed(keys)}")
    if len(keys) > 1:
        raise UserError(f"{path} holds {len(keys)} workloads: choose one with --workload HASH of {_listed(keys)}")
    return best_on(found, target, [path])


def _listed(keys: Mapping[str, str]) -> str:
    return ", ".join(f"{digest} ({name_in(key)})" for digest, key in keys.items())


def task_of(record: Record, records: Path, workload_file: Path | None = None) -> SearchTask:
    """Return the task that a record is of, from a file (by default the one beside the records) or made from the key."""
    from ..dialects.target import parse_target
    from ..search.records.rebuilt import task_of_key
    from ..search.records.workload_files import workload_file as beside

    try:
        path = workload_file or beside(records, record.workload_hash)
        target = parse_target(record.target)
    except ValueError as error:
        raise UserError(f"a record of {records}: {one_line(str(error), _LONGEST_REASON)}") from None
    if workload_file is None and not path.is_file():
        task = task_of_key(record)
        if task is None:
            raise UserError(f"{path} is not there: give the workload's IR with --workload-file FILE.mlir")
        return task
    task = file_task(path, target)
    if task.compute_dag.hash != record.workload_hash:
        raise UserError(f"{path} holds workload {task.compute_dag.hash}, the record is of {record.workload_hash}")
    task.name = name_in(record.workload_key)
    return task


def replayable(record: Record) -> Record:
    """Return the record; RecordVersionError where a primitive of its schedule has changed since."""
    from ..backends.llvm.device import versions
    from ..search.records.file import check_replayable

    check_replayable(record, versions())
    return record
