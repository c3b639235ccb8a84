"""Workloads as files of te-level IR, beside the records that name them by hash."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from ...backends.context import create_context
from ...dialects.errors import Error
from ...dialects.shown_text import one_line
from ...dialects.unclosed import unclosed_string
from ...dialects.workload import verify_workload
from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole
from ..named_workloads import find_workload
from ..workload import ComputeDAG, Workload
from .record import key_of

if TYPE_CHECKING:
    from .file import Record

T = TypeVar("T")

_HASH = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""Characters that may be part of a file's name: a record from elsewhere names no file outside of its folder."""
WORKLOAD_MARKS = (b"builtin.module", b"module")
"""Marks of a file of a workload's IR."""
_LONGEST_REASON = 400
"""Characters of a parser's sentence that are quoted."""
_PARSER_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
)
"""Errors that xDSL's parser raises beside its own where text is damaged."""


class WorkloadFileError(Error, ValueError):
    """A file holds no workload; the sentence says why."""


def workload_file(records: str | os.PathLike[str], workload_hash: str) -> Path:
    """The file beside a record file that holds a workload of its records; WorkloadFileError for what is no hash."""
    path = Path(records)
    if _HASH.fullmatch(workload_hash) is None:
        raise WorkloadFileError(f"a workload's hash is letters and digits, got '{one_line(workload_hash)}'")
    return path.with_name(f"{path.stem}.{workload_hash}.mlir")


def write_workload(records: str | os.PathLike[str], workload_hash: str, text: str) -> Path:
    """Write a workload's IR beside its records, and return where; OSError where that cannot be.

    What is there already stays. The file appears whole or not at all, however many processes write it.
    """
    path = workload_file(records, workload_hash)
    content = f"{text.rstrip()}\n"
    if path.is_file() and path.read_text(errors="replace") == content:
        return path
    require_ours(path, "workload", WORKLOAD_MARKS)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return path


def without_target(text: str) -> str:
    """The te-level IR of a workload without the target that it is tuned for: one file serves all targets."""
    return ComputeDAG.from_module(Parser(create_context(), text).parse_module()).text


def read_module(path: Path) -> ModuleOp:
    """The te-level module in a file; WorkloadFileError where it holds none."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise WorkloadFileError(f"cannot read {path}: {reason}") from None
    start = unclosed_string(text)
    if start is not None:
        line = 1 + text.count("\n", 0, start)
        raise WorkloadFileError(f"{path}:{line}: a string does not end, or has an escape that is none")
    try:
        module = Parser(create_context(), text, str(path)).parse_module()
        verify_workload(module)
    except ParseError as error:
        line = 1 + text.count("\n", 0, error.span.start)
        raise WorkloadFileError(f"{path}:{line}: {_unparsed(text, error)}") from None
    except (VerifyException, DiagnosticException) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise WorkloadFileError(f"{path}: {one_line(lines[-1], _LONGEST_REASON)}") from None
    except RecursionError:
        raise WorkloadFileError(f"{path}: it is nested too deeply") from None
    except _PARSER_ERRORS as error:
        reason = one_line(f"{type(error).__name__}: {error}", _LONGEST_REASON)
        raise WorkloadFileError(f"{path}: it cannot be parsed: {reason}") from None
    return module


def _unparsed(text: str, error: ParseError) -> str:
    """The reason why text is no IR; of text that is cut off xDSL says no more than " in block definition"."""
    if not text.strip():
        return "it is empty"
    if error.msg.startswith(" ") and error.span.start >= len(text.rstrip()):
        return "it ends in the middle of a program"
    return one_line(error.msg, _LONGEST_REASON)


def rebuilt_dag(record: Record, records: str | os.PathLike[str]) -> ComputeDAG | None:
    """The workload that a record of a file is of: from the IR beside the file, or made from the key of a named one.

    None where neither gives the workload of the record's hash.
    """
    return dag_of_file(record, records) or dag_of_key(record)


def dag_of_file(record: Record, records: str | os.PathLike[str]) -> ComputeDAG | None:
    """The workload in the IR beside a record file; None where there is none, or another."""
    try:
        dag = ComputeDAG.from_module(read_module(workload_file(records, record.workload_hash)))
    except ValueError:
        return None
    return dag if dag.hash == record.workload_hash else None


def dag_of_key(record: Record) -> ComputeDAG | None:
    """The workload of a record whose key names one of the named workloads; None for any other."""
    dag = made_of_key(record, lambda workload, args: workload.dag(*args))
    return dag if dag is not None and dag.hash == record.workload_hash else None


def made_of_key(record: Record, make: Callable[[Workload, list[Any]], T]) -> T | None:
    """Call `make` with the named workload and the arguments in a record's key; None where there is no such workload."""
    parts = key_of(record.workload_key)
    if parts is None:
        return None
    try:
        return make(find_workload(parts[0]), parts[1])
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError):  # any function of any arguments
        return None
