"""Tasks made again from what records say of them."""

from __future__ import annotations

import os

from ...dialects.target import parse_target
from ..named_workloads import named_workloads
from ..task import SearchTask
from .file import Record
from .record import key_of
from .workload_files import dag_of_file, dag_of_key


def rebuilt_task(record: Record, records: str | os.PathLike[str]) -> SearchTask | None:
    """The task that a record of a file is of: from the IR beside the file, or made from the key of a named workload.

    None where neither gives the workload of the record's hash.
    """
    dag = dag_of_file(record, records)
    return task_of_key(record) if dag is None else SearchTask(dag.module, target=parse_target(record.target))


def task_of_key(record: Record) -> SearchTask | None:
    """The task of a record whose key names one of the named workloads; None for any other."""
    parts = key_of(record.workload_key)
    if parts is None or dag_of_key(record) is None:
        return None
    return SearchTask(named_workloads()[parts[0]], parts[1], parse_target(record.target))
