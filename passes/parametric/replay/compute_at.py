"""`compute_at` on extents: a producer computes, in each iteration, the box that its readers read there."""

from __future__ import annotations

from ...analysis.nest import fresh_name
from ...schedule.compute_at import ComputeAt
from ..index import Cap, Interval, constant, interval_of, name, union, within
from ..nest import Loop, Nest, Stage, nested, take_out
from ..sizes import Size, is_one, less, minimum
from ..steps import Sizes, child_of, dimension_of, path_of


def replay(step: ComputeAt, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    readers = [r for r in nest.readers(stage.writes[0].buffer) if r is not stage]
    named = [r for r in readers if not step.consumer or r.name == step.consumer]
    loop = next(x for r in named for x in r.loops if x.name == step.loop)
    path = path_of(loop)
    box = _box(stage, readers, path)
    before = child_of(loop, readers[0])
    taken = {x.name for x in path}
    dimensions = dimension_of(stage)
    loops: list[tuple[str, Size]] = []
    caps: list[Cap] = []
    for axis in sorted(stage.iterators, key=lambda a: a.is_reduce):
        whole = Interval(constant(0), axis.extent)
        part = whole if axis.is_reduce else _clamped(box[dimensions[axis.name]], axis.extent)
        axis.bound = part.low
        if step.unit_loops or not is_one(part.extent):
            fresh = fresh_name(axis.name, taken)
            taken.add(fresh)
            loops.append((fresh, part.extent))
            axis.bound = part.low + name(fresh)
        caps.append(Cap.of(axis.bound, axis.extent - 1))
    stage.caps = caps
    take_out(stage)
    loop.add(nested(stage, loops), loop.body.index(before))


def _box(stage: Stage, readers: list[Stage], path: list[Loop]) -> list[Interval]:
    """What all readers read in one iteration of the last loop of `path`; of scope shared, what all threads read."""
    buffer = stage.writes[0].buffer
    together = [x for x in path if buffer.scope == "shared" and _shares_a_block(x)]
    outer = {x.name: x.extent for x in path if x not in together}
    boxes: list[Interval | None] = [None] * len(buffer.shape)
    for reader in readers:
        inner = {x.name: x.extent for x in [*reader.loops[len(path) :], *together]}
        bound = reader.bound
        for load in reader.loads:
            if load.buffer is buffer:
                for d, index in enumerate(load.indices):
                    part = interval_of(index.substitute(bound), inner, outer)
                    known = boxes[d]
                    boxes[d] = part if known is None else union(known, part, outer)
    return [within(part, extent, outer) for part, extent in zip(boxes, buffer.shape, strict=True) if part is not None]


def _shares_a_block(loop: Loop) -> bool:
    return loop.kind == "vthread" or loop.kind.startswith("threadIdx")


def _clamped(part: Interval, extent: Size) -> Interval:
    """The whole domain in the place of a box that is as large."""
    if isinstance(part.extent, int) and isinstance(extent, int):
        return part if part.extent < extent else Interval(constant(0), extent)
    return Interval(part.low.times_where(less(part.extent, extent)), minimum(part.extent, extent))
