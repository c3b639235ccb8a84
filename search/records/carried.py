"""Files that lie beside record files, carried along when their records go to another file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ...dialects.shown_text import one_line
from ..workload import ComputeDAG
from .file import Record, RecordError
from .network_files import TunedNetwork, networks_beside, write_network
from .workload_files import WorkloadFileError, dag_of_key, read_module, workload_file, write_workload

_SHOWN = 4
"""Hashes that a sentence names."""
_LONGEST = 400
"""Characters of a sentence about a file that cannot be read."""

Files = Sequence[str | os.PathLike[str]]


def carry_along(files: Files, records: Iterable[Record], output: str | os.PathLike[str]) -> list[str]:
    """Write beside `output` what lies beside `files` for these records: workloads' IR, and weights of networks.

    Returns a sentence for each kind of thing that is missing or cannot be read. RecordError, before anything is
    written, where IR of another workload is in the place; OSError where a file cannot be written.
    """
    by_hash = {record.workload_hash: record for record in records}
    found, wrong = {}, list[str]()
    for digest in by_hash:
        text = _workload_beside([*files, output], digest, wrong)
        if text is not None:
            found[digest] = text
    for digest in found:
        _require_place(output, digest)
    networks = _networks_beside(files, by_hash.keys(), wrong)
    for digest, text in found.items():
        if not _is_there(output, digest):
            write_workload(output, digest, text)
    for network in networks:
        write_network(output, network)
    missing = [digest for digest, record in by_hash.items() if digest not in found and dag_of_key(record) is None]
    return [*([_without_ir(missing)] if missing else []), *wrong]


def _workload_beside(files: Files, digest: str, wrong: list[str]) -> str | None:
    """The text of a workload beside the first file that has it; where none has, `wrong` is told of what is there."""
    others: list[str] = []
    for records in files:
        try:
            path = workload_file(records, digest)
            if not path.is_file():
                continue
            is_of = ComputeDAG.from_module(read_module(path)).hash
        except WorkloadFileError as error:
            others.append(one_line(str(error), _LONGEST))
            continue
        if is_of == digest:
            return path.read_text()
        others.append(f"{path} holds workload {is_of}")
    wrong += others
    return None


def _is_there(output: str | os.PathLike[str], digest: str) -> bool:
    return _workload_beside([output], digest, []) is not None


def _require_place(output: str | os.PathLike[str], digest: str) -> None:
    """RecordError where the IR of another workload is where that of `digest` goes; a torn file gives way."""
    path = workload_file(output, digest)
    try:
        is_of = ComputeDAG.from_module(read_module(path)).hash if path.is_file() else digest
    except WorkloadFileError:
        return
    if is_of != digest:
        raise RecordError(
            f"{path} holds workload {is_of}, where the IR of {digest} goes: move it away, or name another"
        )


def _networks_beside(files: Files, hashes: Iterable[str], wrong: list[str]) -> list[TunedNetwork]:
    """The distinct networks beside files that have a task of one of the hashes."""
    kept = set(hashes)
    found: dict[TunedNetwork, None] = {}
    for records in files:
        networks, damaged = networks_beside(records)
        found |= {n: None for n in networks if any(task.workload_hash in kept for task in n.tasks)}
        wrong += [f"weights of a network are left out: {sentence}" for sentence in damaged]
    return list(found)


def _without_ir(missing: Sequence[str]) -> str:
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return (
        f"no IR of workload {', '.join(missing[:_SHOWN])}{more} is beside the files: replay takes it with "
        "--workload-file, from where it was tuned"
    )
