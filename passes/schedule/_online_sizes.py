"""A sum weighted by a softmax on sizes that may be open: what `online_softmax` makes of its five stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis.nest import fresh_buffer_name, fresh_name
from ..parametric.index import Cap, Index
from ..parametric.nest import Access, Buffer, Loop, Nest, SizedAxis, Stage, nested
from ..parametric.sizes import Size, ceil_div

_GUARD = {"compare": 1}
"""Arithmetic of an exponential beside what it is without blocks: the test for a block that is -inf all over."""
_JOINING = {"compare": 4, "add": 4, "multiply": 4, "special": 1}
"""Arithmetic of joining a block's maximum, sum and weighted sum to the running ones."""
BUFFERS = ("part", "run", "sum", "max")
"""The ends of names of new buffers: weighted sums of blocks, then the running weighted sum, sum and maximum."""


@dataclass(frozen=True)
class Stages:
    """The five stages of a sum weighted by a softmax, as the rewrite finds the blocks."""

    largest: Stage
    exponential: Stage
    denominator: Stage
    quotient: Stage
    total: Stage

    @property
    def weight(self) -> Access:
        """The read of a weight by `total`."""
        return next(a for a in self.total.loads if a.buffer is self.quotient.writes[0].buffer)

    @property
    def dimension(self) -> int:
        """The dimension of the exponentials that the sums go over."""
        return [e.as_name for e in self.weight.indices].index(_reduced(self.total).name)

    @property
    def row(self) -> list[Index]:
        """The indices of the row that an instance of `total` reads a weight of."""
        return [e for d, e in enumerate(self.weight.indices) if d != self.dimension]


def _reduced(stage: Stage) -> SizedAxis:
    return next(a for a in stage.iterators if a.is_reduce)


def stages_of(nest: Nest, total: Stage) -> Stages:
    for load in total.loads:
        quotient = _sole_writer(nest, load.buffer)
        if quotient is None or quotient.arithmetic.get("divide") != 1 or len(quotient.loads) != 2:
            continue
        if nest.readers(load.buffer) == [total]:
            exponential, denominator = (nest.writers(a.buffer)[0] for a in quotient.loads)
            reductions = (w for a in exponential.loads for w in nest.writers(a.buffer))
            largest = next(
                w for w in reductions if w.combiner == "max" and nest.readers(w.writes[0].buffer) == [exponential]
            )
            return Stages(largest, exponential, denominator, quotient, total)
    raise AssertionError(f"the step is legal, so '{total.name}' is weighted by a softmax")


def _sole_writer(nest: Nest, buffer: Buffer) -> Stage | None:
    found = nest.writers(buffer)
    return found[0] if len(found) == 1 else None


def _sized_row(stages: Stages, first: Sequence[Index] = ()) -> Access:
    """Return the read of the sum of exponentials that goes with an instance of the sum of products."""
    return Access(stages.denominator.writes[0].buffer, [*first, *stages.row])


def _added(nest: Nest, like: Buffer, ending: str, first: Sequence[Size] = ()) -> Buffer:
    """Return a new buffer of the nest for what goes into `like`, with more dimensions in front."""
    name = fresh_buffer_name(f"{like.name}_{ending}", nest.buffers)
    nest.buffers[name] = Buffer(name, [*first, *like.shape], like.element_bytes, "global", False)
    return nest.buffers[name]


def _sized_axes(stage: Stage, spatial: bool = False) -> list[SizedAxis]:
    """Return the iterators of a stage that nothing was done to, all or those without a reduction, for another one."""
    axes = (a for a in stage.iterators if not (spatial and a.is_reduce))
    return [SizedAxis(a.name, a.extent, a.is_reduce, Index.axis(a.name)) for a in axes]


def _sized_rounded(nest: Nest, stages: Stages) -> Buffer:
    """Return a buffer for rounded exponentials in the place of that of quotients."""
    old, like = stages.quotient.writes[0].buffer, stages.exponential.writes[0].buffer
    nest.buffers[old.name] = Buffer(old.name, list(like.shape), old.element_bytes, "global", False)
    return nest.buffers[old.name]


def _sized_weighted(stages: Stages, rounded: Buffer | None) -> tuple[list[Access], dict[str, int]]:
    """Return the reads and the arithmetic of the sum of products with exponentials, rounded or not, for weights."""
    total, weight = stages.total, stages.weight
    written = rounded or stages.exponential.writes[0].buffer
    loads = [Access(written, list(weight.indices)), *(a for a in total.loads if a is not weight)]
    widened = {"convert": 1} if weight.buffer.element_bytes != written.element_bytes else {}
    return loads, dict(Counter(total.arithmetic) - Counter(widened))


def _sized_last(stages: Stages, above: Buffer, below: Access) -> Stage:
    """Return the stage of the division at the end, under the name of the sum."""
    write = stages.total.writes[0]
    loads = [Access(above, list(write.indices)), below]
    return Stage(stages.total.name, _sized_axes(stages.total, spatial=True), [write], loads, {"divide": 1})


def _sized_replace(
    nest: Nest, stages: Stages, made: Sequence[Stage], old: Sequence[Stage], rounded: Buffer | None
) -> None:
    """Put new stages, each in its loops, before the sum, and take out old ones."""
    place = nest.root.body.index(nest.top_level(stages.total))
    for position, stage in enumerate(made):
        loops = [Loop(a.name, a.extent) for a in stage.iterators]
        nest.root.add(nested(stage, loops), place + position)
    for stage in old:
        stage.take_out()
    if rounded is None:
        del nest.buffers[stages.quotient.writes[0].buffer.name]


def _sized_rounding(stages: Stages, rounded: Buffer) -> Stage:
    """Return the stage that rounds exponentials."""
    quotient = stages.quotient
    write, load = quotient.writes[0], quotient.loads[0]
    read = Access(stages.exponential.writes[0].buffer, list(load.indices))
    axes = _sized_axes(quotient)
    return Stage(quotient.name, axes, [Access(rounded, list(write.indices))], [read], {"convert": 1})


def replay_division(nest: Nest, stages: Stages, is_rounded: bool) -> None:
    total = stages.total
    rounded = _sized_rounded(nest, stages) if is_rounded else None
    write = total.writes[0]
    partial = _added(nest, write.buffer, "part")
    loads, arithmetic = _sized_weighted(stages, rounded)
    name = fresh_name(f"{total.name}_part", nest.stage_names)
    writes = [Access(partial, list(write.indices))]
    parts = Stage(name, _sized_axes(total), writes, loads, arithmetic, "add", dict(total.joining))
    last = _sized_last(stages, partial, _sized_row(stages))
    made = [_sized_rounding(stages, rounded)] if rounded is not None else []
    _sized_replace(nest, stages, [*made, parts, last], [total, stages.quotient], rounded)


def replay_blocks(nest: Nest, stages: Stages, terms: Size, is_rounded: bool, is_padded: bool) -> None:
    total, write = stages.total, stages.total.writes[0]
    blocks = ceil_div(_reduced(total).extent, terms)
    names = [fresh_name(f"{total.name}_{part}", nest.stage_names) for part in ("part", "run")]
    partial = _added(nest, write.buffer, "part", [blocks])
    carried = [_added(nest, write.buffer, part) for part in BUFFERS[1:]]
    exponentials = stages.exponential.writes[0].buffer
    exponentials.shape[stages.dimension] = terms
    for stage in (stages.largest, stages.exponential, stages.denominator):
        stage.writes[0].buffer.shape.insert(0, blocks)
    rounded = _sized_rounded(nest, stages) if is_rounded else None
    weighted = Stage(names[0], total.iterators, [Access(partial, write.indices)], [], {}, "add", total.joining)
    weighted.loads, weighted.arithmetic = _sized_weighted(stages, rounded)
    name = fresh_name(f"{_reduced(total).name}0", {a.name for a in _sized_axes(total, spatial=True)})
    at = Index.axis(name)
    reads = [Access(partial, [at, *write.indices]), _sized_row(stages, [at])]
    reads.append(Access(stages.largest.writes[0].buffer, [at, *stages.row]))
    writes = [Access(buffer, list(write.indices)) for buffer in carried]
    axes = [*_sized_axes(total, spatial=True), SizedAxis(name, blocks, True, at)]
    made = [
        _sized_block(stages.largest, _reduced(stages.largest), terms, blocks),
        _sized_exponential(stages, terms, blocks),
        _sized_block(stages.denominator, _reduced(stages.denominator), terms, blocks, exponentials),
        *_sized_rounding_blocks(stages, rounded, terms, blocks),
        _sized_block(weighted, _reduced(weighted), terms, blocks, rounded or exponentials),
        Stage(names[1], axes, writes, reads, dict(_JOINING), "custom", dict(_JOINING)),
        _sized_last(stages, carried[0], Access(carried[1], list(write.indices))),
    ]
    for stage in made if is_padded else ():
        stage.caps.clear()
    old = [stages.largest, stages.exponential, stages.denominator, stages.quotient, total]
    _sized_replace(nest, stages, made, old, rounded)


def _sized_rounding_blocks(stages: Stages, rounded: Buffer | None, terms: Size, blocks: Size) -> list[Stage]:
    """Return the stage that rounds the exponentials of a block; none where they stay as they are."""
    if rounded is None:
        return []
    name = stages.quotient.writes[0].indices[stages.dimension].as_name
    over = next(a for a in stages.quotient.iterators if a.name == name)
    exponentials = stages.exponential.writes[0].buffer
    return [_sized_block(_sized_rounding(stages, rounded), over, terms, blocks, exponentials)]


def _sized_exponential(stages: Stages, terms: Size, blocks: Size) -> Stage:
    stage = stages.exponential
    name = stage.writes[0].indices[stages.dimension].as_name
    over = next(a for a in stage.iterators if a.name == name)
    made = _sized_block(stage, over, terms, blocks, stages.largest.writes[0].buffer)
    made.arithmetic = dict(Counter(made.arithmetic) + Counter(_GUARD))
    return made


def _sized_block(stage: Stage, over: SizedAxis, terms: Size, blocks: Size, replaced: Buffer | None = None) -> Stage:
    """Return a stage over blocks of terms; `replaced` is a buffer that it reads, which has a dimension for them."""
    taken = {a.name for a in stage.iterators}
    outer, inner = (fresh_name(f"{over.name}{digit}", taken) for digit in (0, 1))
    term = Index.axis(outer) * terms + Index.axis(inner)
    axes = [a for a in _sized_axes(stage) if a.name != over.name]
    axes += [
        SizedAxis(outer, blocks, False, Index.axis(outer)),
        SizedAxis(inner, terms, over.is_reduce, Index.axis(inner)),
    ]

    def in_block(access: Access) -> Access:
        at = access.substituted({over.name: Index.axis(inner)})
        return Access(at.buffer, [Index.axis(outer), *at.indices])

    loads = [in_block(a) for a in stage.loads if a.buffer is replaced]
    loads += [a.substituted({over.name: term}) for a in stage.loads if a.buffer is not replaced]
    writes = [in_block(a) for a in stage.writes]
    made = Stage(stage.name, axes, writes, loads, dict(stage.arithmetic), stage.combiner, dict(stage.joining))
    made.caps.append(Cap.of(term, over.extent - 1))
    return made
