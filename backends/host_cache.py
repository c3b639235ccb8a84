"""Sizes of this machine's caches, as the system reports them."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_THREADS = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
_ONLINE = Path("/sys/devices/system/cpu/online")
_LEVELS = 4
_UNKNOWN_BYTES = 32 << 20
"""A last-level cache where the system does not say: that of one chiplet of a Zen 4 (AMD's data sheets)."""
_SYSCONF = {1: 188, 2: 191}
"""Numbers of glibc's _SC_LEVEL<n>_CACHE_SIZE for a core's own caches: it asks the processor, also where there is no
/sys. Of the shared one it says that of all cores together, which a container may have few of."""


@cache
def cache_bytes(level: int) -> int:
    """Return the size of a data cache of this machine at a level, 0 where neither the system nor glibc says."""
    found = _reported(level)
    return _parse_size(found["size"]) if found else _by_glibc(level)


@cache
def cache_bytes_a_core(level: int) -> int:
    """Return the share that a core has of a data cache, hardware threads of it taken as one; 0 where not known."""
    found = _reported(level)
    if not found:
        return _by_glibc(level)
    threads = max(1, _cpus_in(_text(_THREADS)))
    return _parse_size(found["size"]) // max(1, _cpus_in(found["shared_cpu_list"]) // threads)


@cache
def cores_of_cache(level: int) -> int:
    """Return the CPUs of the system that share a data cache, hardware threads each; 0 where all of them do."""
    sharing = _cpus_in(_reported(level).get("shared_cpu_list", ""))
    return sharing if sharing < _cpus_in(_text(_ONLINE)) else 0


def host_cache_bytes() -> int:
    """The size of the last-level cache."""
    sizes = [_parse_size(found["size"]) for level in range(1, _LEVELS + 1) if (found := _reported(level))]
    return max(sizes, default=_UNKNOWN_BYTES)


def _reported(level: int) -> dict[str, str]:
    """A fact of a data cache by the kernel; empty where it has none."""
    for index in sorted(_CACHES.glob("index*")):
        found = {name: _text(index / name) for name in ("level", "type", "size", "shared_cpu_list")}
        if found["level"] == str(level) and found["type"] != "Instruction" and _parse_size(found["size"]):
            return found
    return {}


def _by_glibc(level: int) -> int:
    if platform.libc_ver()[0] != "glibc":
        return 0
    try:
        return max(0, os.sysconf(_SYSCONF[level]))
    except (OSError, ValueError, KeyError):
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _cpus_in(text: str) -> int:
    """Count the CPUs of a list such as 0-3,8."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _parse_size(text: str) -> int:
    """Return the bytes of a size such as 512K; 0 for a text that is none."""
    units = {"K": 1024, "M": 1024**2, "G": 1024**3}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return int(number) * unit if number.isdecimal() else 0
