"""Compute a sum weighted by a softmax in one pass over blocks of its terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis, IndicesAttr
from ...dialects.element import is_float
from ...dialects.index import IndexExpr, Ranges, axis
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, buffer_shape, buffer_type, element_of_buffer
from ...dialects.te import PredicateOp, YieldOp
from ..analysis.access import is_argument, writers
from ..analysis.masked import KEPT, kept_where
from ..analysis.nest import (
    block_names,
    buffer_name,
    buffer_names,
    find_block,
    fresh_buffer_name,
    fresh_name,
    function_of,
    functions,
    nest_around,
)
from ..analysis.regions import interval_of
from ..analysis.running_softmax import approximate, guarded, join_of_parts, number
from ..analysis.weighted_sum import NoWeightedSum, WeightedSum, match_weighted_sum
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._inlining import TRAPPING, copy_body
from ._moving import drop_buffer, take_out
from ._online_sizes import BUFFERS, replay_blocks, replay_division, stages_of
from ._staging import insert_alloc, legal_steps, top_level

TRIED = (0, 16)
"""The terms of a block that are offered to searches for legal steps."""


@dataclass(frozen=True)
class Plan:
    """The blocks that are replaced, the terms of a block (0: all), and the names of new blocks and buffers.

    `names` are of the block of partial sums and of that of running ones; `buffers` of what the first of these writes
    and the three that the second does. Exponentials are `rounded` for the product as their quotients were. With
    `padded` the last block is as long as the others.
    """

    found: WeightedSum
    terms: int
    rounded: bool
    padded: bool
    names: tuple[str, str]
    buffers: tuple[str, str, str, str]


@dataclass(frozen=True)
class OnlineSoftmax(Primitive[Plan]):
    """`m[i] = max(x[i, k]); e[i, k] = exp(x[i, k] - m[i]); s[i] = sum(e[i, k]); w[i, k] = e[i, k] / s[i];
    c[i, j] = sum(w[i, k] * v[k, j])`

    -> with `terms=0`: `c_part[i, j] = sum(e[i, k] * v[k, j]); c[i, j] = c_part[i, j] / s[i]`.

    -> else, for blocks k0 of `terms` values k1 of k: `m[k0, i]`, `e[k0, i, k1]` relative to it, `s[k0, i]` and
    `c_part[k0, i, j] = sum(e[k0, i, k1] * v[k, j])` over the k of a block, then a reduction over k0 that carries the
    running weighted sum, sum and maximum, and `c[i, j] = c_run[i, j] / c_sum[i, j]` (Milakov and Gimelshein 2018, Dao
    et al. 2022).

    The reduction joins (c, s, m) and (c', s', m') to (a c + a' c', a s + a' s', M) with M = max(m, m') and
    a = exp(m - M), which is associative and starts from (0, 0, -inf): all else may be computed at its loop k0. Rows
    that are -inf all over give NaN, as they do without the step. Quotients that were rounded to a narrower type between
    the softmax and the product no longer are; with `rounded` of 1 the exponentials are in their place, for the product
    alone, as instructions that multiply the narrower type want them, and devices may approximate them (`afn`).

    Where `terms` does not divide those there are, the last block is run under a predicate. With `padded` of 1 it is as
    long as the others: terms beyond the end are -inf, their exponentials 0, and so are the values that they weigh.

    Requires: `block` a sum of products with a factor that is a softmax over the reduce axis, which it alone reads, in
    five blocks that nothing was done to; exponentials of the type that the sum has; with `rounded`, quotients that are
    rounded.
    """

    name = "lw-online-softmax"
    block: str
    terms: int = 0
    rounded: int = 0
    padded: int = 0

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        if self.terms < 0:
            fix = OnlineSoftmax(self.block)
            raise self.error(f"terms must be at least 1, or 0 for all in one block, got {self.terms}", fix, block)
        try:
            found = match_weighted_sum(block)
        except NoWeightedSum as refused:
            rule = f"'{self.block}' must be a sum weighted by a softmax, each in blocks of their own: {refused}"
            raise self.error(rule, at=refused.at) from None
        kinds = {
            str(element_of_buffer(b.outputs[0])) for b in (found.largest, found.exponential, found.denominator, block)
        }
        if len(kinds) > 1 or not is_float(element_of_buffer(block.outputs[0])):
            rule = f"exponentials and sums must be of one type of floats, they are {', '.join(sorted(kinds))}"
            raise self.error(rule, at=found.exponential)
        if self.rounded not in (0, 1):
            raise self.error(f"rounded must be 0 or 1, got {self.rounded}", at=block)
        if self.rounded and _rounding(found.quotient) is None:
            raise self.error(f"'{found.quotient.block_name}' does not round its quotients", at=found.quotient)
        if self.padded not in (0, 1) or (self.padded and not self.terms):
            raise self.error(f"padded must be 0, or 1 for blocks of terms, got {self.padded}", at=block)
        trapping = [b for b in (found.largest, block) if any(op.name in TRAPPING for op in b.body.block.ops)]
        if self.padded and trapping:
            raise self.error(f"'{trapping[0].block_name}' divides integers, which may be by zeros", at=trapping[0])
        func = function_of(block)
        names, buffers = list[str](), list[str]()
        for wanted in (f"{self.block}_part", f"{self.block}_run"):
            names.append(fresh_name(wanted, {*block_names(func), *names}))
        for part in BUFFERS:
            wanted = f"{buffer_name(block.outputs[0])}_{part}"
            buffers.append(fresh_buffer_name(wanted, {*buffer_names(func), *buffers}))
        partial, run, total, largest = buffers
        made = (partial, run, total, largest)
        return Plan(found, self.terms, bool(self.rounded), bool(self.padded), (names[0], names[1]), made)

    def rewrite(self, plan: Plan) -> None:
        if plan.terms:
            _Blocked(plan).run()
        else:
            _divide_last(plan)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stages = stages_of(nest, nest.stage(self.block))
        if self.terms:
            replay_blocks(nest, stages, sizes.of(self.terms), bool(self.rounded), bool(self.padded))
        else:
            replay_division(nest, stages, bool(self.rounded))

    def describe(self) -> str:
        amount = f"{self.terms} terms at a time" if self.terms else "all terms at a time"
        return f"Compute {self.block} and the softmax in it in one pass, {amount}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[OnlineSoftmax, ...]:
        blocks = (b.block_name for func in functions(module_op) for b in blocks_in(func) if b.is_reduction)
        return legal_steps((cls(name, terms) for name in blocks for terms in TRIED), module_op)


def _new_buffer(plan: Plan, name: str, shape: Sequence[int]) -> SSAValue:
    func = function_of(plan.found.total)
    alloc = AllocOp(name, buffer_type(element_of_buffer(plan.found.total.outputs[0]), shape))
    insert_alloc(func, alloc)
    return alloc.buffer


def _body(ops: Sequence[Operation], *values: SSAValue) -> Region:
    return Region(Block([*ops, YieldOp.create(operands=list(values))]))


def _quotient(above: LoadOp, below: LoadOp) -> Region:
    divided = arith.DivfOp(above.result, below.result)
    return _body([above, below, divided], divided.result)


def _rounding(quotient: BlockOp) -> arith.TruncFOp | None:
    """Return the operation that rounds quotients to a narrower type; None where they are not rounded."""
    last = quotient.yielded[0].owner
    return last if isinstance(last, arith.TruncFOp) else None


def _rounded(plan: Plan, load: LoadOp) -> Region:
    """Return the body that rounds what is loaded as quotients were."""
    rounding = _rounding(plan.found.quotient)
    assert rounding is not None
    narrow = arith.TruncFOp(load.result, rounding.result.type)
    return _body([load, narrow], narrow.result)


def _approximate(ops: Sequence[Operation]) -> None:
    """Let devices compute exponentials as they do it fastest: what is rounded to 16 bits keeps no more digits."""
    for op in ops:
        if isinstance(op, math.ExpOp):
            approximate(op)


def _new_rounded(plan: Plan, shape: Sequence[int]) -> SSAValue:
    """Return a new buffer for rounded exponentials, called as that of the quotients."""
    old = plan.found.quotient.outputs[0]
    alloc = AllocOp(buffer_name(old), buffer_type(element_of_buffer(old), shape))
    insert_alloc(function_of(plan.found.total), alloc)
    return alloc.buffer


def _plain_block(
    label: str,
    axes: Sequence[Axis],
    output: SSAValue,
    indices: Sequence[IndexExpr],
    body: Region,
    combiner: str = "none",
) -> BlockOp:
    """Return a block whose iterators are the loops that will be around it."""
    return BlockOp(label, axes, [axis(a.name) for a in axes], [output], [indices], body, combiner)


def _replace(plan: Plan, made: Sequence[BlockOp], old: Sequence[BlockOp], dropped: Sequence[SSAValue]) -> None:
    """Put new blocks, each in its loops, before the sum, and take out old ones and the buffers of these."""
    place = top_level(plan.found.total)
    around = place.parent_block()
    assert around is not None
    for block in made:
        around.insert_op_before(nest_around(block, [(a.name, a.extent) for a in block.axes]), place)
    for block in old:
        take_out(block)
        block.erase()
    for buffer in dropped:
        drop_buffer(buffer)


def _in_block(indices: Sequence[IndexExpr], over: Axis, outer: Axis, inner: Axis) -> list[IndexExpr]:
    """Return the place in a buffer that has a dimension for blocks, and for terms those of one."""
    return [axis(outer.name), *(e.substitute({over.name: axis(inner.name)}) for e in indices)]


def _spatial(block: BlockOp) -> list[Axis]:
    return [a for a in block.axes if not a.reduce]


def _divide_last(plan: Plan) -> None:
    """Divide the sum of products instead of its weights."""
    found, total = plan.found, plan.found.total
    output, indices = total.outputs[0], total.write_indices[0]
    partial = _new_buffer(plan, plan.buffers[0], buffer_shape(output))
    exponentials, weights, dropped = found.exponential.outputs[0], found.weights, found.quotient
    rounded: list[BlockOp] = []
    if plan.rounded:
        exponentials, weights = _new_rounded(plan, buffer_shape(exponentials)), [found.weight.result]
        indices_of = found.quotient.write_indices[0]
        body = _rounded(plan, LoadOp(found.exponential.outputs[0], indices_of))
        rounded = [_plain_block(dropped.block_name, dropped.axes, exponentials, indices_of, body)]
    load = LoadOp(exponentials, found.weight.indices.data)
    ranges = {a.name: (0, a.extent - 1) for a in total.axes}
    ops, results = copy_body(total, {}, ranges, values=dict.fromkeys(weights, load.result))
    parts = _plain_block(plan.names[0], total.axes, partial, indices, _body([load, *ops], *results), "add")
    quotient = _quotient(LoadOp(partial, indices), LoadOp(found.denominator.outputs[0], found.row))
    last = _plain_block(total.block_name, _spatial(total), output, indices, quotient)
    _replace(plan, [*rounded, parts, last], [total, dropped], [dropped.outputs[0]])


def _is_whole(load: LoadOp, ranges: Ranges) -> bool:
    """True where a block, as `pad` made it longer, writes all that a load may read in a body over `ranges`."""
    found = [] if is_argument(load.buffer) else writers(load.buffer)
    if len(found) != 1 or found[0].conditions:
        return False
    shape, extents = buffer_shape(load.buffer), {a.name: a.extent for a in found[0].axes}
    written = [extents.get(str(e.as_axis()), 0) for e in found[0].write_indices[0]]
    return written == [*shape] and all(
        e.bounds(ranges)[0] >= 0 and e.bounds(ranges)[1] < n for e, n in zip(load.indices.data, shape, strict=True)
    )


class _Blocked:
    """The rewrite to blocks of terms: nests that replace those of a softmax and of the sum that it weighs.

    What has an axis over the terms gets two, k0 over blocks and k1 over the terms of one; so do buffers, k0 in front.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.found = plan.found
        self.extent = buffer_shape(plan.found.exponential.outputs[0])[plan.found.dimension]
        self.blocks = -(-self.extent // plan.terms)

    def run(self) -> None:
        found, plan = self.found, self.plan
        dropped = [b.outputs[0] for b in found.blocks if b is not found.total]
        largest, exponentials, sums = (self._buffer(b) for b in (found.largest, found.exponential, found.denominator))
        partial = _new_buffer(plan, plan.buffers[0], [self.blocks, *buffer_shape(found.total.outputs[0])])
        weighted, rounded = (found.weights, exponentials, found.weight), list[BlockOp]()
        if plan.rounded:
            narrow = _new_rounded(plan, buffer_shape(exponentials))
            rounded = [self._rounded(exponentials, narrow)]
            weighted = ([found.weight.result], narrow, found.weight)
        old = next(load for load in found.exponential.loads if load.buffer is found.largest.outputs[0])
        added = found.denominator.loads[0]
        made = [
            self._block(found.largest, largest),
            self._block(found.exponential, exponentials, ([old.result], largest, old)),
            self._block(found.denominator, sums, ([added.result], exponentials, added)),
            *rounded,
            self._block(found.total, partial, weighted),
            *self._joined(largest, sums, partial),
        ]
        _replace(plan, made, found.blocks[::-1], dropped)

    def _buffer(self, block: BlockOp) -> SSAValue:
        """Return a new buffer for what a block gives block by block, called as the old one."""
        old, shape = block.outputs[0], list(buffer_shape(block.outputs[0]))
        if block is self.found.exponential:
            shape[self.found.dimension] = self.plan.terms
        return _new_buffer(self.plan, buffer_name(old), [self.blocks, *shape])

    def _block(
        self, block: BlockOp, output: SSAValue, replaced: tuple[list[SSAValue], SSAValue, LoadOp] | None = None
    ) -> BlockOp:
        """Return a block over blocks of terms; `replaced` are values of its body, the buffer they are in, the load."""
        over = self._over(block)
        outer, inner = self._digits(block, over)
        term = axis(outer.name) * self.plan.terms + axis(inner.name)
        axes = [*(a for a in block.axes if a is not over), outer, inner]
        ops, values = list[Operation](), dict[SSAValue, SSAValue]()
        if replaced is not None:
            old, buffer, load = replaced
            ops.append(LoadOp(buffer, _in_block(load.indices.data, over, outer, inner)))
            if block is self.found.exponential:
                ops += guarded(ops[0].results[0], self._element)
            values = dict.fromkeys(old, ops[-1].results[0])
        ranges = {a.name: (0, a.extent - 1) for a in axes}
        inside = [self.extent - 1 - term] if self.plan.padded else []
        copied, (result,) = copy_body(block, {over.name: term}, ranges, inside, values)
        for copy in copied:
            if isinstance(copy, LoadOp) and _is_whole(copy, ranges):
                copy.where = None
        ops += copied
        if block is self.found.exponential and self.plan.rounded:
            _approximate(copied)
        if inside and block in (self.found.largest, self.found.exponential):
            ops += self._chosen(inside, result, 0.0 if block is self.found.exponential else -inf)
            result = ops[-1].results[0]
        label = self.plan.names[0] if block is self.found.total else block.block_name
        indices = _in_block(block.write_indices[0], over, outer, inner)
        made = _plain_block(label, axes, output, indices, _body(ops, result), block.combiner.data)
        self._cut(made, outer, inner)
        return made

    def _rounded(self, exponentials: SSAValue, narrow: SSAValue) -> BlockOp:
        """Return the block that rounds exponentials, one instance for each."""
        quotient = self.found.quotient
        over = self._over(quotient)
        outer, inner = self._digits(quotient, over)
        indices = _in_block(quotient.write_indices[0], over, outer, inner)
        axes = [*(a for a in quotient.axes if a is not over), outer, inner]
        body = _rounded(self.plan, LoadOp(exponentials, indices))
        made = _plain_block(quotient.block_name, axes, narrow, indices, body)
        self._cut(made, outer, inner)
        return made

    def _digits(self, block: BlockOp, over: Axis) -> tuple[Axis, Axis]:
        """Return the axes over blocks and over the terms of one that a block gets in the place of that over terms."""
        names = {a.name for a in block.axes}
        outer = Axis(fresh_name(f"{over.name}0", names), self.blocks)
        return outer, Axis(fresh_name(f"{over.name}1", names), self.plan.terms, over.reduce)

    def _cut(self, made: BlockOp, outer: Axis, inner: Axis) -> None:
        """Leave out the terms of the last block that are none."""
        if self.extent % self.plan.terms and not self.plan.padded:
            term = axis(outer.name) * self.plan.terms + axis(inner.name)
            made.rebind(made.bindings.data, [self.extent - 1 - term])

    def _over(self, block: BlockOp) -> Axis:
        """Return the axis of a block that goes over the terms."""
        if block in (self.found.exponential, self.found.quotient):
            name = block.write_indices[0][self.found.dimension].as_axis()
            return next(a for a in block.axes if a.name == name)
        return next(a for a in block.axes if a.reduce)

    def _chosen(self, conditions: Sequence[IndexExpr], value: SSAValue, other: float) -> list[Operation]:
        """Return what makes a value another one where one of the conditions fails."""
        holds, number = PredicateOp(conditions), self._constant(other)
        return [holds, number, arith.SelectOp(holds.result, value, number.result)]

    def _joined(self, largest: SSAValue, sums: SSAValue, partial: SSAValue) -> tuple[BlockOp, BlockOp]:
        """Return the block that carries weighted sum, sum and maximum over blocks of terms, and the last division."""
        total, plan = self.found.total, self.plan
        output, indices = total.outputs[0], total.write_indices[0]
        carried = [_new_buffer(plan, name, buffer_shape(output)) for name in plan.buffers[1:]]
        spatial = _spatial(total)
        outer = Axis(fresh_name(f"{_reduce_name(total)}0", {a.name for a in spatial}), self.blocks, True)
        axes = [*spatial, outer]
        at = axis(outer.name)
        row = [at, *self.found.row]
        loads = [LoadOp(partial, [at, *indices]), LoadOp(sums, row), LoadOp(largest, row)]
        run = BlockOp(
            plan.names[1],
            axes,
            [axis(a.name) for a in axes],
            carried,
            [indices] * len(carried),
            _body(loads, *(load.result for load in loads)),
            "custom",
            identity=[self._number(0.0), self._number(0.0), self._number(-inf)],
            combine=join_of_parts(self._element, plan.rounded),
            annotations={KEPT: IndicesAttr(kept)} if (kept := self._kept(outer)) else None,
        )
        quotient = _quotient(LoadOp(carried[0], indices), LoadOp(carried[1], indices))
        return run, _plain_block(total.block_name, spatial, output, indices, quotient)

    def _kept(self, outer: Axis) -> tuple[IndexExpr, ...]:
        """Return the conditions, over the axes of sums and over blocks, that fail where a block is -inf all over."""
        found = self.found
        names = [str(e.as_axis()) for e in found.exponential.write_indices[0]]
        inner = fresh_name("term", names)
        indices = [*found.row]
        indices.insert(found.dimension, axis(outer.name) * self.plan.terms + axis(inner))
        parts = [
            interval_of(c, {inner: (0, self.plan.terms - 1)})
            for c in kept_where(found.score, dict(zip(names, indices, strict=True)))
        ]
        most = [part.low + (part.extent - 1) for part in parts]
        return tuple(c for c in dict.fromkeys(most) if outer.name in c.axes())

    @property
    def _element(self) -> AnyFloat:
        element = element_of_buffer(self.found.total.outputs[0])
        assert isinstance(element, AnyFloat)
        return element

    def _number(self, value: float) -> FloatAttr[AnyFloat]:
        return FloatAttr(value, self._element)

    def _constant(self, value: float) -> arith.ConstantOp:
        return number(self._element, value)


def _reduce_name(block: BlockOp) -> str:
    return next(a.name for a in block.axes if a.reduce)
