"""`compute_inline` on extents: the readers read what the stage reads, and compute what it computes."""

from __future__ import annotations

from collections import Counter

from ...schedule.compute_inline import ComputeInline
from ..index import Index
from ..nest import Access, Nest, Stage, take_out
from ..steps import Sizes, dimension_of


def replay(step: ComputeInline, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    buffer = stage.writes[0].buffer
    for reader in nest.readers(buffer):
        _inline(stage, reader)
    take_out(stage)
    del nest.buffers[buffer.name]


def _inline(stage: Stage, reader: Stage) -> None:
    written = dimension_of(stage)
    loads: list[Access] = []
    places: list[list[Index]] = []
    for load in reader.loads:
        if load.buffer is not stage.writes[0].buffer:
            loads.append(load)
        elif load.indices not in places:
            places.append(load.indices)
            values = {n: load.indices[d] for n, d in written.items()}
            loads += [Access(a.buffer, [e.substitute(values) for e in a.indices]) for a in stage.loads]
            reader.arithmetic = dict(Counter(reader.arithmetic) + Counter(stage.arithmetic))
    reader.loads = loads
