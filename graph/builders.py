"""Kernels of a network compiled: those known from before from a cache, the others by several processes at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..backends.cuda.cache import BinaryCache, default_folder
from ..search.backend_api import load_backend
from ..search.process import WorkerGone, WorkerProcess, WorkerStartError

_FEW = 3
"""So many kernels are compiled here: starting processes takes longer."""


class BuildError(RuntimeError):
    """A kernel of a network does not compile."""


@dataclass(frozen=True)
class Job:
    """A workload as IR text, with its target, and the schedule to compile it with."""

    label: str
    workload: str
    schedule: str


def build_all(backend: str, jobs: Sequence[Job], processes: int | None = None) -> list[bytes]:
    """The artifact of each job, by a backend's module path; BuildError names the kernel that does not compile.

    `processes` is how many compile at once: one a core unless told otherwise, 1 compiles in this process.
    """
    store = BinaryCache(default_folder().with_name("kernels"))
    keys = [_key(backend, job) for job in jobs]
    found: dict[int, bytes] = {}
    for number, key in enumerate(keys):
        known = store.get(key)
        if known is not None:
            found[number] = known[1]
    missing = [number for number in range(len(jobs)) if number not in found]
    count = processes if processes is not None else len(os.sched_getaffinity(0))
    count = min(count, len(missing))
    if count > 1 and len(missing) > _FEW:
        with contextlib.suppress(WorkerStartError):
            found.update(_in_processes(backend, {n: jobs[n] for n in missing}, count))
    for number in missing:
        if number not in found:
            found[number] = _build_here(backend, jobs[number])
    for number in missing:
        store.put(keys[number], "", found[number])
    return [found[number] for number in range(len(jobs))]


def _build_here(backend: str, job: Job) -> bytes:
    try:
        return load_backend(backend).build(job.workload, job.schedule)
    except Exception as error:
        raise BuildError(f"kernel {job.label} does not compile: {error}") from error


def _in_processes(backend: str, jobs: dict[int, Job], count: int) -> dict[int, bytes]:
    """Compile jobs by number in `count` processes; what a lost process had is left out."""
    workers: list[WorkerProcess] = []
    waiting = sorted(jobs, reverse=True)
    found: dict[int, bytes] = {}
    selector = selectors.DefaultSelector()
    try:
        for _ in range(count):
            workers.append(WorkerProcess("builder", backend, {}))
            selector.register(workers[-1], selectors.EVENT_READ, workers[-1])
        alive = len(workers)
        while alive and (waiting or any(w.job is not None for w in workers)):
            for key, _ in selector.select(timeout=60.0):
                worker: WorkerProcess = key.data
                try:
                    for message, blob in worker.receive():
                        _take(worker, message, blob, jobs, found)
                    if worker.idle and waiting:
                        _give(worker, waiting.pop(), jobs)
                except WorkerGone:
                    selector.unregister(worker)
                    worker.job = None
                    alive -= 1
    finally:
        selector.close()
        for worker in workers:
            worker.kill()
    return found


def _take(
    worker: WorkerProcess, message: dict[str, Any], blob: bytes, jobs: dict[int, Job], found: dict[int, bytes]
) -> None:
    if message.get("op") == "hello":
        worker.ready = True
        return
    if message.get("op") == "failed":
        raise WorkerStartError(message["message"])
    number = worker.job
    assert number is not None
    worker.job = None
    if message["code"] != "OK":
        raise BuildError(f"kernel {jobs[number].label} does not compile: {message['message']}")
    found[number] = blob


def _give(worker: WorkerProcess, number: int, jobs: dict[int, Job]) -> None:
    worker.job = number
    worker.send({"op": "task", "workload": jobs[number].workload})
    worker.send({"op": "work", "id": number, "schedule": jobs[number].schedule})


def _key(backend: str, job: Job) -> tuple[str, ...]:
    versions = load_backend(backend).versions()
    return (backend, job.workload, job.schedule, json.dumps(versions, sort_keys=True), _code_digest())


@cache
def _code_digest() -> str:
    """A digest of the code that makes kernels, so that none outlives a change of it."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for folder in ("dialects", "passes", "backends"):
        for file in sorted((root / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
