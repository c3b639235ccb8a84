"""Tasks made again from what records say of them."""

from __future__ import annotations

import os

from ...dialects.target import parse_target
from ..task import SearchTask
from .file import Record
from .workload_files import dag_of_file, made_of_key


def rebuilt_task(record: Record, records: str | os.PathLike[str]) -> SearchTask | None:
    """The task that a record of a file is of: from the IR beside the file, or made from the key of a named workload.

    None where neither gives the workload of the record's hash.
    """
    dag = dag_of_file(record, records)
    if dag is None:
        return task_of_key(record)
    try:
        return SearchTask(dag.module, target=parse_target(record.target))
    except ValueError:  # of the target
        return None


def task_of_key(record: Record) -> SearchTask | None:
    """The task of a record whose key names one of the named workloads; None for any other."""
    task = made_of_key(record, lambda workload, args: SearchTask(workload, args, parse_target(record.target)))
    return task if task is not None and task.compute_dag.hash == record.workload_hash else None
