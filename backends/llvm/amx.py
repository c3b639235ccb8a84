"""Intel's tiles: Linux gives their registers to a process that asks for them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache

from .cpu import MissingFeatures

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
"""Numbers of x86-64's Linux (arch/x86/include/uapi/asm/prctl.h and unistd_64.h, asm/fpu/types.h)."""


def allow_tiles(features: Iterable[str]) -> None:
    """Ask for tiles, for this process and its threads, where code may use them; MissingFeatures where Linux refuses."""
    if "amx-tile" in features and not _asked():
        raise MissingFeatures("Linux refuses this process the tiles of AMX (arch_prctl): compile for '-amx-tile'")


@cache
def _asked() -> bool:
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)
