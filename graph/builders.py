"""Kernels of a network compiled: those known from before from a cache, the others by several processes at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ..dialects.errors import Error
from ..dialects.plugins import UNIVERSES, plugins
from ..search.measure.backend_api import load_backend
from ..search.sketch.foreign_rules import are_own_rules
from ..storage.binary_cache import BinaryCache
from ..storage.code_digest import code_digest, models_digest
from ..storage.folders import cache_folder
from .build_process import BuildProcess, Built, build

FEW = 3
"""So many kernels are compiled here: starting processes takes longer. A choice."""
DEFAULT = "default"
"""Stands for the default schedule where kernels are kept, which the code and the cost models that ship choose."""


class BuildError(Error, RuntimeError):
    """A kernel of a network does not compile."""


@dataclass(frozen=True)
class Job:
    """A workload as IR text, with its target, and the schedule to compile it with: the default one for None."""

    label: str
    workload: str
    schedule: str | None


def build_all(
    backend: str, jobs: Sequence[Job], processes: int | None = None, started: Sequence[BuildProcess] = ()
) -> list[Built]:
    """Build the kernel of each job, by a backend's module path; BuildError names the one that does not compile.

    `processes` is how many compile at once, this one and those that it starts: one a core unless told otherwise. Those
    that are `started` come first, and are closed by whoever started them. Kernels without a schedule, whose default one
    rules of somebody else may choose, are built here and not kept: neither a key nor a process says which rules.
    """
    store = BinaryCache(cache_folder("kernels"))
    own = are_own_rules()
    keys = {n: _key(backend, job) for n, job in enumerate(jobs) if own or job.schedule is not None}
    found = {n: Built(*known) for n, key in keys.items() if (known := store.get(key)) is not None}
    missing = {n: jobs[n] for n in keys if n not in found}
    count = min(processes_at_once(processes), len(missing))
    if count > 1 and len(missing) > FEW:
        with suppress(OSError):  # processes that cannot start or are killed: what is left is compiled here
            _in_processes(backend, missing, count, found, started)
    for number, job in enumerate(jobs):
        if number not in found:
            found[number] = _build_here(backend, job)
    for number in missing:
        store.put(keys[number], found[number].schedule, found[number].artifact)
    return [found[number] for number in range(len(jobs))]


def processes_at_once(processes: int | None) -> int:
    """Return how many processes compile at once: one a core unless told otherwise."""
    return processes if processes is not None else len(os.sched_getaffinity(0))


def _build_here(backend: str, job: Job) -> Built:
    try:
        return build(backend, job.workload, job.schedule)
    except Exception as error:
        raise BuildError(f"kernel {job.label} does not compile: {error}") from error


def _in_processes(
    backend: str, jobs: dict[int, Job], count: int, found: dict[int, Built], started: Sequence[BuildProcess]
) -> None:
    """Compile jobs by number, the largest first, here and in `count` - 1 processes, each fed by a thread."""
    waiting = sorted(jobs, key=lambda n: (len(jobs[n].workload), -n))

    def feed(make: Callable[[Job], Built]) -> None:
        while True:
            try:
                number = waiting.pop()
            except IndexError:
                return
            try:
                found[number] = make(jobs[number])
            except BuildError:
                waiting.clear()
                raise

    processes = [*started[: count - 1]]
    try:
        for _ in range(count - 1 - len(processes)):
            processes.append(BuildProcess(backend))
        with ThreadPoolExecutor(count - 1) as threads:
            results = [threads.submit(feed, partial(_build_there, process)) for process in processes]
            try:
                feed(partial(_build_here, backend))
            finally:
                waiting.clear()  # where this was interrupted, the threads would go on
            for result in results:
                result.result()
    finally:
        for process in processes:
            process.close()


def _build_there(process: BuildProcess, job: Job) -> Built:
    try:
        return process.build(job.workload, job.schedule)
    except RuntimeError as error:
        raise BuildError(f"kernel {job.label} does not compile: {error}") from None


def _key(backend: str, job: Job) -> tuple[str, ...]:
    return (backend, job.workload, job.schedule or DEFAULT, *made_by(backend), code_digest(), models_digest())


def made_by(backend: str) -> tuple[str, str]:
    """Return the versions of what a backend builds with, and what its code is for beside the target: CPU features.

    Versions of our passes are left out where a backend has the others alone: the digest of the code counts them.
    """
    module = load_backend(backend)
    versions = module.versions if plugins(UNIVERSES) else getattr(module, "toolchain", module.versions)
    return json.dumps(versions(), sort_keys=True), getattr(module, "machine", str)()  # the latter is optional
