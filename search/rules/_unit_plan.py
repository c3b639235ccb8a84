"""Plans of products on a CPU's matrix unit: axes, instructions cut to what divides them, and sizes of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerType

from ...dialects.attributes import Axis
from ...dialects.intrinsics import Intrinsic, intrinsics
from ...dialects.loop import BlockOp, LoadOp, buffer_shape, element_of_buffer
from ...dialects.target import Target
from ...passes.analysis.access import writers
from ..estimates.unit_model import COPY_CYCLES, DOT_LATENCY, UnitModel
from ..sketch.hole import Hole
from ..structure.anchor import Anchor, Operand
from ..structure.kinds import contraction_of
from ._best_defaults import with_best_defaults

MOST_UNITS = 2
"""Intrinsics that get a sketch each, of those that fit an anchor, by products in a cycle. A choice: a search divides
its trials among sketches, and the third best unit of current CPUs does a quarter of the best one's work."""
LINES = (1, 2, 4, 7)
"""Lines of pixels of a register tile, each with as many instructions along it."""
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
"""Instructions of a register tile along rows; images of common networks are 7 times a power of 2 wide."""
LARGE_ROWS = 5
"""Instructions along rows from which on a register tile is large: with four columns of vectors it loads 9 for 20 of
them, with one row 5 for 4. Bytes of 197 x 3072 by 768 (AVX512-VNNI, one thread of an Emerald Rapids) took 20.3 ms in
tiles of one row, and take 2.8 in 33 tiles of 6."""
COLUMNS = (1, 2, 3, 4)
"""Instructions of a register tile along columns."""
TILES = (1, 2, 4, 8, 16, 32)
"""Register tiles of a task along each side."""
MOST_ODD = 5
"""Instructions along a side that is padded, of which there may be an odd number. A choice: one more of seven is a
seventh."""
STEPS = (1, 2, 4)
"""Steps of k that are written out."""


@dataclass(frozen=True)
class UnitProduct:
    """An anchor as a product of matrices: its operands, and the axes that are rows, columns and k.

    `line` is an axis whose points have rows of their own, as lines of pixels have; it and rows may be none. `k` are two
    axes where what is read along them is one stretch, as channels and pixels of a window are.
    """

    a: Operand
    b: Operand
    line: Axis | None
    row: Axis | None
    column: Axis
    k: tuple[Axis, ...]

    def renewed(self, anchor: Anchor) -> UnitProduct:
        """The same of an anchor whose axes have been padded, and whose operands are laid out for it."""
        axes = {x.name: x for x in (*anchor.spatial, *anchor.reduce)}
        a, b = sorted(anchor.operands, key=lambda o: self.column.name in o.axes)
        line, row = (axes[x.name] if x is not None else None for x in (self.line, self.row))
        return UnitProduct(a, b, line, row, axes[self.column.name], tuple(axes[name] for name in self.k_names))

    @property
    def k_names(self) -> tuple[str, ...]:
        """The names of the axes that are k, the innermost last."""
        return tuple(x.name for x in self.k)

    @property
    def reads_plain(self) -> bool:
        """True where each index of `a` is an iterator: a copy of what is read is no larger than it."""
        return self.a.reads_plain


class Part(NamedTuple):
    """Elements of an axis in an instruction, and the extent that the axis is padded to."""

    size: int
    extent: int

    @property
    def number(self) -> int:
        """Instructions along the axis."""
        return self.extent // self.size


@dataclass(frozen=True)
class Fit:
    """An intrinsic of a target that multiplies an anchor, with the parts of its rows, columns and k."""

    target: Target
    intrinsic: Intrinsic
    row: Part
    column: Part
    k: Part
    k_axes: int = 1

    def padded(self, parts: UnitProduct) -> dict[str, int]:
        """The extents that axes are to be padded to, by name."""
        *around, inner = parts.k
        k = self.k.extent // prod(x.extent for x in around)
        axes = ((parts.row, self.row.extent), (parts.column, self.column.extent), (inner, k))
        return {x.name: extent for x, extent in axes if x is not None and extent > x.extent}

    @property
    def group(self) -> int:
        """Neighbours of k that lie side by side in b."""
        return self.intrinsic.held_extents("b")[-1]

    def copies_a(self, parts: UnitProduct) -> bool:
        """True where rows or k are padded, in a copy of what is read; channels of a window are where it is padded."""
        padded = self.padded(parts)
        return parts.reads_plain and any(x is not None and x.name in padded for x in (parts.row, parts.k[-1]))

    @property
    def cycles(self) -> float:
        """Cycles of the instructions of one point of the other axes.

        Matrices in registers of their own are loaded in pairs. Of dot products in lanes those of the largest register
        tile that divides their number share what they load, and wait for each other's sums.
        """
        number = self.row.number * self.column.number * self.k.number
        if self.intrinsic.tiles:
            loads = (self.intrinsic.rows("a") + self.intrinsic.rows("b")) / self.target.loads_per_cycle
            return number * (self.intrinsic.cycles + loads)
        rows, columns = _dividing(ROWS, self.row.number)[-1], _dividing(COLUMNS, self.column.number)[-1]
        loads = (1 / rows + 1 / columns) / self.target.loads_per_cycle
        return number * max(self.intrinsic.cycles / self.target.fma_per_cycle, loads, DOT_LATENCY / (rows * columns))


@dataclass(frozen=True)
class UnitPlan:
    """A product in tiles, whose `holes` are lines and instructions along rows of a register tile, register tiles of a
    task along rows, the same two along columns, and steps that are written out.

    `outer` are the other spatial axes, `reduce` the other reduce axes.
    """

    anchor: Anchor
    intrinsic: Intrinsic
    parts: UnitProduct
    outer: tuple[str, ...]
    reduce: tuple[str, ...]
    holes: tuple[Hole, ...]
    model: UnitModel

    @property
    def block(self) -> str:
        return self.anchor.block

    @property
    def has_rows(self) -> bool:
        """True where an instruction has a loop over rows."""
        return len(self.intrinsic.c.held) > 1


def best_fits(anchor: Anchor, target: Target) -> list[Fit]:
    """The intrinsics that multiply an anchor in the fewest cycles, each as it fits best."""
    found = [fit for x in intrinsics(target) if (fit := _best_fit(anchor, x, target)) is not None]
    return sorted(found, key=lambda fit: (fit.cycles, fit.intrinsic.name))[:MOST_UNITS]


def unit_product(anchor: Anchor, intrinsic: Intrinsic, k_axes: int = 1) -> UnitProduct | None:
    """The anchor as a product of an intrinsic's types, with so many axes as k; None where it is none."""
    found = contraction_of(anchor)
    if found is None or anchor.element != intrinsic.c.type or found.columns[-1:] != anchor.spatial[-1:]:
        return None
    a, b, rows, (*_, column) = found.a, found.b, found.rows, found.columns
    if [element_of_buffer(o.buffer) for o in (a, b)] != [intrinsic.a.type, intrinsic.b.type]:
        return None
    inner = [x for x in anchor.reduce if x.name in b.axes and a.steps_along(x.name)]
    if not inner or (len(intrinsic.c.held) > 1 and not rows):
        return None
    line = rows[-2] if len(rows) > 1 and intrinsic.tiles else None
    k = inner[-1:]
    if k_axes > 1:
        k = [x for x in anchor.reduce if x is k[0] or (x.name in b.axes and _goes_on(a, x.name, k[0]))]
    if len(k) != k_axes or anchor.reduce[-len(k) :] != tuple(k):
        return None
    return UnitProduct(a, b, line, rows[-1] if rows else None, column, tuple(k))


def _goes_on(operand: Operand, name: str, inner: Axis) -> bool:
    """True where a step along an axis is one behind the last element along another, the innermost one."""
    if len(operand.indices) < 2 or operand.indices[-1].as_axis() != inner.name:
        return False
    *rest, before, _ = operand.indices
    steps = before.coefficient(name) == 1 and before.is_linear_in(name) and all(name not in e.axes() for e in rest)
    return steps and buffer_shape(operand.buffer)[-1] == inner.extent


def _best_fit(anchor: Anchor, intrinsic: Intrinsic, target: Target) -> Fit | None:
    """The sizes of instructions, and the padding, that take the fewest cycles, copies included."""
    found = [
        (_cycles(fit, anchor, parts), fit)
        for k_axes in (1, 2)
        if (parts := unit_product(anchor, intrinsic, k_axes)) is not None
        for fit in _fits(intrinsic, parts, anchor, target)
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _fits(intrinsic: Intrinsic, parts: UnitProduct, anchor: Anchor, target: Target) -> Iterator[Fit]:
    group = intrinsic.held_extents("b")[-1]
    row = parts.row.extent if parts.row else 1
    *around, inner = parts.k
    k, plain = inner.extent, parts.reads_plain
    if channel_pad(anchor, parts) is not None:
        k = -(-k // group) * group
    if around and (k % group or k & (k - 1)):
        return  # lines whose pixels are no whole vectors lie apart in memory: the padding block writes vectors
    k *= prod(x.extent for x in around)
    sides = (
        _parts(row, intrinsic.m, 1, intrinsic.tiles, plain or window_pad(anchor, parts) is not None),
        _parts(parts.column.extent, intrinsic.n, 1, intrinsic.tiles, True),
        _parts(k, intrinsic.k, group, intrinsic.tiles, plain and not around),
    )
    for sizes in combinations(*sides):
        cut = intrinsic.cut_to(*(part.size for part in sizes)) if intrinsic.tiles else intrinsic
        if cut is not None:
            yield Fit(target, cut, *sizes, len(parts.k))


def window_pad(anchor: Anchor, parts: UnitProduct) -> BlockOp | None:
    """The block that pads what a window reads, and may pad its lines further; None where none does."""
    found = [block for block in writers(parts.a.buffer) if block.block_name in anchor.pads]
    return found[0] if not parts.reads_plain and len(found) == 1 else None


def channel_pad(anchor: Anchor, parts: UnitProduct) -> BlockOp | None:
    """The same where it may pad the channels as well: with zeros; of integers with any number, as weights are zero."""
    block = window_pad(anchor, parts)
    if block is None or parts.a.indices[-1].as_axis() != parts.k[-1].name:
        return None
    is_zero = isinstance(block.yielded[0].owner, LoadOp)
    return block if is_zero or isinstance(parts.a.load.result.type, IntegerType) else None


def line_read(anchor: Anchor, parts: UnitProduct, extent: int) -> tuple[int, int]:
    """The dimension of `a` that rows go along, and how long it must be for so many of them and the window."""
    row, indices = parts.row, parts.a.indices
    assert row is not None
    (dimension,) = (d for d, e in enumerate(indices) if row.name in e.axes())
    extents = {x.name: x.extent for x in (*anchor.spatial, *anchor.reduce)} | {row.name: extent}
    return dimension, indices[dimension].bounds({name: (0, n - 1) for name, n in extents.items()})[1] + 1


def _parts(extent: int, most: int, group: int, may_be_cut: bool, may_be_padded: bool) -> list[Part]:
    """An axis in the largest parts that divide it, and in the fewest parts, padded, where those are fewer.

    Of several parts an even number, so that register tiles may have two. Parts of one element are padded to whole
    register tiles where only small ones divide their number.
    """
    sizes = range(group, most + 1, group) if may_be_cut else (most,)
    exact = [Part(size, extent) for size in sizes if extent % size == 0][-1:]
    if most == 1:
        return [*exact, *(Part(1, padded) for padded in _in_whole_tiles(extent) if may_be_padded)]
    number = -(-extent // most)
    number += number % 2 if number > MOST_ODD else 0
    size = -(-extent // (number * group)) * group if may_be_cut else most
    padded = Part(size, number * size)
    if may_be_padded and all(padded.number < part.number for part in exact):
        return [*exact, padded]
    return exact


def _in_whole_tiles(extent: int) -> list[int]:
    """The least extent that a register tile of at least LARGE_ROWS divides, where none divides the given one."""
    large = [rows for rows in ROWS if rows >= LARGE_ROWS]
    if extent < LARGE_ROWS or any(extent % rows == 0 for rows in large):
        return []
    return [min(-(-extent // rows) * rows for rows in large)]


def _cycles(fit: Fit, anchor: Anchor, parts: UnitProduct) -> float:
    """Cycles of all instructions, and of laying out what is padded."""
    others = [x for x in (*anchor.spatial, *anchor.reduce) if x not in (parts.row, parts.column, *parts.k)]
    copied = COPY_CYCLES * prod(buffer_shape(parts.a.buffer)) if fit.copies_a(parts) else 0
    return fit.cycles * prod(x.extent for x in others) + copied


def plan_product(anchor: Anchor, fit: Fit, parts: UnitProduct, is_ahead: bool, target: Target) -> UnitPlan:
    """Choose the axes of the tiles, and their sizes without a search by the model.

    The axes are padded already.
    """
    block, intrinsic = anchor.block, fit.intrinsic
    lines = parts.line.extent if parts.line else 1
    choices = {
        "unit_lines": _dividing(LINES, lines),
        "unit_rows": _dividing(ROWS, fit.row.number),
        "row_tiles": _dividing(TILES, fit.row.number),
        "unit_columns": _dividing(COLUMNS, fit.column.number),
        "column_tiles": _dividing(TILES, fit.column.number),
        "unit_steps": _dividing(STEPS, fit.k.number),
    }
    holes = [Hole.near(f"{block}_{name}", numbers, 1) for name, numbers in choices.items()]
    outer = tuple(x for x in anchor.spatial if x not in (parts.line, parts.row, parts.column))
    reduce = tuple(x for x in anchor.reduce if x not in parts.k)
    extents = {x.name: x.extent for x in (*anchor.spatial, *anchor.reduce)}
    model = UnitModel(
        target,
        intrinsic,
        outer=prod(x.extent for x in outer),
        lines=lines,
        rows=fit.row.number,
        columns=fit.column.number,
        depth=fit.k.number * prod(x.extent for x in reduce),
        packed=0 if is_ahead else prod(extents[n] for n in parts.b.axes),
        a_elements=prod(buffer_shape(parts.a.buffer)),
        names=tuple(hole.name for hole in holes),
    )
    outer_names, reduce_names = tuple(x.name for x in outer), tuple(x.name for x in reduce)
    found = with_best_defaults(holes, model.seconds, model.limit_registers, model.limit_extents)
    return UnitPlan(anchor, intrinsic, parts, outer_names, reduce_names, found, model)


def _dividing(choices: tuple[int, ...], extent: int) -> tuple[int, ...]:
    return tuple(n for n in choices if extent % n == 0)
