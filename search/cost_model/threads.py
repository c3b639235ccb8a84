"""Bounds on the threads that learners take."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def at_most(threads: int) -> AbstractContextManager[Any]:
    """A context in which OpenMP and BLAS take so many threads at most: on few samples more of them only cost time."""
    limit: AbstractContextManager[Any] = _pools().limit(limits=threads)
    return limit


@cache
def _pools() -> Any:
    """The pools of the libraries that trees are grown with; looking for them takes 2 ms, as long as a prediction."""
    import sklearn.ensemble  # type: ignore[import-untyped, unused-ignore]  # noqa: F401 (loads them)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

    return ThreadpoolController()
