"""Square windows that slide over images, found by their indices, and the nests of their minimal filtering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import prod
from typing import Any, Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import AllocOp, BlockOp, LoadOp, buffer_shape, buffer_type, element_of_buffer
from ...dialects.minimal_filtering import Matrices, Matrix, tiles_along
from ...dialects.te import PredicateOp, YieldOp
from ..analysis.nest import fresh_buffer_name, nest_around

Terms = tuple[tuple[str, ...], int, tuple[int, ...]]
"""The iterators that an index is the sum of, what is added to them, and what each is multiplied by."""


class _Index(Protocol):
    """An index expression, of the IR or of a parametric nest."""

    @property
    def terms(self) -> tuple[tuple[Any, Any], ...]: ...

    @property
    def const(self) -> Any: ...


@dataclass(frozen=True)
class Access:
    """The place of an element, an index a dimension; None for one that is no sum of iterators."""

    dimensions: tuple[Terms | None, ...]

    @classmethod
    def of(cls, indices: Sequence[_Index]) -> Access:
        """Read index expressions."""
        return cls(tuple(map(_terms, indices)))

    def dimension_of(self, names: set[str]) -> int | None:
        """The dimension whose index is the sum of just these iterators."""
        found = [d for d, e in enumerate(self.dimensions) if e is not None and set(e[0]) == names]
        return found[0] if len(found) == 1 else None


def _terms(index: _Index) -> Terms | None:
    found = [(atom, c) for atom, c in index.terms if isinstance(atom, str) and isinstance(c, int) and c > 0]
    if len(found) < len(index.terms) or not isinstance(index.const, int):
        return None
    return tuple(atom for atom, _ in found), index.const, tuple(c for _, c in found)


@dataclass(frozen=True)
class Window:
    """A convolution's iterators, images and filters and pixels and channels and places in the window, by their names.

    Of a volume, `planes` and `plane_taps` are those of its first axis, empty where images have two; along it no sum is
    transformed. `sizes` has the extent of each, and taps are so far `apart`, those along planes first. `data`,
    `kernel` and `result` are the places of what is read and written.
    """

    image: str
    filter: str
    planes: str
    pixel: tuple[str, str]
    channel: str
    plane_taps: str
    tap: tuple[str, str]
    apart: tuple[int, int, int]
    sizes: dict[str, int]
    data: Access
    kernel: Access
    result: Access

    @property
    def extent(self) -> int:
        """Taps along an axis of a plane."""
        return self.sizes[self.tap[0]]

    @property
    def depth(self) -> int:
        """Taps along planes, 1 where there are none."""
        return self.sizes.get(self.plane_taps, 1)

    @property
    def planes_read(self) -> int:
        """Planes of an image that windows reach, 1 where it is one."""
        return self.sizes.get(self.planes, 1) + (self.depth - 1) * self.apart[0]

    @property
    def dilation(self) -> tuple[int, int]:
        """The distance between taps along both axes of a plane."""
        return self.apart[1:]


def find_window(axes: Sequence[Axis], result: Access, loads: Sequence[Access]) -> tuple[Window, tuple[int, int]] | None:
    """The window of a sum of products, and which loads are of data and of the kernel; None where it is none."""
    spatial, reduced = ([a for a in axes if a.reduce == is_reduce] for is_reduce in (False, True))
    sizes = {a.name: a.extent for a in axes}
    if len(spatial) not in (4, 5) or len(reduced) != len(spatial) - 1 or len(loads) != 2:
        return None
    for data, kernel in permutations(range(2)):
        found = _matched(sizes, [a.name for a in spatial], [a.name for a in reduced], loads[data], loads[kernel])
        if found is not None and _is_plain(result, [a.name for a in spatial]):
            return Window(*found, sizes, loads[data], loads[kernel], result), (data, kernel)
    return None


def _is_plain(access: Access, names: Sequence[str]) -> bool:
    """True for an access of just these iterators, a dimension each, besides such of one element."""
    found = [e[0] for e in access.dimensions if e is not None and e[0]]
    plain = all(e is not None and (e[2] == (1,) or not e[0]) and not e[1] for e in access.dimensions)
    return plain and sorted(found) == sorted((name,) for name in names)


def _matched(
    sizes: dict[str, int], spatial: Sequence[str], reduced: Sequence[str], data: Access, kernel: Access
) -> tuple[str, str, str, tuple[str, str], str, str, tuple[str, str], tuple[int, int, int]] | None:
    """The iterators by what they are, as `Window` has them; None where they are none of a convolution."""
    slid = [e for e in data.dimensions if e is not None and len(e[0]) == 2]
    sums = [e[0] for e in slid]
    if len(sums) != len(spatial) - 2 or None in data.dimensions:
        return None
    *planes, y, x = (next((n for n in names if n in spatial), "") for names in sums)
    *plane_taps, ry, rx = (next((n for n in names if n in reduced), "") for names in sums)
    read = {e[0][0] for e in data.dimensions if e is not None and len(e[0]) == 1}
    images, channels = read & set(spatial), read & set(reduced)
    filters = set(spatial) - images - {*planes, y, x}
    if len(images) != 1 or len(channels) != 1 or len(filters) != 1 or "" in (*planes, y, x, *plane_taps, ry, rx):
        return None
    (image,), (channel,), (made,) = images, channels, filters
    if sizes[ry] != sizes[rx] or not _is_plain(kernel, (made, channel, *plane_taps, ry, rx)):
        return None
    steps = {name: step for e in data.dimensions if e is not None for name, step in zip(e[0], e[2], strict=True)}
    plain_read = all(e is not None and (len(e[0]) == 2 or not e[1]) for e in data.dimensions)
    if not plain_read or any(steps[name] != 1 for name in steps if name not in {*plane_taps, ry, rx}):
        return None
    apart = (max((steps[name] for name in plane_taps), default=1), steps[ry], steps[rx])
    return image, made, "".join(planes), (y, x), channel, "".join(plane_taps), (ry, rx), apart


@dataclass
class Transforms:
    """Writes the nests of a window by minimal filtering, and the buffers between them.

    Transformed kernels are [position, position, channel, filter], with the parts of a larger window behind positions;
    transformed data and products have tiles last, or channels where these are last in the data. A part reads the tile
    that is so many planes, rows and columns further on: data have tiles beyond the last results for these, and tiles
    are numbered by rows of as many, plane by plane, each of all images. `taken` are names that buffers and blocks may
    not have.
    """

    window: Window
    matrices: Matrices
    data: SSAValue
    kernel: SSAValue
    taken: set[str]
    allocs: list[AllocOp] = field(default_factory=list)

    @property
    def _parts(self) -> int:
        return self.matrices.parts(self.window.extent)

    @property
    def _tiles(self) -> tuple[int, ...]:
        """Rows and columns of the tiles of an image, with those that only parts of windows read.

        Along a dilated axis neighbours are tiles of neighbouring phases, whose pixels lie side by side.
        """
        pixels, apart = [self.window.sizes[name] for name in self.window.pixel], self.window.dilation
        found = tiles_along(pixels, apart, self.matrices.output)
        return tuple(count + (self._parts - 1) * d for count, d in zip(found, apart, strict=True))

    def _start(self, tile: IndexExpr, place: int) -> IndexExpr:
        """The first row, or column, of a tile by its number along the axis."""
        size, d = self.matrices.output, self.window.dilation[place]
        return tile * size if d == 1 else tile // d * (size * d) + tile % d

    def _along(self, pixel: IndexExpr, place: int) -> IndexExpr:
        """The number along an axis of the tile that holds a row, or column, of the results."""
        size, d = self.matrices.output, self.window.dilation[place]
        return pixel // size if d == 1 else pixel // (size * d) * d + pixel % d

    def _inside(self, pixel: IndexExpr, place: int) -> IndexExpr:
        """The row, or column, within its tile of one of the results."""
        d = self.window.dilation[place]
        return (pixel if d == 1 else pixel // d) % self.matrices.output

    @property
    def _of_plane(self) -> int:
        """Tiles of a plane, of all images."""
        return self.window.sizes[self.window.image] * prod(self._tiles)

    @property
    def _apart(self) -> dict[str, tuple[int, int]]:
        """The parts of a window by the iterators over them: how many, and the tiles from one to the next."""
        _, columns = self._tiles
        z, y, x = self.window.apart
        found = {
            "pz": (self.window.depth, self._of_plane * z),
            "py": (self._parts, columns * y),
            "px": (self._parts, x),
        }
        return {name: part for name, part in found.items() if part[0] > 1}

    def _in_order(self, channel: str, extent: int, beyond: int = 0) -> list[tuple[str, int]]:
        """Channels and tiles, without so many of the last, in the order that data has them in."""
        last = self.window.data.dimensions[-1]
        found = [(channel, extent), ("p", self.window.planes_read * self._of_plane - beyond)]
        return found[::-1] if last is not None and last[0] == (self.window.channel,) else found

    def write(self, label: str, out: SSAValue) -> list[Operation]:
        """The nests in order, the last one called `label`, which writes the results."""
        window, one = self.window, self.matrices
        channels, filters = window.sizes[window.channel], window.sizes[window.filter]
        both = [*self._part_axes(), ("ci", channels), ("co", filters)]
        kernel_axes = [("eps", one.tile), ("rx", one.kernel), *both]
        kernel_rows = self._picked("kernel_rows", kernel_axes, "eps", one.g, self._tap)
        kernel_pack = self._chained("kernel_pack", kernel_rows, one.g, both)
        data_axes = self._in_order("c", channels)
        wide = [("eps", one.tile), ("j", one.tile), *data_axes]
        data_rows = self._picked("data_rows", wide, "eps", one.b, self._pixel)
        data_pack = self._chained("data_pack", data_rows, one.b, data_axes)
        made_axes = self._in_order("co", filters, sum((count - 1) * tiles for count, tiles in self._apart.values()))
        product = self._product(kernel_pack[1], data_pack[1], made_axes)
        inverse_rows = self._picked(
            "inverse_rows",
            [("vh", one.output), ("nu", one.tile), *made_axes],
            "vh",
            one.a,
            lambda eps: (product[1], [constant(eps), axis("nu"), *(axis(n) for n, _ in made_axes)], []),
        )
        inverse = self._chained("inverse", inverse_rows, one.a, made_axes, ("vh", "vw"))
        nests = [kernel_rows, kernel_pack, data_rows, data_pack, product, inverse_rows, inverse]
        return [*(nest for nest, _ in nests), self._gathered(label, inverse[1], out, [n for n, _ in made_axes])]

    def _part_axes(self) -> list[tuple[str, int]]:
        """The planes, rows and columns of a window's parts; none where it is one."""
        return [(name, count) for name, (count, _) in self._apart.items()]

    # -- elements ------------------------------------------------------------------------------------------------------

    def _tap(self, row: int) -> tuple[SSAValue, list[IndexExpr], list[IndexExpr]]:
        """The element of the kernel in a row of the window, or of its part, zero beyond the window."""
        window, extent, beyond = self.window, self.matrices.kernel, list[IndexExpr]()
        taps = (constant(row), axis("rx"))
        if self._parts > 1:
            taps = (axis("py") * extent + row, axis("px") * extent + axis("rx"))
        if self._parts * extent > window.extent:
            beyond = [window.extent - 1 - tap for tap in taps]
        values = {window.filter: axis("co"), window.channel: axis("ci")} | dict(zip(window.tap, taps, strict=True))
        values[window.plane_taps] = axis("pz") if window.depth > 1 else constant(0)
        return self.kernel, [_sum(e, values) for e in window.kernel.dimensions], beyond

    def _pixel(self, row: int) -> tuple[SSAValue, list[IndexExpr], list[IndexExpr]]:
        """The element of the data in a row of tile `p`, zero beyond the data."""
        window, (rows, columns) = self.window, self._tiles
        images, tile = window.sizes[window.image], axis("p")
        ranges = {"p": (0, window.planes_read * self._of_plane - 1), "j": (0, self.matrices.tile - 1)}
        image = tile // (rows * columns)
        values = {window.image: image % images if window.planes else image, window.channel: axis("c")}
        values |= {window.planes: tile // self._of_plane, window.plane_taps: constant(0)}
        values[window.pixel[0]] = self._start(tile // columns % rows, 0)
        values[window.pixel[1]] = self._start(tile % columns, 1)
        values |= {window.tap[0]: constant(row), window.tap[1]: axis("j")}
        indices = [_sum(e, values).simplify(ranges) for e in window.data.dimensions]
        extents, beyond = buffer_shape(self.data), list[IndexExpr]()
        for index, extent in zip(indices, extents, strict=True):
            if "c" not in index.axes() and index.bounds(ranges)[1] >= extent:
                beyond.append(extent - 1 - index)
        return self.data, indices, beyond

    # -- nests ---------------------------------------------------------------------------------------------------------

    def _picked(
        self,
        label: str,
        axes: Sequence[tuple[str, int]],
        row: str,
        matrix: Matrix,
        element: Callable[[int], tuple[SSAValue, list[IndexExpr], list[IndexExpr]]],
    ) -> tuple[Operation, SSAValue]:
        """A product with the matrix, whose row the iterator `row` picks."""
        loads = [LoadOp(*element(k)) for k in range(len(matrix[0]))]
        ops: list[Operation] = [*loads]
        sums = _Sums([load.result for load in loads], ops)
        rows = [sums.of(coefficients) for coefficients in matrix]
        value = rows[-1]
        for number in range(len(rows) - 2, -1, -1):
            chosen = PredicateOp([number - axis(row)])
            select = arith.SelectOp(chosen.result, rows[number], value)
            ops += [chosen, select]
            value = select.result
        return self._stored(label, axes, [*ops, YieldOp.create(operands=[value])])

    def _chained(
        self,
        label: str,
        before: tuple[Operation, SSAValue],
        matrix: Matrix,
        others: Sequence[tuple[str, int]],
        positions: tuple[str, str] = ("eps", "nu"),
    ) -> tuple[Operation, SSAValue]:
        """The product with the matrix from the other side."""
        first, second = positions
        inside = [axis(name) for name, _ in others]
        axes = [(first, len(matrix)), (second, len(matrix)), *others]
        return self._picked(label, axes, second, matrix, lambda k: (before[1], [axis(first), constant(k), *inside], []))

    def _product(self, kernel: SSAValue, data: SSAValue, axes: Sequence[tuple[str, int]]) -> tuple[Operation, SSAValue]:
        """Sums of products over channels and the parts of a window, for each position and tile."""
        place, parts = [axis("eps"), axis("nu")], self._part_axes()
        tile = sum((axis(name) * tiles for name, (_, tiles) in self._apart.items()), constant(0)) + axis("p")
        left = LoadOp(kernel, [*place, *(axis(name) for name, _ in parts), axis("ci"), axis("co")])
        right = LoadOp(data, [*place, *(axis("ci") if name == "co" else tile for name, _ in axes)])
        product = arith.MulfOp(left.result, right.result)
        body = [left, right, product, YieldOp.create(operands=[product.result])]
        positions = [("eps", self.matrices.tile), ("nu", self.matrices.tile)]
        reduced = [("ci", self.window.sizes[self.window.channel]), *parts]
        return self._stored("bgemm", [*positions, *axes], body, reduced)

    def _gathered(self, label: str, inverse: SSAValue, out: SSAValue, inside: Sequence[str]) -> Operation:
        """Results from the tiles that they are in."""
        window, (rows, columns) = self.window, self._tiles
        y, x = map(axis, window.pixel)
        plane = axis(window.image)
        if window.planes:
            plane = axis(window.planes) * window.sizes[window.image] + plane
        tile = (plane * rows + self._along(y, 0)) * columns + self._along(x, 1)
        names = [e[0][0] for e in window.result.dimensions if e is not None and e[0]]
        ranges = {name: (0, window.sizes[name] - 1) for name in names}
        where = {"p": tile.simplify(ranges), "co": axis(window.filter)}
        load = LoadOp(inverse, [self._inside(y, 0), self._inside(x, 1), *(where[name] for name in inside)])
        body = Region(Block([load, YieldOp.create(operands=[load.result])]))
        axes = [Axis(name, window.sizes[name]) for name in names]
        values = {name: axis(name) for name in names}
        written = [_sum(e, values) for e in window.result.dimensions]
        block = BlockOp(label, axes, [axis(a.name) for a in axes], [out], [written], body)
        return nest_around(block, [(a.name, a.extent) for a in axes])

    def _stored(
        self,
        wanted: str,
        axes: Sequence[tuple[str, int]],
        body: Sequence[Operation],
        reduced: Sequence[tuple[str, int]] = (),
    ) -> tuple[Operation, SSAValue]:
        """A nest whose block writes a buffer of its own, called as it is."""
        label = fresh_buffer_name(wanted, self.taken)
        self.taken.add(label)
        alloc = AllocOp(label, buffer_type(element_of_buffer(self.data), [n for _, n in axes], "global"))
        self.allocs.append(alloc)
        iterators = [*(Axis(name, n) for name, n in axes), *(Axis(name, n, True) for name, n in reduced)]
        written = [axis(name) for name, _ in axes]
        combiner = "add" if reduced else "none"
        bindings = [axis(a.name) for a in iterators]
        block = BlockOp(label, iterators, bindings, [alloc.buffer], [written], Region(Block(body)), combiner)
        return nest_around(block, [*axes, *reduced]), alloc.buffer


def _sum(index: Terms | None, values: dict[str, IndexExpr]) -> IndexExpr:
    assert index is not None
    names, const, steps = index
    total = constant(const)
    for name, step in zip(names, steps, strict=True):
        total = total + values[name] * step
    return total


class _Sums:
    """Sums of values by coefficients, the rows of a matrix; each product is taken once. `ops` are what they take."""

    def __init__(self, values: Sequence[SSAValue], ops: list[Operation]) -> None:
        self._values = values
        self._products: dict[tuple[int, float], SSAValue] = {}
        self.ops = ops

    def _done(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]

    def _weighted(self, k: int, weight: float) -> SSAValue:
        value = self._values[k]
        if weight == 1:
            return value
        if (k, weight) not in self._products:
            kind = value.type
            assert isinstance(kind, Float32Type | Float64Type)
            factor = self._done(arith.ConstantOp(FloatAttr(weight, kind)))
            self._products[k, weight] = self._done(arith.MulfOp(factor, value))
        return self._products[k, weight]

    def of(self, coefficients: Sequence[float]) -> SSAValue:
        """The sum of products with the coefficients that are not zero."""
        total: SSAValue | None = None
        for k, c in enumerate(coefficients):
            if c == 0:
                continue
            term = self._weighted(k, float(abs(c)))
            if total is None:
                total = term if c > 0 else self._done(arith.NegfOp(term))
            else:
                total = self._done((arith.AddfOp if c > 0 else arith.SubfOp)(total, term))
        assert total is not None
        return total
