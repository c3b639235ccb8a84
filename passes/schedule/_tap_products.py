"""Sums over taps of sums over channels, and the nests that have the latter as products of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Protocol

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import AllocOp, BlockOp, LoadOp, buffer_shape, buffer_type, element_of_buffer
from ...dialects.te import YieldOp
from ..analysis.nest import fresh_buffer_name, nest_around
from ..analysis.views import VIEW
from ._inlining import needed_conditions
from ._staging import copy_nest

ROW, COLUMN, TERM = "m", "p", "k"
"""Iterators of a product: places of the kernel, places of the data, and channels."""


class _Index(Protocol):
    """An index expression, of the IR or of a parametric nest."""

    @property
    def terms(self) -> tuple[tuple[Any, Any], ...]: ...

    @property
    def const(self) -> Any: ...


def linear_index(index: _Index) -> IndexExpr | None:
    """The same as a sum of iterators, in the IR's form; None for others."""
    plain = all(isinstance(atom, str) and isinstance(c, int) for atom, c in index.terms)
    return IndexExpr(tuple(index.terms), index.const) if plain and isinstance(index.const, int) else None


@dataclass(frozen=True)
class Factor:
    """A load of such a sum: what it reads, where, under which conditions, and its dimension of channels."""

    buffer: SSAValue
    indices: tuple[IndexExpr, ...]
    conditions: tuple[IndexExpr, ...]
    channel: int

    @property
    def shape(self) -> list[int]:
        return list(buffer_shape(self.buffer))

    @property
    def others(self) -> tuple[int, ...]:
        """The dimensions but that of channels."""
        return tuple(d for d in range(len(self.shape)) if d != self.channel)

    @property
    def is_by_terms(self) -> bool:
        """True where channels lie side by side."""
        return prod(self.shape[self.channel + 1 :]) == 1


@dataclass(frozen=True)
class TapSum:
    """A sum over `taps` and a `channel` of products of a load of data and one of a kernel, at places of the results."""

    axes: tuple[Axis, ...]
    channel: str
    data: Factor
    kernel: Factor
    multiple: int = 1
    """Columns are a multiple of so many."""
    by_rows: bool = False
    """The terms of a row of the kernel lie side by side, where channels of the data do not."""

    @property
    def sizes(self) -> dict[str, int]:
        return {a.name: a.extent for a in self.axes}

    @property
    def spatial(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.axes if not a.reduce)

    @property
    def taps(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.axes if a.reduce and a.name != self.channel)

    @property
    def images(self) -> tuple[int, ...]:
        """Dimensions of the data that stand before channels, where others stand behind: products are one for each."""
        before = [d for d in self.data.others if d < self.data.channel and self.data.shape[d] > 1]
        return () if self.data.is_by_terms else tuple(before)

    @property
    def product(self) -> tuple[int, int, int, int]:
        """Products of so many rows, columns and terms, and their number."""
        images = prod(self.data.shape[d] for d in self.images)
        rows = prod(self.kernel.shape[d] for d in self.kernel.others)
        columns = prod(self.data.shape[d] for d in self.data.others) // images
        columns = -(-columns // self.multiple) * self.multiple
        return rows, columns, self.sizes[self.channel], images

    @property
    def added(self) -> Iterator[dict[str, IndexExpr]]:
        """The taps, one after the other, by their iterators."""
        for places in product(*(range(a.extent) for a in self.taps)):
            yield {a.name: constant(n) for a, n in zip(self.taps, places, strict=True)}


def find_tap_sum(
    axes: Sequence[Axis],
    loads: Sequence[tuple[SSAValue, Sequence[_Index], Sequence[IndexExpr]]],
    multiple: int = 1,
    by_rows: bool = False,
) -> TapSum | None:
    """The sum that a block with these iterators and two loads is; None where it is none.

    Data are what it loads first.
    """
    factors = [(buffer, tuple(map(linear_index, indices)), tuple(where)) for buffer, indices, where in loads]
    if len(factors) != 2 or any(None in indices for _, indices, _ in factors):
        return None
    reduced = [a.name for a in axes if a.reduce and a.extent > 1]
    shared = [name for name in reduced if all(_dimension_of(name, f) is not None for f in factors)]
    first, second = ({name for e in indices if e is not None for name in e.axes()} for _, indices, _ in factors)
    if len(shared) != 1 or any(a.name in first & second and not a.reduce and a.extent > 1 for a in axes):
        return None
    made = []
    for buffer, indices, where in factors:
        dimension = _dimension_of(shared[0], (buffer, indices, where))
        assert dimension is not None
        if buffer_shape(buffer)[dimension] != next(a.extent for a in axes if a.name == shared[0]):
            return None
        made.append(Factor(buffer, tuple(e for e in indices if e is not None), where, dimension))
    data, kernel = made
    return TapSum(tuple(axes), shared[0], data, kernel, multiple, by_rows and not data.is_by_terms)


def _dimension_of(
    name: str, factor: tuple[SSAValue, tuple[IndexExpr | None, ...], tuple[IndexExpr, ...]]
) -> int | None:
    """The one dimension whose index is just an iterator that nothing else of a load has."""
    _, indices, where = factor
    found = [d for d, e in enumerate(indices) if e is not None and name in e.axes()]
    alone = len(found) == 1 and indices[found[0]] == axis(name)
    return found[0] if alone and all(name not in e.axes() for e in where) else None


@dataclass
class Products:
    """Writes the nests of a sum over taps: matrices, their product, and what adds it up. `taken` are names in use."""

    sums: TapSum
    taken: set[str]
    allocs: list[AllocOp] = field(default_factory=list)

    def write(self, label: str, out: SSAValue, written: Sequence[IndexExpr]) -> list[Operation]:
        """The nests in order, the last one called `label`, which writes the results."""
        sums, nests = self.sums, list[Operation]()
        rows, columns, terms, _ = sums.product
        kernel = self._matrix(nests, "kernel_matrix", sums.kernel, (), (ROW, rows), sums.by_rows)
        data = self._matrix(nests, "data_matrix", sums.data, sums.images, (COLUMN, columns))
        images = [(f"n{d}", sums.data.shape[d]) for d in sums.images]
        pixels = [(COLUMN, columns), (ROW, rows)] if sums.data.is_by_terms else [(ROW, rows), (COLUMN, columns)]
        spatial = [*images, *pixels]
        loads = [LoadOp(*kernel), LoadOp(*data)]
        value = arith.MulfOp(loads[0].result, loads[1].result)
        body = Region(Block([*loads, value, YieldOp.create(operands=[value.result])]))
        made, products = self._buffer("tap_products", [n for _, n in spatial])
        iterators = [*(Axis(name, n) for name, n in spatial), Axis(TERM, terms, True)]
        bindings, target = [axis(a.name) for a in iterators], [axis(n) for n, _ in spatial]
        block = BlockOp(made, iterators, bindings, [products], [target], body, "add")
        nests.append(nest_around(block, [(a.name, a.extent) for a in iterators]))
        nests.append(self._added(label, out, written, products))
        return nests

    def _buffer(self, wanted: str, shape: Sequence[int]) -> tuple[str, SSAValue]:
        label = fresh_buffer_name(wanted, self.taken)
        self.taken.add(label)
        alloc = AllocOp(label, buffer_type(element_of_buffer(self.sums.data.buffer), list(shape), "global"))
        self.allocs.append(alloc)
        return label, alloc.buffer

    def _matrix(
        self,
        nests: list[Operation],
        wanted: str,
        factor: Factor,
        images: tuple[int, ...],
        places: tuple[str, int],
        by_rows: bool = False,
    ) -> tuple[SSAValue, list[IndexExpr]]:
        """A factor as a matrix, and the place in it of a product's term; itself where it is one as it lies."""
        name, extent = places
        values = {d: axis(f"n{d}") for d in images} | {factor.channel: axis(TERM)}
        rest, numbered = axis(name), [d for d in factor.others if d not in images and factor.shape[d] > 1]
        for d in reversed(numbered):
            values[d] = rest % factor.shape[d] if d != numbered[0] else rest
            rest = rest // factor.shape[d]
        count = prod(factor.shape[d] for d in numbered)
        beyond = [count - 1 - axis(name)] if extent > count else []
        ranges = {name: (0, extent - 1), TERM: (0, factor.shape[factor.channel] - 1)}
        ranges |= {f"n{d}": (0, factor.shape[d] - 1) for d in images}
        indices = [values.get(d, constant(0)).simplify(ranges) for d in range(len(factor.shape))]
        if not beyond and all(e.as_axis() is not None or e.is_constant for e in indices):
            return factor.buffer, indices
        order = [f"n{d}" for d in images]
        order += [name, TERM] if factor.is_by_terms or by_rows else [TERM, name]
        axes = [Axis(n, ranges[n][1] + 1) for n in order]
        label, matrix = self._buffer(wanted, [a.extent for a in axes])
        target = [axis(n) for n in order]
        nests.append(copy_nest(label, axes, (factor.buffer, indices, beyond), (matrix, target), VIEW))
        return matrix, target

    def _added(self, label: str, out: SSAValue, written: Sequence[IndexExpr], products: SSAValue) -> Operation:
        """Results, each the sum of the products of its taps, zero where a load was."""
        sums, ops, total = self.sums, list[Operation](), None
        axes = sums.spatial
        ranges = {a.name: (0, a.extent - 1) for a in axes}
        for taps in sums.added:
            where = [e.substitute(taps).simplify(ranges) for f in (sums.data, sums.kernel) for e in f.conditions]
            if any(e.bounds(ranges)[1] < 0 for e in where):
                continue
            load = LoadOp(products, self._place(taps, ranges), needed_conditions(where, ranges))
            ops.append(load)
            if total is None:
                total = load.result
            else:
                ops.append(addition := arith.AddfOp(total, load.result))
                total = addition.result
        assert total is not None
        body = Region(Block([*ops, YieldOp.create(operands=[total])]))
        block = BlockOp(label, axes, [axis(a.name) for a in axes], [out], [tuple(written)], body)
        return nest_around(block, [(a.name, a.extent) for a in axes])

    def _place(self, taps: Mapping[str, IndexExpr], ranges: Mapping[str, tuple[int, int]]) -> list[IndexExpr]:
        """The place of a tap's product among all."""
        data, kernel, images = self.sums.data, self.sums.kernel, self.sums.images
        first = [data.indices[d].substitute(taps).simplify(ranges) for d in images]
        column, row = (
            _flat(factor, [d for d in factor.others if d not in beside], taps).simplify(ranges)
            for factor, beside in ((data, images), (kernel, ()))
        )
        return [*first, column, row] if data.is_by_terms else [*first, row, column]


def _flat(factor: Factor, dimensions: Sequence[int], taps: Mapping[str, IndexExpr]) -> IndexExpr:
    """Places along some dimensions, numbered through."""
    total = constant(0)
    for d in dimensions:
        total = total * factor.shape[d] + factor.indices[d].substitute(taps)
    return total
