"""Read what repeats the edges of a buffer from that buffer, at positions that are clamped to it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Operation, SSAValue

from ...dialects.index import IndexExpr, Lookup, axis
from ...dialects.lookups import lookups_in
from ...dialects.loop import BlockOp, LoadOp, blocks_in, buffer_shape
from ...dialects.te import IndexOp, PredicateOp
from ..analysis.access import is_argument, readers
from ..analysis.nest import buffer_name, find_block, functions
from ..parametric.index import Index, Unknown
from ..parametric.nest import Access, Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._moving import drop_buffer, require_no_race, require_only_writer, take_out, written_axes
from ._staging import legal_steps


@dataclass(frozen=True)
class Edges:
    """A buffer, the dimension along which its first and last elements are repeated, and how many there are before."""

    source: SSAValue
    dimension: int
    before: int


@dataclass(frozen=True)
class Plan:
    """The block, what it repeats, and the blocks that read it."""

    block: BlockOp
    edges: Edges
    readers: tuple[BlockOp, ...]


@dataclass(frozen=True)
class ClampToEdge(Primitive[Plan]):
    """`for i { p[i] = i < 1 ? x[0] : i < 9 ? x[i - 1] : x[7] } for j { c(j) reads p[j floordiv 2] }` ->
    `for j { c(j) reads x[k] }` with `k = j floordiv 2 - 1`, clamped to `[0, 8)`, for `block=p`

    The block, its loops and its buffer are gone. A position that the program computes is clamped where it is used
    (`lw_loop.load`), so that nothing is compared for each of the elements that may be there.

    Requires: a block that repeats the first or the last elements of a buffer along one dimension, or both, for all of a
    buffer that it alone writes and that is no output of the function; readers that read it without conditions, along
    that dimension at expressions of their iterators.
    """

    name = "lw-clamp-to-edge"
    block: str

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        edges = edges_of(block)
        if edges is None:
            rule = f"block '{self.block}' must repeat the first or the last elements of a buffer along one dimension"
            raise self.error(rule, at=block)
        buffer = block.outputs[0]
        if is_argument(buffer):
            raise self.error(f"'{buffer_name(buffer)}' must not be an output of the function", at=block)
        require_only_writer(self, block)
        found = readers(buffer)
        if not found:
            raise self.error(f"no block reads '{buffer_name(buffer)}'", at=block)
        for reader in found:
            require_no_race(self, block, reader.enclosing_loops)
            for load in (each for each in reader.loads if each.buffer is buffer):
                if load.conditions or lookups_in(load.indices.data[edges.dimension]):
                    rule = f"'{reader.block_name}' must read '{buffer_name(buffer)}' at its iterators, not under a mask"
                    raise self.error(rule, at=reader)
        return Plan(block, edges, tuple(found))

    def rewrite(self, plan: Plan) -> None:
        buffer = plan.block.outputs[0]
        for reader in plan.readers:
            positions: dict[IndexExpr, SSAValue] = {}
            for load in [each for each in reader.loads if each.buffer is buffer]:
                _read_clamped(reader, load, plan.edges, positions)
        take_out(plan.block)
        plan.block.erase()
        drop_buffer(buffer)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        source, buffer = stage.loads[0].buffer, stage.writes[0].buffer
        (dimension,) = (
            n for n, each in enumerate(zip(*(a.indices for a in stage.loads), strict=True)) if _differ(each)
        )
        extent = source.shape[dimension]
        assert isinstance(extent, int)
        for reader in nest.readers(buffer):
            for place, load in enumerate(reader.loads):
                if load.buffer is buffer:
                    args = tuple(map(Index.axis, sorted(load.indices[dimension].names)))
                    indices = list(load.indices)
                    indices[dimension] = Index(((Unknown(args, extent), 1),))
                    reader.loads[place] = Access(source, indices)
        stage.take_out()
        del nest.buffers[buffer.name]

    def describe(self) -> str:
        return f"Read what {self.block} repeats where it comes from, at clamped positions."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ClampToEdge, ...]:
        return legal_steps((cls(b.block_name) for func in functions(module_op) for b in blocks_in(func)), module_op)


def edges_of(block: BlockOp) -> Edges | None:
    """The edges that a block repeats: its value is `select(first, x[0], select(inside, x[i - before], x[last]))`.

    One of the two may be missing. None for all other blocks.
    """
    dimension_of = written_axes(block)
    if block.is_reduction or len(block.outputs) != 1 or dimension_of is None:
        return None
    loads = list(block.loads)
    if len({load.buffer for load in loads}) != 1 or len(loads) not in (2, 3) or any(load.positions for load in loads):
        return None
    shape, own = buffer_shape(loads[0].buffer), block.write_indices[0]
    if len(own) != len(shape):
        return None
    places = [[n for n, index in enumerate(load.indices.data) if index != own[n]] for load in loads]
    moved = {n for found in places for n in found}
    if len(moved) != 1:
        return None
    (dimension,) = moved
    return _edges(block, dimension, own[dimension], shape[dimension])


def _edges(block: BlockOp, dimension: int, own: IndexExpr, extent: int) -> Edges | None:
    """The same, of a dimension of so many elements, which `own` goes along."""
    value, before, whole = block.yielded[0], 0, buffer_shape(block.outputs[0])[dimension]
    taken: list[tuple[SSAValue, set[IndexExpr]]] = []  # with conditions that hold wherever an element is taken
    if (first := _selected(value)) is not None and _index(first[1], dimension) == own * 0:
        before = first[0].const + 1
        if first[0] != own * -1 + (before - 1):
            return None
        taken.append((first[1], {own * -1 + (before + extent - 1)}))
        value = first[2]
    behind, within = own - before, own * -1 + (before + extent - 1)
    if (last := _selected(value)) is not None:
        if last[0] != within or _index(last[2], dimension) != own * 0 + (extent - 1):
            return None
        taken.append((last[2], {behind}))
        value = last[1]
    elif whole > before + extent:
        return None
    if _index(value, dimension) != behind or not taken:
        return None
    for element, known in (*taken, (value, {behind, within})):
        if isinstance(element.owner, LoadOp) and not known.issuperset(element.owner.conditions):
            return None
    return Edges(value.owner.buffer, dimension, before) if isinstance(value.owner, LoadOp) else None


def _selected(value: SSAValue) -> tuple[IndexExpr, SSAValue, SSAValue] | None:
    """The condition of a choice, the value where it is not negative, and that elsewhere; None for other values."""
    if not isinstance(value.owner, arith.SelectOp) or not isinstance(value.owner.cond.owner, PredicateOp):
        return None
    conditions = value.owner.cond.owner.where.data
    return (conditions[0], value.owner.lhs, value.owner.rhs) if len(conditions) == 1 else None


def _index(value: SSAValue, dimension: int) -> IndexExpr | None:
    return value.owner.indices.data[dimension] if isinstance(value.owner, LoadOp) else None


def _read_clamped(reader: BlockOp, load: LoadOp, edges: Edges, positions: dict[IndexExpr, SSAValue]) -> None:
    """Read the source where the edges repeat it; the number of each position is computed once."""
    wanted = load.indices.data[edges.dimension] - edges.before
    made: list[Operation] = []
    if wanted not in positions:
        made.append(IndexOp(wanted, i32))
        positions[wanted] = made[0].results[0]
    args = tuple(axis(a.name) for a in reader.axes if a.name in wanted.axes())
    extent = buffer_shape(edges.source)[edges.dimension]
    indices = list(load.indices.data)
    indices[edges.dimension] = IndexExpr(((Lookup(len(load.positions), args, extent), 1),), 0)
    read = LoadOp(edges.source, indices, positions=[*load.positions, positions[wanted]])
    reader.body.block.insert_ops_before([*made, read], load)
    load.result.replace_all_uses_with(read.result)
    reader.body.block.erase_op(load)


def _differ(indices: tuple[Index, ...]) -> bool:
    """True for indices of which some go along an axis, and others stand still."""
    return len({index.names for index in indices}) > 1
