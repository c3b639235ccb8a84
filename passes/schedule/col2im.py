"""Compute a sum over taps as one product over channels, and add up its results where they overlap: col2im."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp, blocks_in
from ..analysis.nest import block_names, buffer_names, function_of, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import legal_steps
from ._sums_of_products import Made, put_in_place, replay_in_place, require_sum_of_products
from ._tap_products import Products, TapSum, find_tap_sum, linear_index

MOST_TAPS = 64
"""Places that are added up one after the other, written out. A choice: those of windows of 8x8."""


@dataclass(frozen=True)
class Plan:
    """The block, and the sum that it is."""

    block: BlockOp
    sums: TapSum


@dataclass(frozen=True)
class Col2im(Primitive[Plan]):
    """`for f, p, x, c, r { block y[f, p, x] += data[c, x + r] * kernel[c, f, p - 2 * r + 2] }` ->

    `kernel_matrix[c, m]`, whose rows are the places of the kernel, `data_matrix[c, p]`,
    `tap_products[m, p] += kernel_matrix[c, m] * data_matrix[c, p]` over `c`, and
    `y[f, p, x] = tap_products[...] + tap_products[...] + ...`, a load for each `r`

    Each place of the kernel is multiplied with each place of the data once. What the sum loads under a condition, as
    where a transposed convolution reads beyond its kernel, is no product then, and left out where results are added up.
    Both matrices are views; one that lies as it is needed is none of its own. Places of the data are numbered up to a
    `multiple`, where rows of vectors are to begin. `by_rows` the kernel's terms of a row lie side by side,
    `kernel_matrix[m, c]`, where channels of the data do not. Terms are added up in another order, over `c` first.

    Requires: a sum of products of two loads at sums of iterators, in fp32 or fp64, without a predicate, in loops of its
    own that are its iterators; one iterator that is added up which both loads have, each as all of a dimension, and up
    to 64 places of the others; no iterator of the results that both have.
    """

    name = "lw-col2im"
    block: str
    multiple: int = 1
    by_rows: bool = False

    def check(self, module: ModuleOp) -> Plan:
        block = require_sum_of_products(self, module, self.block, masked=True)
        loads = [(load.buffer, load.indices.data, load.conditions) for load in block.loads]
        sums = find_tap_sum(tuple(block.axes), loads, self.multiple, self.by_rows)
        if sums is None or any(linear_index(e) is None for e in block.write_indices[0]):
            rule = f"block '{self.block}' must add up over one iterator that is a dimension of both loads"
            raise self.error(f"{rule}, which have none of the results in common", at=block)
        if self.multiple < 1:
            raise self.error(f"multiple must be at least 1, got {self.multiple}", at=block)
        count = len(list(sums.added))
        if count > MOST_TAPS:
            raise self.error(f"block '{self.block}' must add up {MOST_TAPS} places at most, it has {count}", at=block)
        return Plan(block, sums)

    def rewrite(self, plan: Plan) -> None:
        block, func = plan.block, function_of(plan.block)
        made = Products(plan.sums, buffer_names(func) | block_names(func))
        put_in_place(block, (made.write(block.block_name, block.outputs[0], block.write_indices[0]), made.allocs))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)

        def made_of(axes: tuple[Axis, ...], read: Sequence[SSAValue], out: SSAValue) -> Made:
            loads = [(value, load.indices, ()) for value, load in zip(read, stage.loads, strict=True)]
            sums = find_tap_sum(axes, loads, self.multiple, self.by_rows)
            written = [linear_index(e) for e in stage.writes[0].indices]
            assert sums is not None
            made = Products(sums, set(nest.buffers) | nest.stage_names)
            return made.write(self.block, out, [e for e in written if e is not None]), made.allocs

        replay_in_place(nest, stage, made_of)

    def describe(self) -> str:
        return f"Compute {self.block} as a product over channels, and add up its taps."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Col2im, ...]:
        steps = [cls(b.block_name) for func in functions(module_op) for b in blocks_in(func)]
        return legal_steps(steps, module_op)
