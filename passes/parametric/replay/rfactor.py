"""`rfactor` on extents: partial reductions with one more dimension, and a final one that joins them."""

from __future__ import annotations

from collections import Counter

from ...analysis.nest import fresh_buffer_name, fresh_name
from ...schedule.rfactor import Rfactor
from ..index import Index, name
from ..nest import Access, Axis, Buffer, Loop, Nest, Stage
from ..steps import Sizes


def replay(step: Rfactor, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    loop = nest.loop(step.block, step.loop)
    reducing = stage.loop_names(reduce=True)
    outermost = next(x for x in stage.loops if x.name in reducing)
    position = _position(step, stage, loop)
    taken = {*nest.buffers}
    buffers: list[Buffer] = []
    for write in stage.writes:
        label = fresh_buffer_name(f"{write.buffer.name}_rf", {*taken, *(b.name for b in buffers)})
        shape = [*write.buffer.shape[:position], loop.extent, *write.buffer.shape[position:]]
        buffers.append(Buffer(label, shape, write.buffer.element_bytes, write.buffer.scope, False))
    nest.buffers.update({b.name: b for b in buffers})
    spatial = [a for a in stage.iterators if not a.is_reduce]
    partial = fresh_name(loop.name, {a.name for a in spatial})
    places = [[*w.indices[:position], name(partial), *w.indices[position:]] for w in stage.writes]
    final = Stage(
        stage.name,
        [*(Axis(a.name, a.extent, False, a.bound) for a in spatial), Axis(partial, loop.extent, True, name(loop.name))],
        [Access(w.buffer, list(w.indices)) for w in stage.writes],
        [Access(b, list(p)) for b, p in zip(buffers, places, strict=True)],
        dict(stage.joining),
        stage.combiner,
        dict(stage.joining),
    )
    rf_name = fresh_name(f"{stage.name}_rf", {s.name for s in nest.root.stages()})
    _insert_final(final, stage, loop, outermost)
    _make_partial(stage, loop, partial, reducing, rf_name)
    stage.writes = [Access(b, p) for b, p in zip(buffers, places, strict=True)]


def _position(step: Rfactor, stage: Stage, loop: Loop) -> int:
    """The dimension of the partial results: the last where the loop is innermost, else the first."""
    ranks = {len(w.indices) for w in stage.writes}
    rank = min(ranks)
    if step.axis is None:
        return rank if stage.parent is loop and len(ranks) == 1 else 0
    return step.axis + rank + 1 if step.axis < 0 else step.axis


def _insert_final(final: Stage, stage: Stage, loop: Loop, outermost: Loop) -> None:
    """Put the final reduction behind the reduce loops, in copies of the spatial loops in there."""
    loops = stage.loops
    wanted = stage.loop_names(reduce=False)
    inner = Loop(loop.name, loop.extent)
    inner.add(final)
    for outer in reversed([x for x in loops[loops.index(outermost) :] if x.name in wanted]):
        copy = Loop(outer.name, outer.extent, "serial" if outer.kind == "vectorized" else outer.kind)
        copy.add(inner)
        inner = copy
    place = outermost.parent
    assert place is not None
    place.add(inner, place.body.index(outermost) + 1)


def _make_partial(stage: Stage, loop: Loop, partial: str, reducing: set[str], new_name: str) -> None:
    """Turn the stage into the one of partial results, whose iterators are the reduce loops themselves."""
    axes = [a for a in stage.iterators if not a.is_reduce]
    axes.append(Axis(partial, loop.extent, False, name(loop.name)))
    names = {a.name for a in axes}
    inside: dict[str, Index] = {loop.name: name(partial)}
    remaining = False
    for around in stage.loops:
        if around.name in reducing and around is not loop:
            fresh = fresh_name(around.name, names)
            names.add(fresh)
            inside[around.name] = name(fresh)
            axes.append(Axis(fresh, around.extent, True, name(around.name)))
            remaining = True
    reduced = {a.name: a.bound.substitute(inside) for a in stage.iterators if a.is_reduce}
    stage.name = new_name
    stage.iterators = axes
    for load in stage.loads:
        load.indices = [e.substitute(reduced) for e in load.indices]
    if not remaining:
        stage.arithmetic = dict(Counter(stage.arithmetic) - Counter(stage.joining))
        stage.combiner, stage.joining = "none", {}
