"""The OpenMP runtime that parallel loops run on: PyTorch's, one in the process, scikit-learn's, or the system's."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from ..missing import MissingRequirement
from .symbols import MOST_CPUS, PARALLEL_SYMBOL, PLACES_SYMBOL, TEAM_SYMBOL, THREAD_SYMBOL

_PAUSE_HARD = 2
"""`omp_pause_hard` of OpenMP 5.0, section 3.2.44."""


class MissingRuntime(MissingRequirement):
    """No OpenMP runtime can be loaded."""


@cache
def _places(shared: bool) -> ctypes.Array[ctypes.c_int32]:
    """Return the CPUs this process may use as a table: their number, each one's position, and the CPUs in order.

    It is empty where the threads are shared with another library, so that they are kept to no CPU.
    """
    table = (ctypes.c_int32 * (1 + 2 * MOST_CPUS))()
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if shared or not cpus or cpus[-1] >= MOST_CPUS:
        return table
    table[0] = len(cpus)
    for position, cpu in enumerate(cpus):
        table[1 + cpu] = position
        table[1 + MOST_CPUS + position] = cpu
    return table


def openmp_symbols() -> tuple[tuple[str, int], ...]:
    """Return the addresses of the runtime's entry points by symbol; raises MissingRuntime where there is none.

    Once PyTorch is loaded, kernels that are loaded run on its threads: those of a second runtime would compete with
    them for the cores, and each runtime's wait by spinning.
    """
    return _symbols(_of_torch())


@cache
def _symbols(torch: str | None) -> tuple[tuple[str, int], ...]:
    library = _load()
    return (
        (TEAM_SYMBOL, ctypes.addressof(_team(library))),
        (THREAD_SYMBOL, _address(getattr(library, THREAD_SYMBOL))),
        (PLACES_SYMBOL, ctypes.addressof(_places(torch is not None))),
    )


def _of_torch() -> str | None:
    """Return the path of PyTorch's own OpenMP runtime, where PyTorch is loaded and has one."""
    file = getattr(sys.modules.get("torch"), "__file__", None)
    if file is None:
        return None
    return next(iter(sorted(glob.glob(os.path.join(os.path.dirname(file), "lib", "lib*omp[-.]*so*")))), None)


@cache
def _team(library: ctypes.CDLL) -> ctypes.Array[ctypes.c_void_p]:
    """Return the runtime's function for parallel regions, in the form that kernels read; of use after a fork too.

    GNU's runtime keeps for each thread that met a parallel region those that help it. A forked child has none of
    these, yet would wait for them. Where it knows OpenMP 5.0, the thread that forks lets its helpers go before, and
    parent and child start others at their next region; else the child does without. LLVM's runtime starts anew by
    itself.
    """
    table = (ctypes.c_void_p * 1)(_address(getattr(library, PARALLEL_SYMBOL)))
    if hasattr(library, "__kmpc_fork_call"):
        return table
    pause = getattr(library, "omp_pause_resource_all", None)
    if pause is not None:
        os.register_at_fork(before=lambda: pause(_PAUSE_HARD))
    else:
        os.register_at_fork(after_in_child=lambda: table.__setitem__(0, None))
    return table


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _load() -> ctypes.CDLL:
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        if hasattr(library, PARALLEL_SYMBOL) and hasattr(library, THREAD_SYMBOL):
            return library
    raise MissingRuntime(
        "no OpenMP runtime found for a kernel on several threads: install scikit-learn from a wheel or libgomp, "
        "or build for a target with cores=1"
    )


def _candidates() -> Iterator[str]:
    torch = _of_torch()
    yield from [torch] if torch is not None else []
    yield from _loaded()
    yield from _bundled()
    yield from ("libgomp.so.1", "libomp.so.5", "libomp.so")


def _loaded() -> list[str]:
    """Return OpenMP runtimes that this process has mapped: a second one would compete for the cores."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libgomp" in line or "libomp" in line}
    except (OSError, IndexError):
        return []
    return sorted(paths)


def _bundled() -> list[str]:
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        return []
    site = os.path.dirname(os.path.dirname(found.origin))
    return sorted(glob.glob(os.path.join(site, "scikit_learn.libs", "lib*omp*.so*")))
