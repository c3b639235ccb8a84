"""PyTorch's OpenMP runtime, whose threads kernels run on where PyTorch is loaded."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from .symbols import PARALLEL_SYMBOL, SIZE_SYMBOL, THREAD_SYMBOL

_PAUSE_HARD = 2
"""`omp_pause_hard` of OpenMP 5.0, section 3.2.44."""


class OpenMp:
    """An OpenMP runtime in this process; `symbols` are the addresses of its entry points."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        names = (PARALLEL_SYMBOL, THREAD_SYMBOL, SIZE_SYMBOL)
        self.symbols = tuple((name, _address(getattr(library, name))) for name in names)

    def make_forkable(self, table: ctypes.Array[ctypes.c_void_p]) -> None:
        """Have `table`, the function that kernels call for parallel regions, be of use after a fork too.

        GNU's runtime keeps for each thread that met a parallel region those that help it. A forked child has none of
        these, yet would wait for them. Where it knows OpenMP 5.0, the thread that forks lets its helpers go before, and
        parent and child start others at their next region; else the child does without. LLVM's runtime starts anew by
        itself.
        """
        if hasattr(self._library, "__kmpc_fork_call"):
            return
        pause = getattr(self._library, "omp_pause_resource_all", None)
        if pause is not None:
            os.register_at_fork(before=lambda: pause(_PAUSE_HARD))
        else:
            os.register_at_fork(after_in_child=lambda: table.__setitem__(0, None))


def openmp_of_torch() -> OpenMp | None:
    """Return the runtime of PyTorch, where PyTorch is loaded and has one that can be found."""
    file = getattr(sys.modules.get("torch"), "__file__", None)
    return None if file is None else _openmp(os.path.join(os.path.dirname(file), "lib"))


@cache
def _openmp(folder: str) -> OpenMp | None:
    for path in _candidates(folder):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        if all(hasattr(library, name) for name in (PARALLEL_SYMBOL, THREAD_SYMBOL, SIZE_SYMBOL)):
            return OpenMp(library)
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _candidates(folder: str) -> Iterator[str]:
    yield from sorted(glob.glob(os.path.join(folder, "lib*omp[-.]*so*")))[:1]
    yield from _loaded()


def _loaded() -> list[str]:
    """Return OpenMP runtimes that this process has mapped."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libgomp" in line or "libomp" in line}
    except (OSError, IndexError):
        return []
    return sorted(paths)
