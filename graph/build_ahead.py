"""Processes that compile a network's kernels, started before it is known which kernels those are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..dialects.graph import ApplyOp
from ..dialects.target import Target
from ..search.sketch.foreign_rules import are_own_rules
from ..storage.binary_cache import BinaryCache
from ..storage.code_digest import code_digest
from ..storage.folders import cache_folder
from .build_process import BuildProcess
from .builders import FEW, made_by, processes_at_once
from .network import Network
from .operator import HEADS, kind_of


@contextmanager
def processes_ahead(backend: str, net: Network, target: Target, processes: int | None) -> Iterator[list[BuildProcess]]:
    """Start the processes that will compile a network's kernels; none where its like was compiled here before.

    None either where rules of somebody else may choose schedules, as such kernels are compiled here. A process takes a
    second to import what it needs (Xeon at 2.1 GHz), and so do the passes from a network to its kernels, which are
    known then.
    """
    forms = _distinct(net)
    count = min(processes_at_once(processes), len(forms))
    started: list[BuildProcess] = []
    if count < 2 or len(forms) <= FEW or not are_own_rules():
        yield started
        return
    store = BinaryCache(cache_folder("kernels"))
    key = ("compiled", backend, str(target), *forms, *made_by(backend), code_digest())
    known = store.get(key) is not None
    try:
        if not known:
            with suppress(OSError):  # what has no process is compiled here
                for _ in range(count - 1):
                    started.append(BuildProcess(backend))
        yield started
    finally:
        for process in started:
            process.close()
    if not known:
        store.put(key, "")


def _distinct(net: Network) -> list[str]:
    """Return a text for each distinct operator that is a kernel of its own."""
    found = {
        f"{op.operator.data} {op.options} {[str(value.type) for value in (*op.inputs, *op.outputs)]}"
        for op in net.function.body.block.ops
        if isinstance(op, ApplyOp) and kind_of(op) in HEADS
    }
    return sorted(found)
