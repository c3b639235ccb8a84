"""The memory of this machine."""

from __future__ import annotations

import os


def host_memory_bytes() -> int:
    """Bytes of main memory, those in use included."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
