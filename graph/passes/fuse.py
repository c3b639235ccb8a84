"""The pass that groups operators into kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod
from typing import ClassVar, TypeAlias, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp, ConstantOp, GroupOp, YieldOp, group_body
from ...dialects.numpy_types import NARROW_FLOATS
from ...dialects.target import WARP
from ..operator import CHAINED, HEADS, Kind, is_in_parts, is_view, kind_of
from ..types import shape_of
from ._attention import Form, attention_before
from ._circles import without_circles
from ._dominators import post_dominators, region_between
from ._rewrite import group_label, networks, option, producer, put_in_order, used_once, users

_LOOKING_UP = ("take", "take_along_axis")
"""Operators that read their first input where data say: what comes before that one is computed first."""
_MOST_BESIDE = 4
"""Chains beside each other in a group, at most. A choice: what they give is in memory together."""
_OF_PIXELS = ("conv1d", "conv2d", "conv3d")
"""Operators that read each element of their data for many results."""
LEAST_QUERIES = 16
"""Queries of attention in float32 that is one kernel on a GPU, at least. A choice: those of a block of threads."""
_REPEATING = ("broadcast_to", "tile", "repeat", "resize2d")
"""Operators that read an element more than once: what comes before them is computed first."""


@dataclass(frozen=True)
class Fuse(ModulePass):
    """Operators -> groups, each of which becomes one kernel.

    An anchor (convolution, matrix product, pooling) and a reduction take in the elementwise operators behind them that
    give tensors of the same shape, across branches that join again; so do operators over rows (softmax, layer_norm). Of
    the rest, chains of elementwise and injective operators become one group, and go before a reduction that alone reads
    them; those of elementwise operators also before one over rows. An operator that reads a table where data say takes
    in what computes the places, and not what computes the table. Views, parts and what is joined in memory stay
    outside: they cost nothing.
    `depth` is the most operators of a group. With `attention_rows`, two products with a softmax between them and
    elementwise operators before that are one group where they have so many rows at least, of float32; with
    `attention_tile` where that divides the elements of keys and values, of 16-bit floats, with any number of rows. The
    latter take in a chain that gives the queries, each of which is read once, as their rotation by position. With
    `attention_keys`, such of float32 and at most so many keys are one, of elements in multiples of 32, where there are
    as many queries as `LEAST_QUERIES`.
    With `views`, chains go on behind views, which are computed with them: on GPUs a launch takes longer than the
    indices do. With `beside`, elements up to which a device is not filled, chains that give tensors of one type of no
    more are one group, which computes all in one loop nest: those that do not depend on each other, or elementwise
    operators that read what the other gives.
    With `gathered`, a convolution takes in the transpose from an input of the network to its data where that leaves a
    pixel fewer channels side by side: a kernel that reads so few elements one at a time finds them in any order.
    """

    name: ClassVar[str] = "lw-graph-fuse"
    depth: int = 64
    attention_rows: int = 0
    attention_tile: int = 0
    attention_keys: int = 0
    views: bool = False
    beside: int = 0
    gathered: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in networks(op):
            grouping = _Grouping(function, self.depth, self.views)
            if self.attention_rows:
                grouping.join_attention(Form(("float32",), self.attention_rows, lanes=True))
            if self.attention_tile:
                grouping.join_attention(Form(NARROW_FLOATS, tile=self.attention_tile))
            if self.attention_keys:
                grouping.join_attention(Form(("float32",), LEAST_QUERIES, WARP, most_keys=self.attention_keys))
            grouping.join_moved_inputs(self.gathered)
            grouping.run()
            grouping.take_in_queries()
            grouping.join_chains(self.beside)
            for members in without_circles(function.body.block, grouping.groups()):
                _make_group(members)
            put_in_order(function.body.block)


Joins: TypeAlias = Callable[[ApplyOp, Operation, bool], bool]
"""The rule by which an operation, which may be the end of its region, joins the group of an operator."""


class _Grouping:
    """A partition of operators into groups, as a group number for each."""

    def __init__(self, function: FuncOp, depth: int, views: bool) -> None:
        self.ops = [
            op
            for op in function.body.block.ops
            if isinstance(op, ApplyOp) and kind_of(op) not in (Kind.VIEW, Kind.PART, Kind.JOIN)
        ]
        self.order = {op: n for n, op in enumerate(function.body.block.ops)}
        self.ends = post_dominators(function.body.block)
        self.group: dict[Operation, int] = {op: n for n, op in enumerate(self.ops)}
        self.members: dict[int, list[ApplyOp]] = {n: [op] for n, op in enumerate(self.ops)}
        self.depth, self.views = depth, views
        self.scored: list[ApplyOp] = []
        """Products of attention on matrix units with keys."""

    def join_attention(self, form: Form) -> None:
        """Make each attention of a form a group."""
        for op in self.ops:
            members = attention_before(op, form)
            if members and len(members) <= self.depth and all(len(self.members[self.group[m]]) == 1 for m in members):
                self._merge({self.group[member] for member in members})
                if form.tile > 1 and not form.most_keys:
                    self.scored.append(members[0])

    def join_moved_inputs(self, channels: int) -> None:
        """Make a group of each convolution and the transpose that moves its data, of fewer channels, from an input."""
        for op in self.ops:
            moved = producer(op.inputs[0], "transpose") if op.operator.data in _OF_PIXELS else None
            if (
                moved is not None
                and moved in self.group
                and str(option(op, "layout")).endswith("C")
                and used_once(moved.outputs[0])
                and isinstance(_below_views(moved.inputs[0]), Block)
                and shape_of(moved.outputs[0])[-1] < channels
            ):
                self._merge({self.group[moved], self.group[op]})

    def take_in_queries(self) -> None:
        """Let chains join that give nothing but the queries of attention, under whatever shape."""
        for product in self.scored:
            queries = product.inputs[0]
            views: list[ApplyOp] = []
            while isinstance(op := queries.owner, ApplyOp) and is_view(op) and used_once(queries):
                views.insert(0, op)
                queries = op.inputs[0]
            chain = self.members[self.group[op]] if isinstance(op, ApplyOp) and op in self.group else []
            if (
                not all(kind_of(m) in CHAINED for m in chain)
                or _outputs_of(chain) != [queries]
                or not used_once(queries)
            ):
                continue
            numbers = {self.group[product], self.group[chain[0]]}
            if sum(len(self.members[n]) for n in numbers) + len(views) <= self.depth:
                self._merge(numbers)
                self.members[self.group[product]] += views

    def run(self) -> None:
        for op in self.ops:
            if is_in_parts(op):
                self._take_in(op)
        for op in self.ops:
            if kind_of(op) in (Kind.ANCHOR, Kind.REDUCTION, Kind.ROWS):
                self._extend(op, self._joins_anchor)
        for op in self.ops:
            if kind_of(op) in (Kind.ELEMENTWISE, Kind.INJECTIVE) and self._heads(op) is None:
                self._extend(op, self._joins_chain)

    def groups(self) -> list[list[ApplyOp]]:
        """Return the operators of each group, in order."""
        return [sorted(members, key=self.order.__getitem__) for members in self.members.values() if members]

    def _heads(self, op: Operation) -> ApplyOp | None:
        """Return the anchor, reduction or the like that a group is built around; None for an elementwise chain."""
        return next((m for m in self.members[self.group[op]] if kind_of(m) in HEADS), None)

    def _extend(self, start: ApplyOp, joins: Joins) -> None:
        """Grow a group along its post-dominators, while all operators on the paths to the next one may join."""
        last: Operation = max(self.members[self.group[start]], key=self.order.__getitem__)
        while True:
            end = self._end_of(last)
            if not isinstance(end, ApplyOp):
                return
            region, views = list[Operation](), list[ApplyOp]()
            for op in region_between(last, end):
                if self.views and isinstance(op, ApplyOp) and is_view(op):
                    views.append(op)
                elif len(region) < self.depth and joins(start, op, op is end):
                    region.append(op)
                else:
                    return
            if views and (joins != self._joins_chain or self._heads(end) is not None):
                return
            found = {self.group[start], *(self.group[op] for op in region)}
            if any(self._looks_up_in(op, found) for op in region):
                return
            if sum(len(self.members[n]) for n in found) > self.depth:
                return
            last = self._merge(found)
            self.members[self.group[last]] += views
            if kind_of(end) in (Kind.REDUCTION, Kind.ROWS):
                return

    def _end_of(self, op: Operation) -> Operation | None:
        """Return where all paths from an operator meet again; behind views, where these may join."""
        end = self.ends.get(op)
        while self.views and end is not None and is_view(end):
            end = self.ends.get(end)
        return end

    def _joins_anchor(self, start: ApplyOp, op: Operation, is_end: bool) -> bool:
        if kind_of(op) is not Kind.ELEMENTWISE or self._heads(op) is not None or len(self.members[self.group[op]]) > 1:
            return False
        return shape_of(op.results[0]) == shape_of(start.outputs[0])

    def _joins_chain(self, start: ApplyOp, op: Operation, is_end: bool) -> bool:
        if op not in self.group:
            return False
        assert isinstance(op, ApplyOp)
        kind, head = kind_of(op), self._heads(op)
        if is_end and head is op and (kind is Kind.REDUCTION or self._gives_rows(start, op)):
            return True
        if head is not None:
            return False
        if kind is Kind.ELEMENTWISE:
            return shape_of(op.outputs[0]) == shape_of(_last_shape(self.members[self.group[start]], self.order))
        if kind is not Kind.INJECTIVE or op.operator.data in _REPEATING:
            return False
        if op.operator.data in _LOOKING_UP:  # some integer arithmetic for each element, which is read from far away
            return True
        return sum(prod(shape_of(v)) for v in op.outputs) <= sum(prod(shape_of(v)) for v in op.inputs)

    def _gives_rows(self, start: ApplyOp, op: ApplyOp) -> bool:
        """True where a chain is elementwise, and the input of an operator over rows."""
        members = self.members[self.group[start]]
        if kind_of(op) is not Kind.ROWS or any(kind_of(m) is not Kind.ELEMENTWISE for m in members):
            return False
        return op.inputs[0].owner is max(members, key=self.order.__getitem__)

    def _looks_up_in(self, op: Operation, found: set[int]) -> bool:
        """True where an operator reads, where data say, what operators of the groups `found` compute."""
        if not isinstance(op, ApplyOp) or op.operator.data not in _LOOKING_UP:
            return False
        owner = op.inputs[0].owner
        return isinstance(owner, ApplyOp) and self.group.get(owner) in found

    def _take_in(self, start: ApplyOp) -> None:
        """Let all elementwise operators join that depend on an operator, and on nothing else that does.

        What they give may be read by others, such as the state of a cell by its next step. Slices that only they read
        join too.
        """
        shape, waiting = shape_of(start.outputs[0]), self._readers(start)
        while waiting:
            _, op = heappop(waiting)
            members = self.members[self.group[start]]
            if op in members or len(members) >= self.depth:
                continue
            if kind_of(op) is not Kind.ELEMENTWISE or shape_of(op.outputs[0]) != shape:
                continue
            if not any(v.owner not in members and self._depends_on(v, start) for v in op.inputs):
                slices = [v.owner for v in op.inputs if _is_slice_for(v, op)]
                self._merge({self.group[each] for each in (start, op, *slices)})
                for reader in self._readers(op):
                    heappush(waiting, reader)

    def _readers(self, op: ApplyOp) -> list[tuple[int, ApplyOp]]:
        """Return the operators that read what one gives, each behind its place: a heap."""
        found = {use.operation for value in op.outputs for use in value.uses}
        return sorted((self.order[each], each) for each in found if isinstance(each, ApplyOp) and each in self.group)

    def _depends_on(self, value: SSAValue, start: ApplyOp) -> bool:
        """True where a value is computed from what an operator gives."""
        seen, waiting = set[Operation](), [value.owner]
        while waiting:
            owner = waiting.pop()
            if owner is start:
                return True
            if isinstance(owner, ApplyOp) and owner not in seen and self.order[owner] > self.order[start]:
                seen.add(owner)
                waiting += [each.owner for each in owner.inputs]
        return False

    def join_chains(self, most: int) -> None:
        """Make chains that give tensors of one type, of at most so many elements, one.

        They do not depend on each other, but for an elementwise operator of one that reads what the other gives.
        """
        alike: dict[object, list[int]] = {}
        for number, members in self.members.items():
            if members and all(kind_of(m) in CHAINED for m in members):
                last = _last_shape(members, self.order)
                if prod(shape_of(last)) <= most and len(_outputs_of(members)) == 1:
                    alike.setdefault(last.type, []).append(number)
        for numbers in alike.values():
            first, *others = numbers
            count = 1
            for number in others:
                both = self.members[first] + self.members[number]
                fits = count < _MOST_BESIDE and len(both) <= self.depth
                fits = fits and _reads_in_place(self.members[number], self.members[first])
                if fits and not _depends(both, self.order):
                    self._merge({first, number})
                    count += 1
                else:
                    first, count = number, 1

    def _merge(self, found: Iterable[int]) -> Operation:
        """Join groups under one number; returns the last operator of the result."""
        numbers = sorted(found)
        whole = [op for n in numbers for op in self.members[n]]
        for n in numbers[1:]:
            self.members[n] = []
        self.members[numbers[0]] = whole
        for op in whole:
            self.group[op] = numbers[0]
        return max(whole, key=self.order.__getitem__)


def _is_slice_for(value: SSAValue, op: ApplyOp) -> TypeGuard[OpResult]:
    """True for a slice that one operator reads, and no other."""
    return producer(value, "strided_slice") is not None and set(users(value)) == {op}


def _below_views(value: SSAValue) -> Operation | Block:
    """Return the operation that a value is of, under whatever shape."""
    while isinstance(value.owner, ApplyOp) and kind_of(value.owner) in (Kind.VIEW, Kind.PART):
        value = value.owner.inputs[0]
    return value.owner


def _last_shape(members: list[ApplyOp], order: dict[Operation, int]) -> SSAValue:
    return max(members, key=order.__getitem__).outputs[0]


def _outputs_of(members: list[ApplyOp]) -> list[SSAValue]:
    """Return the values of operators that others read."""
    inside = set[Operation](members)
    return [v for op in members for v in op.outputs if any(use.operation not in inside for use in v.uses)]


def _reads_in_place(members: list[ApplyOp], others: list[ApplyOp]) -> bool:
    """True where what operators read of others' results they read element by element."""
    given = {v for op in others for v in op.outputs}
    return all(kind_of(op) is Kind.ELEMENTWISE for op in members if not given.isdisjoint(op.inputs))


def _depends(members: list[ApplyOp], order: Mapping[Operation, int]) -> bool:
    """True where some of several operators depend on others by way of operators that are not among them."""
    inside, last = set[Operation](members), max(order[op] for op in members)
    seen, waiting = set[Operation](), list[Operation](members)
    while waiting:
        op = waiting.pop()
        for user in (u for v in op.results for u in users(v)):
            if user in inside:
                if op not in inside:
                    return True
            elif user not in seen and order[user] < last:
                seen.add(user)
                waiting.append(user)
    return False


def _make_group(members: list[ApplyOp]) -> None:
    inside = set[Operation](members)
    last = members[-1]
    outputs = _outputs_of(members) or list(last.outputs)
    inputs: dict[SSAValue, None] = {}
    for op in members:
        for value in op.inputs:
            if value.owner not in inside and not _is_number(value):
                inputs.setdefault(value)
    body = group_body([v.type for v in inputs])
    place = last.parent
    assert isinstance(place, Block)
    group = GroupOp(group_label(members), list(inputs), Region(Block()), [v.type for v in outputs])
    place.insert_op_after(group, last)
    for value, result in zip(outputs, group.outputs, strict=True):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: use.operation not in inside)
    _fill(body, members, dict(zip(inputs, body.args, strict=True)), outputs)
    group.body.detach_block(group.body.block)
    group.body.add_block(body)


def _fill(body: Block, members: list[ApplyOp], names: dict[SSAValue, SSAValue], outputs: list[SSAValue]) -> None:
    """Move operators into a group, `names` being what it calls values from outside."""
    for op in members:
        for position, value in enumerate(op.inputs):
            if value not in names and isinstance(value.owner, ConstantOp):
                number = value.owner.clone()
                body.add_op(number)
                names[value] = number.result
            if value in names:
                op.operands[position] = names[value]
        assert op.parent is not None
        op.parent.detach_op(op)
        body.add_op(op)
    body.add_op(YieldOp(operands=[outputs]))


def _is_number(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and value.owner.value is not None
