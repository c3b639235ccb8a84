"""This machine's CPU as a target."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...dialects.target import Target

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def host_target(cores: int | None = None) -> Target:
    """Return the target of this CPU; `cores` threads, or one for each core this process may use."""
    from ...dialects.target import Target

    vector_bytes, registers = _vectors()
    known = Target()
    return Target(
        kind="llvm",
        model=host_model(),
        cores=cores if cores is not None else _cores(),
        vector_bytes=vector_bytes,
        vector_registers=registers,
        l1_bytes=_cache_bytes(1) or known.l1_bytes,
        l2_bytes=_cache_bytes(2) or known.l2_bytes,
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def host_model() -> str:
    """Return the name that LLVM has for this CPU."""
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())


@cache
def _vectors() -> tuple[int, int]:
    """Return the bytes of a vector register and how many of them there are."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    if features.get("avx2") or features.get("avx"):
        return 32, 16
    return 16, 32 if features.get("neon") else 16


@cache
def _cache_bytes(level: int) -> int:
    """Return the size of one core's data cache at a level, 0 where the system does not say."""
    for index in sorted(_CACHES.glob("index*")):
        try:
            if (index / "level").read_text().strip() != str(level):
                continue
            if (index / "type").read_text().strip() == "Instruction":
                continue
            return _parse_size((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return 0


def _parse_size(text: str) -> int:
    units = {"K": 1024, "M": 1024**2}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
