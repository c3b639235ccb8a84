"""Workloads as files of te-level IR, beside the records that name them by hash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from ..backends.context import create_context
from ..dialects.target import parse_target
from ..storage.whole_file import write_whole
from .record import key_of

if TYPE_CHECKING:
    from .records import Record
    from .task import SearchTask


class WorkloadFileError(ValueError):
    """A file holds no workload; the sentence says why."""


def workload_file(records: str | os.PathLike[str], workload_hash: str) -> Path:
    """The file next to a record file that holds a workload of its records."""
    path = Path(records)
    return path.with_name(f"{path.stem}.{workload_hash}.mlir")


def write_workload(records: str | os.PathLike[str], workload_hash: str, text: str) -> Path:
    """Write a workload's IR beside its records, and return where; OSError where that cannot be.

    What is there already stays. The file appears whole or not at all, however many processes write it.
    """
    path = workload_file(records, workload_hash)
    content = f"{text.rstrip()}\n"
    if path.is_file() and path.read_text(errors="replace") == content:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return path


def read_module(path: Path) -> ModuleOp:
    """The te-level module in a file; WorkloadFileError where it holds none."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise WorkloadFileError(f"cannot read {path}: {reason}") from None
    try:
        module = Parser(create_context(), text, str(path)).parse_module()
        module.verify()
    except ParseError as error:
        line = 1 + text.count("\n", 0, error.span.start)
        raise WorkloadFileError(f"{path}:{line}: {error.msg}") from None
    except (VerifyException, DiagnosticException) as error:
        raise WorkloadFileError(f"{path}: {str(error).strip().splitlines()[-1]}") from None
    if not _is_workload(module):
        raise WorkloadFileError(
            f"{path}: expected one function of lw_te.compute on tensors; loops and other dialects are not read"
        )
    return module


def _is_workload(module: ModuleOp) -> bool:
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    stages = any(op.name == "lw_te.compute" for op in module.walk())
    return len(functions) == 1 and stages and all(isinstance(t, TensorType) for t in functions[0].function_type.outputs)


def rebuilt_task(record: Record, records: str | os.PathLike[str]) -> SearchTask | None:
    """The task that a record of a file is of: from the IR beside the file, or made from the key of a named workload.

    None where neither gives the workload of the record's hash.
    """
    return _task_of_file(record, workload_file(records, record.workload_hash)) or task_of_key(record)


def _task_of_file(record: Record, path: Path) -> SearchTask | None:
    from .task import SearchTask

    try:
        task = SearchTask(read_module(path), target=parse_target(record.target))
    except ValueError:
        return None
    return task if task.compute_dag.hash == record.workload_hash else None


def task_of_key(record: Record) -> SearchTask | None:
    """The task of a record whose key names one of the named workloads; None for any other."""
    from .named_workloads import named_workloads
    from .task import SearchTask

    parts = key_of(record.workload_key)
    if parts is None:
        return None
    try:
        task = SearchTask(named_workloads()[parts[0]], parts[1], parse_target(record.target))
    except (ValueError, LookupError, TypeError):
        return None
    return task if task.compute_dag.hash == record.workload_hash else None
