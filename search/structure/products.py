"""Products of matrices in anchors: which axes are rows, columns and steps of k, and which intrinsics multiply so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod

from ...dialects.attributes import Axis
from ...dialects.element import element_bytes
from ...dialects.index import IndexExpr
from ...dialects.intrinsics import Intrinsic
from ...dialects.kernel import array_problem
from ...dialects.loop import BlockOp, buffer_shape, element_of_buffer, scope_of
from ...dialects.target import WIDEST_ACCESS_BYTES
from ...passes.analysis.matrix_product import TURNED_BYTES, Mismatch, load_of_factor, unrounded
from ...passes.analysis.summed_product import summed_product
from .anchor import Anchor, Operand
from .kinds import Contraction, contraction_of


@dataclass(frozen=True)
class Factor:
    """A factor of a product: `rows` are the axes of the result that move it, of rows for `a`, of columns for `b`.

    Of neighbours in memory, `vector` may be copied at once; they lie along the last of the rows where it is `turned`,
    else along the last step of k.
    """

    operand: Operand
    rows: tuple[Axis, ...]
    turned: bool
    vector: int

    @property
    def extent(self) -> int:
        """Number of rows."""
        return prod(a.extent for a in self.rows)


@dataclass(frozen=True)
class Product:
    """`c[batch, i, j] += a[batch, i, k] * b[batch, j, k]`, each of them several axes taken as one.

    The axes of `b` hold the one that the result is contiguous along.
    """

    intrinsic: Intrinsic
    batch: tuple[Axis, ...]
    a: Factor
    b: Factor
    k: tuple[Axis, ...]

    @property
    def factors(self) -> tuple[Factor, Factor]:
        return self.a, self.b

    @property
    def depth(self) -> int:
        """Steps of k in all."""
        return prod(a.extent for a in self.k)

    @property
    def name(self) -> str:
        """Name of the structure in sketches: `mma_m16n16k16_f16`."""
        return self.intrinsic.name.replace(".", "_")


def find_products(anchor: Anchor, block: BlockOp, intrinsics: Iterable[Intrinsic]) -> list[Product]:
    """The products of matrices that an anchor is, by each intrinsic whose types it has, the least padded first."""
    found = (
        _product(intrinsic, factors)
        for intrinsic in intrinsics
        if (factors := _multiplied(anchor, block, intrinsic)) is not None and _has_types(intrinsic, anchor, factors)
    )
    return sorted((product for product in found if product is not None), key=waste)


def _multiplied(anchor: Anchor, block: BlockOp, intrinsic: Intrinsic) -> Contraction | None:
    """The anchor where it is the sum of products of two different buffers.

    None where they are not rounded as the intrinsic rounds them.
    """
    if (multiplied := summed_product(block)) is None:
        return None
    try:
        loads = [load_of_factor(unrounded(value, intrinsic)) for value in multiplied.operands]
    except Mismatch:
        return None
    found = contraction_of(anchor)
    if found is None or found.a.name == found.b.name or {found.a.load, found.b.load} != set(loads):
        return None
    return found


def _has_types(intrinsic: Intrinsic, anchor: Anchor, factors: Contraction) -> bool:
    types = tuple(element_of_buffer(f.buffer) for f in (factors.a, factors.b))
    return types == (intrinsic.a.type, intrinsic.b.type) and anchor.element == intrinsic.c.type


def _product(intrinsic: Intrinsic, found: Contraction) -> Product | None:
    a, b = found.a, found.b
    if not found.rows or not found.columns or any(x.name not in a.axes or x.name not in b.axes for x in found.terms):
        return None
    k = _with_last(found.terms, [_contiguous(a), _contiguous(b)])
    return Product(intrinsic, found.batch, _factor(a, found.rows, k), _factor(b, found.columns, k), k)


def _with_last(axes: Sequence[Axis], wanted: Sequence[str]) -> tuple[Axis, ...]:
    """The axes, the first of the wanted ones that is among them at the end."""
    names = [a.name for a in axes]
    last = next((name for name in wanted if name in names), names[-1])
    return (*(a for a in axes if a.name != last), *(a for a in axes if a.name == last))


def _contiguous(operand: Operand) -> str:
    """The axis along which neighbours lie in memory, and no other index moves; "" where there is none."""
    return next((name for name in operand.axes if operand.steps_along(name)), "")


def _factor(operand: Operand, rows: tuple[Axis, ...], k: tuple[Axis, ...]) -> Factor:
    name, size = _contiguous(operand), element_bytes(element_of_buffer(operand.buffer))
    turned = size == TURNED_BYTES and rows[-1].name == name
    inner = rows[-1] if turned else k[-1]
    most = WIDEST_ACCESS_BYTES // size if inner.name == name else 1
    vector = next(n for n in (16, 8, 4, 2, 1) if n <= most and _aligned(operand, inner, n))
    return Factor(operand, rows, turned, vector)


def are_boxes(product: Product) -> bool:
    """True where the copy engine can bring both factors: tiles of them are boxes of arrays as these lie in memory."""
    return all(is_box(product, factor) for factor in product.factors)


def is_box(product: Product, factor: Factor) -> bool:
    """True where the copy engine can bring tiles of a factor.

    Rows and steps of k are a dimension each, with neighbours along the last one, as shared memory has it.

    Steps of k may be several axes that have become parts of one, and so may rows that lie one behind the other, if they
    are not padded: behind those of one part are those of the next, and no zeros.
    """
    buffer, (rows, k) = factor.operand.buffer, ([a.name for a in axes] for axes in (factor.rows, product.k))
    shape, size = buffer_shape(buffer), product.intrinsic.a.bytes
    if (
        not _are_one(factor)
        or not paddings(product).keys().isdisjoint(rows[1:])
        or scope_of(buffer) != "global"
        or array_problem(shape, size) is not None
    ):
        return False
    *_, last = factor.operand.indices
    inner = rows[-1] if factor.turned else k[-1]
    return all(_moves_by_one(e, rows, k) for e in factor.operand.indices) and last.coefficient(inner) == 1


def _are_one(factor: Factor) -> bool:
    """True where one index goes over all rows of a factor in order."""
    strides, stride = dict[str, int](), 1
    for each in reversed(factor.rows):
        strides[each.name] = stride
        stride *= each.extent
    return len(strides) == 1 or any(
        all(index.is_linear_in(name) and index.coefficient(name) == step for name, step in strides.items())
        for index in factor.operand.indices
    )


def _moves_by_one(index: IndexExpr, rows: Sequence[str], k: Sequence[str]) -> bool:
    """True where one step along rows or along the last axis of k, and not both, is one step of an index."""
    moving = [name for name in (*rows, *k) if name in index.axes()]
    if not moving:
        return True
    linear = all(index.is_linear_in(name) for name in moving)
    return linear and (moving == list(rows) or set(moving) <= set(k)) and index.coefficient(moving[-1]) == 1


def _aligned(operand: Operand, inner: Axis, n: int) -> bool:
    """True where groups of `n` neighbours along an axis start at multiples of `n` elements, in memory, too."""
    *_, last = operand.indices
    others = [c for atom, c in last.terms if atom != inner.name]
    row = buffer_shape(operand.buffer)[-1]
    return inner.extent % n == 0 and row % n == 0 and all(c % n == 0 for c in (*others, last.const))


WIDER = 1.08
"""Elements of an axis after padding over those before, at most, where larger tiles divide it then. A choice: 197 tokens
become 208, 5% more."""
FEWEST_PANELS = 12
"""Panels of columns beyond which one more is little. A choice: as `WIDER`."""
MOST_PADDED = 3
"""Axes of a group that are padded, the last ones: those of a window. A choice: each more multiplies the ways to pad."""
MULTIPLES, STEPS = (8, 4, 2, 1), (4, 2, 1)
"""Multiples of the intrinsic's rows and columns, and of its steps of k, that an axis is padded to, the best first: 4
steps are 128 bytes, the widest swizzle."""


def paddings(product: Product) -> dict[str, int]:
    """The extents that axes are to be padded to, so that rows, columns and steps are multiples of the intrinsic's."""
    x = product.intrinsic
    groups = ((product.a.rows, x.m, MULTIPLES), (product.b.rows, x.n, MULTIPLES), (product.k, x.k, STEPS))
    return {name: extent for axes, unit, multiples in groups for name, extent in _padded(axes, unit, multiples).items()}


def wide_steps(product: Product) -> dict[str, int]:
    """The extent that a single axis of k is padded to where a few steps more let fills be wider.

    On an H200 a product of 1024 x 1536 x 2064, which is 129 steps of 16, takes 28.6 us in fills of one, and with 2056,
    which is padded to 132, 17.5; cuBLAS takes 12.2 and 13.5.
    """
    if len(product.k) > 1:
        return {}
    (axis,), unit = product.k, product.intrinsic.k
    wanted = [-(-axis.extent // (unit * n)) * unit * n for n in STEPS]
    wider = [n for n in wanted if axis.extent < n <= WIDER * axis.extent]
    return {axis.name: wider[0]} if wider else {}


def wide_columns(product: Product) -> dict[str, int]:
    """The extent that a single axis of columns is padded to where one instruction more lets several be taken together.

    Of turned factors alone, of which panels of 64 are an instruction's.
    """
    if len(product.b.rows) > 1 or not (product.b.turned and product.intrinsic.reads_shared):
        return {}
    (axis,), unit = product.b.rows, product.intrinsic.n
    count = -(-axis.extent // unit)
    return {axis.name: (count + 1) * unit} if count > FEWEST_PANELS and count % 2 and count % 3 else {}


def _padded(axes: Sequence[Axis], unit: int, multiples: Sequence[int]) -> dict[str, int]:
    """The new extents of the last few axes, or of the only one, with the fewest elements; rather of the outer ones."""
    total = prod(a.extent for a in axes)
    if total % unit == 0:
        return {}
    if len(axes) == 1:
        (axis,) = axes
        found = [-(-total // (unit * n)) * unit * n for n in multiples]
        return {axis.name: next((n for n in found if n <= WIDER * total), found[-1])}
    last = axes[-MOST_PADDED:]
    rest = total // prod(a.extent for a in last)
    choices = (c for c in combinations(*(range(a.extent, a.extent + unit) for a in last)) if rest * prod(c) % unit == 0)
    best = min(choices, key=lambda c: (prod(c), c[::-1]))
    return {a.name: new for a, new in zip(last, best, strict=True) if new > a.extent}


def waste(product: Product, tail: bool = False) -> float:
    """Products computed over those asked for, once axes are padded; with a `tail` all rows of `a` as one are."""
    extents = {a.name: a.extent for a in (*product.a.rows, *product.b.rows, *product.k)}
    rows = {a.name for a in product.a.rows} if tail else set()
    padded = prod(new / extents[name] for name, new in paddings(product).items() if name not in rows)
    whole = -(-product.a.extent // product.intrinsic.m) * product.intrinsic.m
    return padded * whole / product.a.extent if tail else padded
