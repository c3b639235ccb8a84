"""Untuned choices kept on disk: a schedule for a workload and a target, which this code and its models chose."""

from __future__ import annotations

from collections.abc import Callable

from ..storage.binary_cache import BinaryCache
from ..storage.code_digest import code_digest, models_digest
from ..storage.folders import cache_folder
from .sketch.foreign_rules import are_own_rules


def kept_choice(workload: str, choose: Callable[[], str]) -> str:
    """Return the schedule that was chosen for te-level IR text, with its target, else choose it and keep it.

    It lies beside the kernels of networks, and like them is another one's once the code or a model has changed. Choices
    by rules that do not come with loopwright are not kept.
    """
    if not are_own_rules():
        return choose()
    store = BinaryCache(cache_folder("kernels"))
    key = ("choice", workload, code_digest(), models_digest())
    if (found := store.get(key)) is not None:
        return found[0]
    schedule = choose()
    store.put(key, schedule)
    return schedule
