"""The pass that has products read and write tensors whose axes stand in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..operator import Kind, is_view, kind_of
from ..types import shape_of
from ._product_axes import product_axes
from ._rewrite import (
    Before,
    applied,
    is_constant,
    is_elementwise,
    readers,
    replace,
    transposed_order,
    used_once,
    users,
)
from ._units import is_on_units

_PRODUCTS = ("dense", "matmul", "batch_matmul")
_LEAST_RUN = 8
"""Neighbouring elements of a row or column that a product finds side by side in memory, at least: 16 bytes of a 16-bit
float, which a thread copies at once."""
_SMALL = 8
"""Other inputs of elementwise operators are moved where they have an eighth of the elements at most. A choice: those
with one element a row are far smaller."""
Shape = tuple[int, ...]


@dataclass(frozen=True)
class FoldTransposes(ModulePass):
    """transpose(batch_matmul(transpose(a), b)) -> einsum(a, b), with views and elementwise operators in between.

    Heads of attention stand between rows and columns in what products before and behind it give and take: (batch,
    rows, heads, size). A product that finds its factors by index needs no kernel to move them, nor one for its result;
    so do parts of a product that are told apart ahead of its rows. Elements of a row, or of a column of a factor, stay
    neighbours in memory, eight at least. What a product of heads reads is left to it: the one before stays as it is.
    Rows and columns are divided among axes on matrix units alone, whose rules fuse their loops, those for
    sums in registers tile each (of (3, 128, 768) they make blocks of 24 columns untuned, of (128, 2304) of 64).
    For targets whose products stage tiles in shared memory, where one row is as far away as another.
    """

    name: ClassVar[str] = "lw-graph-fold-transposes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        products = [found for found in applied(op) if found.operator.data in _PRODUCTS]
        for found in sorted(products, key=lambda product: product.operator.data != "batch_matmul"):
            axes = _axes_of(found)
            if axes is not None:
                above = [_moves_above(value) for value in found.inputs]
                _Turned(found, axes, [*above, _moves_behind(found.outputs[0])]).fold()


def _axes_of(op: ApplyOp) -> tuple[str, str, str] | None:
    """Return the axes of a product; None where one batch is stretched to another."""
    if op.operator.data == "batch_matmul" and shape_of(op.inputs[0])[0] != shape_of(op.inputs[1])[0]:
        return None
    return product_axes(op)


Atom = tuple[str, int]
"""An axis of a product, and the number of one of the factors that its extent is divided into."""
Axes = list[list[Atom]]
"""The atoms of each axis of a tensor, outermost first."""


class _Finer(Exception):
    """A factor of an axis that has to be divided, with `inner` elements of it side by side."""

    def __init__(self, atom: Atom, inner: int) -> None:
        super().__init__()
        self.atom, self.inner = atom, inner


class _Apart(Exception):
    """A tensor that is no arrangement of factors of the axes."""


class _Unread(Exception):
    """The place, among both factors and the result, of a tensor that is left as it is."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


@dataclass
class _Divided:
    """The axes of a product, each as extents that come to its own."""

    extents: dict[str, list[int]]

    def axes(self, letters: str) -> list[list[Atom]]:
        return [[(x, n) for n, extent in enumerate(self.extents[x]) if extent > 1] for x in letters]

    def extent(self, atom: Atom) -> int:
        return self.extents[atom[0]][atom[1]]

    def divide(self, finer: _Finer) -> None:
        axis, number = finer.atom
        extent = self.extents[axis][number]
        self.extents[axis][number : number + 1] = [extent // finer.inner, finer.inner]

    def under(self, axes: Axes, shape: Shape) -> Axes:
        """Return the atoms of each axis of the same elements under another shape; _Finer where one spans two."""
        waiting = _flat(axes)[::-1]
        found: Axes = []
        for extent in shape:
            taken: list[Atom] = []
            rest = extent
            while rest > 1:
                atom = waiting.pop()
                own = self.extent(atom)
                if max(own, rest) % min(own, rest):
                    raise _Apart
                if own > rest:
                    raise _Finer(atom, own // rest)
                taken.append(atom)
                rest //= own
            found.append(taken)
        return found


@dataclass
class _Turned:
    """A product, and what moves elements: of each factor, from the product up, and of its result, from the product on.

    The last ones also hold elementwise operators; the last of each is a transpose.
    """

    product: ApplyOp
    letters: tuple[str, str, str]
    moves: list[list[ApplyOp]]

    def fold(self) -> None:
        extents = dict(zip(self.letters[2], shape_of(self.product.outputs[0]), strict=True))
        extents["k"] = shape_of(self.product.inputs[0])[self.letters[0].index("k")]
        if min(extents[x] for x in "mnk") == 1:
            return
        while any(self.moves):
            divided = _Divided({x: [n] for x, n in extents.items()})
            try:
                self._write(divided, self._arranged(divided))
            except _Unread as unread:
                self.moves[unread.place] = []
            else:
                return

    def _arranged(self, divided: _Divided) -> list[list[Atom]]:
        """Return the atoms of both factors and of the result in the order of memory."""
        orders: list[list[Atom]] = []
        while len(orders) < len(self.letters):
            try:
                orders.append(self._order(divided, len(orders)))
            except _Finer as finer:
                if finer.atom[0] in self._undivided():
                    raise _Unread(len(orders)) from None
                divided.divide(finer)
                orders = []
        return orders

    def _order(self, divided: _Divided, place: int) -> list[Atom]:
        axes = divided.axes(self.letters[place])
        try:
            for op in self.moves[place]:
                axes = _behind(divided, op, axes) if place == _RESULT else _above(divided, op, axes)
        except _Apart:
            raise _Unread(place) from None
        order = _flat(axes)
        near = "n" if place == _RESULT else "mnk"
        if self.moves[place] and not (order[-1][0] in near and divided.extent(order[-1]) >= _LEAST_RUN):
            raise _Unread(place)
        return order

    def _undivided(self) -> str:
        """Return the axes that stay one loop: on matrix units loops of rows or columns are fused."""
        return "k" if is_on_units(self.product) else "mnk"

    def _write(self, divided: _Divided, orders: list[list[Atom]]) -> None:
        """Put an einsum, and the elementwise operators behind it, in the place of a product and what moves elements."""
        product, behind = self.product, self.moves[_RESULT]
        beside = [self._beside(divided, step, orders[_RESULT]) for step in range(len(behind))]
        last = behind[-1] if behind else product
        before, names = Before(last), dict(zip(dict.fromkeys(_flat(orders)), ascii_letters, strict=False))
        factors = [
            before.reshape(moves[-1].inputs[0] if moves else value, [divided.extent(atom) for atom in order])
            for value, moves, order in zip(product.inputs, self.moves, orders, strict=False)
        ]
        first, second, result = ("".join(names[atom] for atom in order) for order in orders)
        value, label = product.outputs[0], product.outputs[0].name_hint
        made = before.apply("einsum", *factors, equation=f"{first},{second}->{result}", label=label)
        for op, turned in zip(behind, beside, strict=True):
            if is_elementwise(op):
                inputs = [made if v is value else turned(before, v) for v in op.inputs]
                options: dict[str, Any] = dict(op.options.values)
                made = before.apply(op.operator.data, *inputs, **options)
            value = op.outputs[0]
        replace(last, [before.reshape(made, shape_of(value))])

    def _beside(self, divided: _Divided, step: int, order: list[Atom]) -> Callable[[Before, SSAValue], SSAValue]:
        """Return what gives other inputs of an elementwise operator behind the product the order of the result.

        _Unread where that would move elements of a tensor that is neither constant nor small.
        """
        axes, behind = divided.axes(self.letters[_RESULT]), self.moves[_RESULT]
        for op in behind[:step]:
            axes = _behind(divided, op, axes)
        own = _flat(axes)
        places = [own.index(atom) for atom in order]

        def extents(value: SSAValue) -> list[int]:
            given = (1,) * (len(axes) - len(shape_of(value))) + shape_of(value)
            return [divided.extent(atom) if n > 1 else 1 for n, axis in zip(given, axes, strict=True) for atom in axis]

        def turned(before: Before, value: SSAValue) -> SSAValue:
            if prod(shape_of(value)) == 1:
                return value
            return before.apply("transpose", before.reshape(value, extents(value)), axes=places)

        if is_elementwise(behind[step]):
            value = behind[step - 1].outputs[0] if step else self.product.outputs[0]
            for other in (v for v in behind[step].inputs if v is not value and prod(shape_of(v)) > 1):
                wide = [k for k in places if extents(other)[k] > 1]
                small = _SMALL * prod(shape_of(other)) <= prod(shape_of(value))
                if wide != sorted(wide) and not (small or is_constant(other)):
                    raise _Unread(_RESULT)
        return turned


_RESULT = 2
"""The place of a product's result among both factors and it."""


def _flat(axes: Axes) -> list[Atom]:
    """Return the atoms of several axes, in order."""
    return [atom for axis in axes for atom in axis]


def _above(divided: _Divided, op: ApplyOp, axes: Axes) -> Axes:
    """Return the axes of what an operator moves elements of, given those of its result."""
    if op.operator.data == "transpose":
        order = transposed_order(op)
        return [axes[order.index(k)] for k in range(len(order))]
    if op.operator.data == "broadcast_to":
        return _unstretched(op, axes)
    return divided.under(axes, shape_of(op.inputs[0]))


def _unstretched(op: ApplyOp, axes: Axes) -> Axes:
    shape = shape_of(op.inputs[0])
    ahead, own = axes[: len(axes) - len(shape)], axes[len(axes) - len(shape) :]
    left_out = _flat([*ahead, *(axis for axis, n in zip(own, shape, strict=True) if n == 1)])
    if any(axis != "b" for axis, _ in left_out):
        raise _Apart
    return [axis if n > 1 else [] for axis, n in zip(own, shape, strict=True)]


def _behind(divided: _Divided, op: ApplyOp, axes: Axes) -> Axes:
    """Return the axes of an operator's result, given those of what it moves elements of."""
    if op.operator.data == "transpose":
        return [axes[k] for k in transposed_order(op)]
    return axes if is_elementwise(op) else divided.under(axes, shape_of(op.outputs[0]))


def _moves_above(value: SSAValue) -> list[ApplyOp]:
    """Return the operators that move elements of a factor, up to the last transpose or stretched tensor."""
    found: list[ApplyOp] = []
    while isinstance(op := value.owner, ApplyOp) and not is_constant(value):
        if op.operator.data not in _MOVED and kind_of(op) is not Kind.VIEW:
            break
        found.append(op)
        value = op.inputs[0]
    return _up_to(found, _MOVED)


def _moves_behind(value: SSAValue) -> list[ApplyOp]:
    """Return the operators behind a product that move its elements, and elementwise ones between, to a transpose.

    None where elementwise operators read that, which read what it is of by index, too.
    """
    found: list[ApplyOp] = []
    while used_once(value):
        (op,) = users(value)
        if not isinstance(op, ApplyOp):
            break
        moves = op.operator.data == "transpose" or is_view(op)
        if not moves and not (is_elementwise(op) and shape_of(op.outputs[0]) == shape_of(value)):
            break
        found.append(op)
        value = op.outputs[0]
    found = _up_to(found, ("transpose",))
    return [] if found and all(map(is_elementwise, readers(found[-1].outputs[0]))) else found


_MOVED = ("transpose", "broadcast_to")
"""Operators that a product reads through."""


def _up_to(found: list[ApplyOp], names: Sequence[str]) -> list[ApplyOp]:
    last = max((n for n, op in enumerate(found) if op.operator.data in names), default=-1)
    return found[: last + 1]
