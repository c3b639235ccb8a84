"""Sizes of this machine's caches, as the system reports them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_LEVELS = 4
_UNKNOWN_BYTES = 32 << 20
"""A last-level cache where the system does not say: that of one chiplet of a Zen 4 (AMD's data sheets)."""


@cache
def cache_bytes(level: int) -> int:
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


def host_cache_bytes() -> int:
    """The size of the last-level cache."""
    return max(map(cache_bytes, range(1, _LEVELS + 1))) or _UNKNOWN_BYTES


def _parse_size(text: str) -> int:
    units = {"K": 1024, "M": 1024**2}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
