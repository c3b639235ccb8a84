"""`reverse_compute_inline` on extents: a producer goes on with what its consumer computes."""

from __future__ import annotations

from collections import Counter

from ...schedule.reverse_compute_inline import ReverseComputeInline
from ..index import Index, constant
from ..nest import Access, Nest, Stage, take_out
from ..steps import Sizes


def replay(step: ReverseComputeInline, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    producer = _producer(nest, stage)
    between = producer.writes[0].buffer
    values = _iterators(stage, producer)
    producer.loads += [
        Access(a.buffer, [e.substitute(values) for e in a.indices]) for a in stage.loads if a.buffer is not between
    ]
    producer.arithmetic = dict(Counter(producer.arithmetic) + Counter(stage.arithmetic))
    producer.writes = [Access(a.buffer, [e.substitute(values) for e in a.indices]) for a in stage.writes]
    take_out(stage)
    del nest.buffers[between.name]


def _producer(nest: Nest, stage: Stage) -> Stage:
    """The last stage that nothing but `stage` reads from, and that is no reduction."""
    found = [
        s
        for s in nest.root.stages()
        if s is not stage
        and not s.is_reduction
        and any(a.buffer is s.writes[0].buffer for a in stage.loads)
        and nest.readers(s.writes[0].buffer) == [stage]
    ]
    return found[-1]


def _iterators(stage: Stage, producer: Stage) -> dict[str, Index]:
    write = producer.writes[0]
    read = next(a for a in stage.loads if a.buffer is write.buffer)
    values = {a.name: constant(0) for a in stage.iterators}
    for index, place in zip(read.indices, write.indices, strict=True):
        if (own := index.as_name) is not None:
            values[own] = place
    return values
