"""The memory of this machine, as much of it as this process may have."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ..dialects.errors import Error

_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)
"""Files with a container's memory limit and use, version 2 of control groups first."""


class NotEnoughMemory(Error, ValueError):
    """Something does not fit into memory, and was not begun; the sentence has the bytes."""


def host_memory_bytes() -> int:
    """Bytes of main memory that this process could have at most, those in use included."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    machine = _machine_bytes(_CGROUPS)
    return machine if soft == resource.RLIM_INFINITY else min(machine, soft)


def available_bytes() -> int:
    """Bytes of main memory that this process could still have now, without what others use being swapped out."""
    free = [limit - used for limit, used in _cgroup(_CGROUPS)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        free.append(soft - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE"))
    return max(0, min([_meminfo_available(), *free]))


def require_bytes(what: str, needed: int, has: int | None = None) -> None:
    """Raise NotEnoughMemory, beginning with `what`, where it takes more than this process has left."""
    most = available_bytes() if has is None else has
    if needed > most:
        raise NotEnoughMemory(f"{what} takes {needed:,} bytes of memory, there are {most:,}")


@cache
def _machine_bytes(cgroups: Sequence[tuple[Path, Path]]) -> int:
    """Bytes of this machine or container, read from files once: an importer asks for each tensor of a model."""
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *(limit for limit, _ in _cgroup(cgroups))])


def _meminfo_available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroup(cgroups: Sequence[tuple[Path, Path]]) -> list[tuple[int, int]]:
    """Return the limit of this process's control group and what it uses, in bytes; nothing where there is no limit."""
    for limit, used in cgroups:
        try:
            text, now = limit.read_text().strip(), int(used.read_text())
        except (OSError, ValueError):
            continue
        return [(int(text), now)] if text.isdigit() else []
    return []
