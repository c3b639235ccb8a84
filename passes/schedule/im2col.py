"""Lay windows out as a matrix, of which and the kernel a convolution is the product: im2col."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr, axis
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, buffer_type, element_of_buffer
from ...dialects.te import YieldOp
from ..analysis.nest import block_names, buffer_names, fresh_buffer_name, function_of, functions, nest_around
from ..analysis.views import VIEW
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._inlining import needed_conditions
from ._staging import copy_nest, legal_steps
from ._sums_of_products import Made, put_in_place, replay_in_place, require_sum_of_products
from ._tap_products import TERM, linear_index


@dataclass(frozen=True)
class Plan:
    """The block, and what its loads read, where, under which conditions."""

    block: BlockOp
    loads: tuple[tuple[SSAValue, tuple[IndexExpr, ...], tuple[IndexExpr, ...]], ...]


@dataclass(frozen=True)
class Im2col(Primitive[Plan]):
    """`for f, x, c, r { block y[f, x] += data[c, 2 * x + r] * kernel[f, c, r] }` ->

    `data_matrix[(c, r), x] = data[c, 2 * x + r]`, `kernel_matrix[f, (c, r)]`, and
    `y[f, x] += data_matrix[k, x] * kernel_matrix[f, k]` over `k`, all places that are added up

    A row of the matrix has what all windows have at one place, or where channels of the data lie side by side, what a
    window has. Terms are added up in the same order. What is loaded under a condition is zero elsewhere in a matrix.

    Requires: a sum of products of two loads at sums of iterators, in fp32 or fp64, without a predicate, in loops of its
    own that are its iterators; two iterators and more that are added up.
    """

    name = "lw-im2col"
    block: str

    def check(self, module: ModuleOp) -> Plan:
        block = require_sum_of_products(self, module, self.block, masked=True)
        if sum(a.reduce for a in block.axes) < 2:
            raise self.error(f"block '{self.block}' must add up over two iterators and more", at=block)
        loads = []
        for load in block.loads:
            indices = [linear_index(e) for e in load.indices.data]
            if None in indices:
                raise self.error(f"block '{self.block}' must read at sums of its iterators", at=load)
            loads.append((load.buffer, tuple(e for e in indices if e is not None), tuple(load.conditions)))
        return Plan(block, tuple(loads))

    def rewrite(self, plan: Plan) -> None:
        block, func = plan.block, function_of(plan.block)
        made = _Matrices(tuple(block.axes), buffer_names(func) | block_names(func))
        nests = made.write(block.block_name, plan.loads, block.outputs[0], block.write_indices[0])
        put_in_place(block, (nests, made.allocs))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)

        def made_of(axes: tuple[Axis, ...], read: Sequence[SSAValue], out: SSAValue) -> Made:
            found = [[linear_index(e) for e in access.indices] for access in (*stage.loads, stage.writes[0])]
            *places, written = [tuple(e for e in indices if e is not None) for indices in found]
            made = _Matrices(axes, set(nest.buffers) | nest.stage_names)
            loads = [(value, indices, ()) for value, indices in zip(read, places, strict=True)]
            return made.write(self.block, loads, out, written), made.allocs

        replay_in_place(nest, stage, made_of)

    def describe(self) -> str:
        return f"Lay the windows of {self.block} out as a matrix."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Im2col, ...]:
        steps = [cls(b.block_name) for func in functions(module_op) for b in blocks_in(func)]
        return legal_steps(steps, module_op)


@dataclass
class _Matrices:
    """Writes the nests of a product of matrices with `axes`; `taken` are names in use."""

    axes: tuple[Axis, ...]
    taken: set[str]
    allocs: list[AllocOp] = field(default_factory=list)

    @property
    def _term(self) -> str:
        """The iterator of all that is added up, which no other one may be called."""
        name, spatial = TERM, {a.name for a in self.axes if not a.reduce}
        while name in spatial:
            name += "_"
        return name

    @property
    def _terms(self) -> dict[str, IndexExpr]:
        """The iterators that are added up, by their place among all terms."""
        rest, found = axis(self._term), dict[str, IndexExpr]()
        for a in reversed([a for a in self.axes if a.reduce]):
            found[a.name] = rest % a.extent
            rest = rest // a.extent
        return found

    def write(
        self,
        label: str,
        loads: Sequence[tuple[SSAValue, Sequence[IndexExpr], Sequence[IndexExpr]]],
        out: SSAValue,
        written: Sequence[IndexExpr],
    ) -> list[Operation]:
        """The nests in order, the last one called `label`, which writes the results."""
        spatial, terms = [a for a in self.axes if not a.reduce], prod(a.extent for a in self.axes if a.reduce)
        nests, factors = list[Operation](), list[LoadOp]()
        for load in loads:
            name = "data_matrix" if any(map(self._slides, load[1])) else "kernel_matrix"
            nest, place = self._matrix(name, load, spatial, terms)
            nests.append(nest)
            factors.append(LoadOp(*place))
        value = arith.MulfOp(factors[0].result, factors[1].result)
        body = Region(Block([*factors, value, YieldOp.create(operands=[value.result])]))
        iterators = [*spatial, Axis(self._term, terms, True)]
        block = BlockOp(label, iterators, [axis(a.name) for a in iterators], [out], [tuple(written)], body, "add")
        return [*nests, nest_around(block, [(a.name, a.extent) for a in iterators])]

    def _matrix(
        self,
        wanted: str,
        load: tuple[SSAValue, Sequence[IndexExpr], Sequence[IndexExpr]],
        spatial: Sequence[Axis],
        terms: int,
    ) -> tuple[Operation, tuple[SSAValue, list[IndexExpr]]]:
        """The matrix of a load, and the place of a product's factor in it."""
        buffer, indices, where = load
        used = {name for e in indices for name in e.axes()}
        kept = [a for a in spatial if a.name in used]
        by_terms = not any(a.name in indices[-1].axes() for a in kept)
        sliding = {name for e in indices if self._slides(e) for name in e.axes()}
        first = next((n for n, a in enumerate(kept) if a.name in sliding), len(kept) - 1)
        place = len(kept) if by_terms else first
        order = [*kept[:place], Axis(self._term, terms), *kept[place:]]
        ranges = {a.name: (0, a.extent - 1) for a in order}
        places = [e.substitute(self._terms).simplify(ranges) for e in indices]
        conditions = needed_conditions([e.substitute(self._terms).simplify(ranges) for e in where], ranges)
        label = fresh_buffer_name(wanted, self.taken)
        self.taken.add(label)
        alloc = AllocOp(label, buffer_type(element_of_buffer(buffer), [a.extent for a in order], "global"))
        self.allocs.append(alloc)
        target = [axis(a.name) for a in order]
        return copy_nest(label, order, (buffer, places, conditions), (alloc.buffer, target), VIEW), (
            alloc.buffer,
            target,
        )

    def _slides(self, index: IndexExpr) -> bool:
        """True for an index that results and what is added up have in common."""
        reduced = {a.name: a.reduce for a in self.axes}
        return len({reduced[name] for name in index.axes()}) == 2
