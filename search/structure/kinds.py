"""The kind of computation that a block is, and the roles of a reduction's axes, from its indices alone.

Roles are those that MLIR's linalg infers of contractions and convolutions (`inferContractionDims`,
`inferConvolutionDims`). Rules ask here, and then for what they need beside it: types, extents, what is next to what.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from xdsl.dialects.builtin import ModuleOp

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp, blocks_in
from ...passes.analysis.slides import Slide, slides_of
from ...passes.analysis.summed_product import summed_product
from .anchor import Anchor, Operand, find_anchor, reads_by_data


class Kind(Enum):
    """The kind of computation of a block."""

    PRODUCT = "product"
    """Of matrices, in batches or groups, or several for the same rows: a layer of one tap, strided or not, too."""
    CONVOLUTION = "convolution"
    """Windows that slide over an operand, weighted by another; depthwise where both move along channels."""
    TRANSPOSED = "transposed convolution"
    """One with a stride, phase by phase: each phase of the results has taps of its own."""
    POOL = "pool"
    """Windows that slide over an operand, reduced alone."""
    REDUCTION = "reduction"
    """Any other."""
    GATHER = "gather"
    """Elements from where data say."""
    PERMUTATION = "permutation"
    """Elements in another order, and nothing else."""
    MAP = "map"
    """Element by element, padding and views included."""


@dataclass(frozen=True)
class Contraction:
    """A reduction of two operands over `terms`, with the axes of its results by the operands that move along them.

    Those of `rows` move `a` alone, those of `columns` `b`, to which the last such axis belongs, and those of `batch`
    both: batches, groups, channels of a depthwise convolution.
    """

    a: Operand
    b: Operand
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    terms: tuple[Axis, ...]

    def side_of(self, axis: Axis) -> tuple[Axis, ...]:
        """The rows or columns that an axis of the results is among; none where both operands move along it, or none."""
        return next((side for side in (self.rows, self.columns) if axis in side), ())

    @property
    def slides(self) -> tuple[Slide, ...]:
        """The dimensions that windows move along, of both operands."""
        return (*self.a.slides, *self.b.slides)

    @property
    def reads_plain(self) -> bool:
        """True where both operands are read at axes as they are."""
        return self.a.reads_plain and self.b.reads_plain

    @property
    def kind(self) -> Kind:
        """Product, convolution, or transposed convolution."""
        if any(slide.is_of_phases for slide in self.slides):
            return Kind.TRANSPOSED
        return Kind.CONVOLUTION if self.slides else Kind.PRODUCT


def contraction_of(anchor: Anchor) -> Contraction | None:
    """The anchor by the roles of its axes; None where it reads another number of operands than two."""
    if len(anchor.operands) != 2:
        return None
    first, second = anchor.operands
    alone = [a for a in anchor.spatial if (a.name in first.axes) != (a.name in second.axes)]
    a, b = (second, first) if alone and alone[-1].name in first.axes else (first, second)
    return Contraction(
        a,
        b,
        tuple(x for x in anchor.spatial if x.name in a.axes and x.name in b.axes),
        tuple(x for x in alone if x.name in a.axes),
        tuple(x for x in alone if x.name in b.axes),
        anchor.reduce,
    )


def kind_of(module: ModuleOp, block: BlockOp) -> Kind:
    """The kind of computation that a block of a module is."""
    if reads_by_data(block):
        return Kind.GATHER
    if not block.is_reduction:
        return Kind.PERMUTATION if _permutes(block) else Kind.MAP
    anchor = find_anchor(module, block.block_name) if summed_product(block) is not None else None
    found = contraction_of(anchor) if anchor is not None else None
    if found is not None:
        return found.kind
    slides = any(slides_of(load.indices.data, block.axes) for load in block.loads)
    return Kind.POOL if slides else Kind.REDUCTION


def kind_of_program(module: ModuleOp) -> Kind:
    """The kind of the block of a loop-level module that has most to do: a reduction where there is any."""
    blocks = list(blocks_in(module))
    return kind_of(module, max(blocks, key=lambda b: (b.is_reduction, prod(a.extent for a in b.axes))))


def _permutes(block: BlockOp) -> bool:
    """True for a block that moves each element of one buffer elsewhere, along other axes."""
    if [op.name for op in block.body.block.ops] != ["lw_loop.load", "lw_te.yield"] or len(block.outputs) != 1:
        return False
    sized = {a.name for a in block.axes if a.extent > 1}
    (load,) = block.loads
    read, written = (
        [name for e in indices if (name := e.as_axis()) in sized]
        for indices in (load.indices.data, block.write_indices[0])
    )
    return not load.conditions and read != written and sorted(read) == sorted(written) == sorted(sized)
