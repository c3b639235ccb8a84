"""Reductions on a GPU and what surrounds them: the chains that one kernel may compute, and how their operands lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import BlockOp, LoadOp, buffer_shape
from ...passes.analysis.nest import find_block
from ...passes.schedule.rfactor import may_trap
from ..sketch.draft import Draft
from .chains import chain_to, unscheduled
from .strides import position_in
from .transform_chains import picked_axes


@dataclass(frozen=True)
class GpuChain:
    """Reductions that have a result for each of the same rows, and the block `last` that all of them lead to.

    `last` may be the last of the `reductions`, which are in program order. `rows` are its axes, of extents above 1,
    that the results are told apart by, `within` its other ones. `repeated` are blocks without a reduction in between.
    """

    last: str
    reductions: tuple[str, ...]
    repeated: tuple[str, ...]
    rows: tuple[str, ...]
    within: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...] = ()
    """Reduction, row, and the reduction's iterator over it."""

    def iterator(self, reduction: str, row: str) -> str:
        """Return a reduction's name of the axis `row` of the last block."""
        return next(n for name, at, n in self.places if (name, at) == (reduction, row))

    def with_reduction(self, name: str, made: str) -> GpuChain:
        """The same rows, computed by the block `made` instead of `name`."""
        reductions = tuple(made if n == name else n for n in self.reductions)
        places = tuple((made if n == name else n, at, iterator) for n, at, iterator in self.places)
        return replace(self, reductions=reductions, places=places)

    def behind(self, copy: str, renamed: Mapping[str, str]) -> GpuChain:
        """The chain with a block behind the last one that copies its results, and calls its axes otherwise."""
        places = tuple((n, renamed[at], iterator) for n, at, iterator in self.places)
        return replace(self, last=copy, rows=tuple(renamed[n] for n in self.rows), places=places)

    def row_of(self, reduction: str, iterator: str) -> str:
        """The axis of the last block that a reduction's iterator is."""
        return next(at for name, at, n in self.places if (name, n) == (reduction, iterator))


def chain_of_one(block: BlockOp) -> GpuChain:
    """A reduction by itself, for each of its results."""
    own = [a.name for a in block.axes if not a.reduce and a.extent > 1]
    name = block.block_name
    return GpuChain(name, (name,), (), tuple(own), (), tuple((name, n, n) for n in own))


def chains_of(draft: Draft) -> list[GpuChain]:
    """The chains of a draft, from its end on, each block in the first one that takes it."""
    waiting = unscheduled(draft)
    found: list[GpuChain] = []
    taken: set[str] = set()
    for position in reversed(range(len(waiting))):
        if waiting[position].block_name in taken:
            continue
        before = [b for b in waiting[:position] if b.block_name not in taken]
        chain = _chain_to(waiting[position], before)
        if chain is not None:
            found.append(chain)
            taken |= {chain.last, *chain.reductions, *chain.repeated}
    return found


@dataclass
class _Growing:
    """A chain on its way: the axis of the last block that each block's iterators are, and the rows, once known."""

    extents: dict[str, int]
    places: dict[BlockOp, dict[str, str]]
    rows: set[str] | None

    def admits(self, block: BlockOp, readers: Sequence[BlockOp]) -> bool:
        """Take a block to be computed again where it is read, or a reduction that has a result for each row."""
        at = _places(block, readers, self.places)
        if at is None:
            return False
        if block.is_reduction:
            results = {n for n in at.values() if self.extents[n] > 1}
            told = [a.name for a in block.axes if not a.reduce and a.extent > 1]
            told_apart = len({at.get(n) for n in told} - {None}) == len(told)
            if not told_apart or not _is_plain_reduction(block) or self.rows not in (None, results):
                return False
            self.rows = results
        self.places[block] = at
        return True


def _chain_to(last: BlockOp, before: Sequence[BlockOp]) -> GpuChain | None:
    """The chain that ends in `last`; None where there is no reduction in it."""
    own = _written(last)
    if own is None or (last.is_reduction and not _is_plain_reduction(last)):
        return None
    extents = {a.name: a.extent for a in last.axes}
    named = [n for n in own if extents[n] > 1]
    growing = _Growing(extents, {last: {n: n for n in own}}, {*named} if last.is_reduction else None)
    blocks = chain_to(last, before, growing.admits)[::-1]
    rows = growing.rows
    if rows is None:
        return None
    places = growing.places.items()
    return GpuChain(
        last.block_name,
        tuple(b.block_name for b in blocks if b.is_reduction),
        tuple(b.block_name for b in blocks if not b.is_reduction and b is not last),
        tuple(n for n in named if n in rows),
        tuple(n for n in named if n not in rows),
        tuple((b.block_name, axis, n) for b, at in places for n, axis in at.items() if axis in rows),
    )


def _written(block: BlockOp) -> list[str] | None:
    """The iterators that a block writes at, each once and alike in all outputs; None for anything else."""
    first, *others = block.write_indices
    names = [e.as_axis() for e in first]
    plain = [n for n in names if n is not None]
    alike = all(other == first for other in others)
    return plain if alike and len(set(plain)) == len(names) else None


def _is_plain_reduction(block: BlockOp) -> bool:
    """True for a reduction of several terms that starts itself, and reads at iterators, from wherever on: no window, no
    mask.

    Nor one that divides by what it reads: `rfactor` refuses that where parts are without an element.
    """
    loads = [e for load in block.loads for e, _ in viewed(block, load)]
    masked = block.conditions or any(load.conditions for load in block.loads)
    starts = block.has_init and reduced(block) > 1
    return (
        starts and not masked and not may_trap(block) and all(e.is_constant or (e - e.const).as_axis() for e in loads)
    )


def _places(
    block: BlockOp, readers: Sequence[BlockOp], places: Mapping[BlockOp, dict[str, str]]
) -> dict[str, str] | None:
    """The axis of the last block that each iterator of `block` is read at; None where `block` is not of the chain."""
    own = _written(block)
    if own is None or (len(block.outputs) > 1 and not block.is_reduction) or picked_axes(block):
        return None
    loads = [(places[r], load) for r in readers for load in r.loads if load.buffer in block.outputs]
    indices = [e for _, load in loads for e in load.indices.data]
    if any(load.conditions for _, load in loads) or not all(e.is_constant or e.as_axis() for e in indices):
        return None
    at: dict[str, str] = {}
    for position, name in enumerate(own):
        found = {place.get(load.indices.data[position].as_axis() or "") for place, load in loads}
        if len(found) == 1 and (axis := found.pop()) is not None:
            at[name] = axis
    return at


# -- how operands lie -------------------------------------------------------------------------------------------------


def reduced(block: BlockOp) -> int:
    """Terms of each result."""
    return prod(a.extent for a in block.axes if a.reduce)


def neighbours_along(block: BlockOp) -> str | None:
    """The iterator along which the largest operand of a reduction is contiguous; None where none is."""
    reduce = {a.name for a in block.axes if a.reduce and a.extent > 1}
    moving = [load for load in block.loads if reduce & {n for e in load.indices.data for n in e.axes()}]
    if not moving:
        return None
    largest = max(moving, key=lambda load: prod(buffer_shape(load.buffer)))
    dims = _dimensions(block, largest)
    return dims[-1][0] if dims else None


def viewed(block: BlockOp, load: LoadOp) -> list[tuple[IndexExpr, int]]:
    """Return the index and the extent of each dimension of what is loaded, without iterators of extent 1.

    Of a single window, `h * 28 + ry` is `ry`. Through a reshape, the dimensions are those of the view: `x[k // 64,
    k % 64]` of 64x64 elements is a row of 4096 at `k`.
    """
    shape = buffer_shape(load.buffer)
    still = {a.name: constant(0) for a in block.axes if a.extent == 1}
    pairs = [(e.substitute(still), size) for e, size in zip(load.indices.data, shape, strict=True)]
    reshaped = any(not isinstance(atom, str) for e, _ in pairs for atom, _ in e.terms)
    return (reshaped and _digits(block, position_in(block, shape, load.indices.data))) or pairs


def _digits(block: BlockOp, position: IndexExpr) -> list[tuple[IndexExpr, int]] | None:
    """The iterators that a position has as its digits, the slowest first; None where it has others."""
    extents = {a.name: a.extent for a in block.axes}
    found: list[tuple[IndexExpr, int]] = []
    stride = 1
    for atom, factor in sorted(position.terms, key=lambda term: term[1]):
        if not isinstance(atom, str) or factor != stride:
            return None
        found.insert(0, (axis(atom), extents[atom]))
        stride *= extents[atom]
    return None if position.const else found


def _dimensions(block: BlockOp, load: LoadOp) -> list[tuple[str | None, int]]:
    """The iterator and the extent of each dimension of what is loaded, but for those of extent 1."""
    return [(e.as_axis(), size) for e, size in viewed(block, load) if size > 1]


def contiguous_suffix(block: BlockOp) -> list[str]:
    """The last reduce iterators of a block that go over memory as if they were one."""
    axes = [a for a in block.axes if a.reduce and a.extent > 1]
    found = [axes[-1].name]
    for outer, inner in zip(reversed(axes[:-1]), reversed(axes), strict=False):
        if not all(_follow(_dimensions(block, load), outer.name, inner.name, inner.extent) for load in block.loads):
            break
        found.insert(0, outer.name)
    return found


def _follow(dims: Sequence[tuple[str | None, int]], outer: str, inner: str, extent: int) -> bool:
    """True where `inner` takes all of the dimension behind that of `outer`, or neither is there."""
    names = [n for n, _ in dims]
    if outer not in names and inner not in names:
        return True
    if outer not in names or inner not in names:
        return False
    place = names.index(outer)
    return names[place + 1 : place + 2] == [inner] and dims[place + 1][1] == extent


@dataclass(frozen=True)
class Shape:
    """Sizes that decide a chain's schedule: `terms` of each result, `rows` of results, `last` the block they lead to.

    `along` is the iterator of the `deepest` reduction that its operand is contiguous along, `across` whether results
    are told apart by it, `together` how many terms are contiguous, and `within` the elements of a row of `last`.
    """

    chain: GpuChain
    deepest: BlockOp
    last: BlockOp
    along: str | None
    across: bool
    terms: int
    together: int
    rows: int
    within: int
    named: bool

    @classmethod
    def of(cls, draft: Draft, chain: GpuChain) -> Shape:
        """The shape of a chain of a draft."""
        blocks = [find_block(None, draft.module, name) for name in chain.reductions]
        deepest, last = max(blocks, key=reduced), find_block(None, draft.module, chain.last)
        sizes = {a.name: a.extent for a in deepest.axes}
        extents = {a.name: a.extent for a in last.axes}
        along = neighbours_along(deepest)
        terms = reduced(deepest)
        return cls(
            chain,
            deepest,
            last,
            along,
            along is not None and along not in {a.name for a in deepest.axes if a.reduce},
            terms,
            prod(sizes[n] for n in contiguous_suffix(deepest)) if terms > 1 else 1,
            prod(extents[n] for n in chain.rows),
            prod(extents[n] for n in chain.within),
            all(b.combiner.data != "custom" for b in blocks),
        )

    @property
    def is_single(self) -> bool:
        """True for one reduction, with or without a block that takes its results one by one."""
        return len(self.chain.reductions) == 1 and not self.chain.within

    @property
    def is_plain(self) -> bool:
        """True for rows along the last axis alone, which all other axes tell apart."""
        axes = [a.name for a in self.last.axes if not a.reduce]
        one = sum(a.reduce and a.extent > 1 for a in self.deepest.axes) == 1
        return one and not self.across and self.chain.within == tuple(axes[-1:]) and len(axes) > 1
