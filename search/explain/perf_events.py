"""Hardware counters of this CPU around runs of a kernel, by Linux's perf events; a sentence where there are none."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SYSCALL = {"x86_64": 298, "aarch64": 241}
"""Numbers of `perf_event_open` (Linux, arch/*/entry/syscalls)."""
_ATTR_BYTES = 112
"""Size of version 5 of `struct perf_event_attr` (linux/perf_event.h), which all kernels since 4.1 take."""
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 0, 1 << 5, 1 << 6
_TIMES = 0b11
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: by these a counter that shared its register is scaled."""
_ENABLE, _DISABLE, _RESET = 0x2400, 0x2401, 0x2403

_HARDWARE, _CACHE = 0, 3


@dataclass(frozen=True)
class Event:
    """A counter by its type and number in linux/perf_event.h."""

    name: str
    kind: int
    config: int


def _cache_event(name: str, cache: int, miss: bool) -> Event:
    """Loads of a cache (0: first-level data, 2: last-level, 3: data TLB), all or those that miss."""
    return Event(name, _CACHE, cache | (int(miss) << 16))


EVENTS = (
    Event("cycles", _HARDWARE, 0),
    Event("instructions", _HARDWARE, 1),
    _cache_event("L1 data loads", 0, False),
    _cache_event("L1 data load misses", 0, True),
    _cache_event("last-level load misses", 2, True),
    _cache_event("data TLB load misses", 3, True),
    Event("branch misses", _HARDWARE, 5),
    Event("stalled cycles (front end)", _HARDWARE, 7),
    Event("stalled cycles (back end)", _HARDWARE, 8),
)


@dataclass(frozen=True)
class Counters:
    """Counts by name of one run, all threads together; `why` says why some, or all, are missing."""

    values: Mapping[str, float]
    why: str = ""


def count(run: Callable[[], object], runs: int, events: Sequence[Event] = EVENTS) -> Counters:
    """Count events in user mode while `run` is called `runs` times, on all threads that this process has by then.

    Call `run` once before, so that its threads are there.
    """
    threads = (
        [int(entry.name) for entry in Path("/proc/self/task").iterdir()] if Path("/proc/self/task").is_dir() else []
    )
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for event in events:  # one at a time: more than a CPU has registers for would share them
        try:
            values[event.name] = _counted(event, threads, run, runs) / runs
        except OSError as error:
            missing[event.name] = _reason(error)
    return Counters(values, _why(missing, len(events)))


def _counted(event: Event, threads: Sequence[int], run: Callable[[], object], runs: int) -> float:
    files: list[int] = []
    try:
        for thread in threads:
            files.append(_open(event, thread))
        for file in files:
            fcntl.ioctl(file, _RESET, 0)
            fcntl.ioctl(file, _ENABLE, 0)
        for _ in range(runs):
            run()
        for file in files:
            fcntl.ioctl(file, _DISABLE, 0)
        return sum(_read(file) for file in files)
    finally:
        for file in files:
            os.close(file)


def _open(event: Event, thread: int) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None or not hasattr(os, "sched_getaffinity"):
        raise OSError(errno.ENOSYS, "no perf events on this system")
    flags = _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HV
    fields = struct.pack("=IIQQQQQ", event.kind, _ATTR_BYTES, event.config, 0, 0, _TIMES, flags)
    attributes = ctypes.create_string_buffer(fields, _ATTR_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    file = libc.syscall(ctypes.c_long(number), attributes, thread, -1, -1, ctypes.c_ulong(0))
    if file < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(file)


def _read(file: int) -> float:
    value, enabled, running = struct.unpack("=QQQ", os.read(file, 24))
    return value * enabled / running if running else 0.0


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "this user may not count (kernel.perf_event_paranoid, or a container's rules)"
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this CPU, or the virtual machine that it is lent by, has no such counter"
    return f"perf_event_open failed: {error.strerror}"


def _why(missing: Mapping[str, str], wanted: int) -> str:
    if not missing:
        return ""
    reasons = "; ".join(dict.fromkeys(missing.values()))
    return reasons if len(missing) == wanted else f"{', '.join(missing)} not counted: {reasons}"
