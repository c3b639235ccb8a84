"""`reverse_compute_at` on extents: a consumer follows its producer in copies of the producer's spatial loops."""

from __future__ import annotations

from ...analysis.nest import fresh_name
from ...schedule.reverse_compute_at import ReverseComputeAt
from ..index import Index, constant, name
from ..nest import Loop, Nest, Stage, nested, take_out
from ..sizes import Size, is_one
from ..steps import Sizes, child_of, path_of


def replay(step: ReverseComputeAt, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    loop, producer = _target(step, nest, stage)
    path = path_of(loop)
    values = _followed(stage, producer)
    spatial = producer.loop_names(reduce=False)
    copied = [x for x in producer.loops[len(path) :] if x.name in spatial]
    loops: list[tuple[str, Size]] = [(x.name, x.extent) for x in copied]
    taken = {x.name for x in (*path, *copied)}
    for axis in sorted(stage.iterators, key=lambda a: a.is_reduce):
        if axis.name not in values:
            if is_one(axis.extent):
                values[axis.name] = constant(0)
                continue
            fresh = fresh_name(axis.name, taken)
            taken.add(fresh)
            loops.append((fresh, axis.extent))
            values[axis.name] = name(fresh)
    for axis in stage.iterators:
        axis.bound = values[axis.name]
    after = child_of(loop, producer)
    stage.caps = []
    take_out(stage)
    loop.add(nested(stage, loops), loop.body.index(after) + 1)


def _target(step: ReverseComputeAt, nest: Nest, stage: Stage) -> tuple[Loop, Stage]:
    """The loop, and the producer to follow: the last of those under a loop of that name."""
    read = [a.buffer for a in stage.loads]
    known = [s for s in nest.root.stages() if s is not stage and any(a.buffer is b for a in s.writes for b in read)]
    named = [s for s in known if not step.producer or s.name == step.producer]
    return [(x, s) for s in named for x in s.loops if x.name == step.loop][-1]


def _followed(stage: Stage, producer: Stage) -> dict[str, Index]:
    """What each iterator is that the producer's buffer determines."""
    bound = producer.bound
    written = producer.writes[0]
    read = next(a for a in stage.loads if any(a.buffer is w.buffer for w in producer.writes))
    values: dict[str, Index] = {}
    for index, write in zip(read.indices, written.indices, strict=True):
        shift = constant(index.const)
        own = (index - shift).as_name
        if own is not None and own not in values:
            values[own] = write.substitute(bound) - shift
    return values
