"""A sum weighted by a softmax, as five blocks: maximum, exponentials, their sum, quotients, and the sum of products."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ...dialects.index import IndexExpr
from ...dialects.loop import BlockOp, LoadOp, blocks_in
from .access import is_argument, readers, writers
from .nest import buffer_name, function_of
from .same_bodies import computes_same


class NoWeightedSum(Exception):
    """The reason, as a clause, why a block is no sum weighted by a softmax, and the block that it is about."""

    def __init__(self, reason: str, at: BlockOp) -> None:
        super().__init__(reason)
        self.at = at


@dataclass(frozen=True)
class WeightedSum:
    """`out[.., c] = sum(softmax(x)[.., k] * v[.., k, c])` over `k`, in program order of its blocks.

    `largest` is max(x), `exponential` exp(x - max(x)), `denominator` the sum of these, `quotient` their ratio and
    `total` the sum of products with it. `dimension` is the one of the exponentials' buffer that the sums go over.
    """

    largest: BlockOp
    exponential: BlockOp
    denominator: BlockOp
    quotient: BlockOp
    total: BlockOp
    dimension: int

    @property
    def blocks(self) -> tuple[BlockOp, ...]:
        """All blocks, in program order."""
        return (self.largest, self.exponential, self.denominator, self.quotient, self.total)

    @property
    def weight(self) -> LoadOp:
        """The load of a weight in the body of `total`."""
        return next(load for load in self.total.loads if load.buffer is self.quotient.outputs[0])

    @property
    def weights(self) -> list[SSAValue]:
        """The weight in the body of `total`, as it is loaded and as it is multiplied."""
        return [self.weight.result, _multiplied(self.weight)]

    @property
    def score(self) -> SSAValue:
        """The element of the softmax that the body of `exponential` takes the maximum from."""
        power = self.exponential.yielded[0].owner
        difference = power.operands[0].owner if isinstance(power, math.ExpOp) else None
        assert isinstance(difference, arith.SubfOp), "it was matched"
        return difference.lhs

    @property
    def row(self) -> list[IndexExpr]:
        """The row of the softmax that an instance of `total` takes its weight from."""
        indices = self.weight.indices.data
        return [*indices[: self.dimension], *indices[self.dimension + 1 :]]


def match_weighted_sum(total: BlockOp) -> WeightedSum:
    """Find the softmax that weighs the terms of a sum of products; NoWeightedSum where there is none."""
    weight, quotient = _weight(total)
    places = _plain(weight.indices.data, total)
    reduce = _reduced(total)
    dimension = places.index(reduce) if places.count(reduce) == 1 else -1
    if dimension < 0:
        raise NoWeightedSum(f"the softmax is not along '{reduce}'", total)
    exponential, denominator = _quotient(quotient, dimension)
    largest = _exponential(exponential, dimension)
    _require_sum(denominator, exponential, dimension)
    found = WeightedSum(largest, exponential, denominator, quotient, total, dimension)
    for block in found.blocks:
        _require_untouched(block)
    _require_settled(found)
    return found


def _weight(total: BlockOp) -> tuple[LoadOp, BlockOp]:
    """Return the load of a weight, and the block that computes the weights."""
    product = total.yielded[0].owner
    if total.combiner.data != "add" or not isinstance(product, arith.MulfOp):
        raise NoWeightedSum(f"'{total.block_name}' is no sum of products", total)
    for load in total.loads:
        block = written_for(load.buffer, (total,))
        if block is None or not _is_quotient(block) or _multiplied(load) not in product.operands:
            continue
        once = [load.result.has_one_use(), _multiplied(load).has_one_use()]
        if all(once) and not load.conditions and sum(other.buffer is load.buffer for other in total.loads) == 1:
            return load, block
    raise NoWeightedSum(f"no factor of '{total.block_name}' is a quotient that it alone reads", total)


def _multiplied(weight: LoadOp) -> SSAValue:
    """Return a weight that was loaded, or what it is made wider to."""
    user = weight.result.get_user_of_unique_use()
    return user.results[0] if isinstance(user, arith.ExtFOp) else weight.result


def _is_quotient(block: BlockOp) -> bool:
    """True where a block divides one element of a buffer by one of another."""
    division = _unrounded(block.yielded[0]).owner
    if not isinstance(division, arith.DivfOp) or len(block.loads) != 2 or block.is_reduction:
        return False
    return list(division.operands) == [load.result for load in block.loads]


def _reduced(block: BlockOp) -> str:
    """Return the one axis that a block reduces over."""
    names = [a.name for a in block.axes if a.reduce]
    if len(names) != 1:
        raise NoWeightedSum(f"'{block.block_name}' reduces over {len(names)} axes", block)
    return names[0]


def _quotient(block: BlockOp, dimension: int) -> tuple[BlockOp, BlockOp]:
    """Return the blocks of the two operands of a quotient: exponentials, and one number for each row of them."""
    above, below = block.loads
    names = _plain(above.indices.data, block)
    if _plain(below.indices.data, block) != [*names[:dimension], *names[dimension + 1 :]]:
        raise NoWeightedSum(f"'{block.block_name}' divides by more than one number for each row", block)
    if names != _plain(block.write_indices[0], block):
        raise NoWeightedSum(f"'{block.block_name}' writes in another order than it reads", block)
    denominator = written_for(below.buffer, (block,))
    if denominator is None:
        raise NoWeightedSum(f"'{buffer_name(below.buffer)}' is read by others too", block)
    exponential = written_for(above.buffer, (denominator, block))
    if exponential is None:
        raise NoWeightedSum(f"'{buffer_name(above.buffer)}' is not read for the sum and the quotient alone", block)
    return exponential, denominator


def _exponential(block: BlockOp, dimension: int) -> BlockOp:
    """Return the block of the maximum that exponentials are relative to."""
    exponential = block.yielded[0].owner
    difference = exponential.operands[0].owner if isinstance(exponential, math.ExpOp) else None
    load = difference.rhs.owner if isinstance(difference, arith.SubfOp) else None
    if not isinstance(load, LoadOp) or not isinstance(difference, arith.SubfOp):
        raise NoWeightedSum(f"'{block.block_name}' is no exponential of a difference", block)
    names = _plain(block.write_indices[0], block)
    largest = written_for(load.buffer, (block,))
    if largest is None or largest.combiner.data != "max" or len(largest.outputs) != 1:
        raise NoWeightedSum(f"'{buffer_name(load.buffer)}' is no maximum that '{block.block_name}' alone reads", block)
    others = [*names[:dimension], *names[dimension + 1 :]]
    if _plain(load.indices.data, block) != others:
        raise NoWeightedSum(f"'{block.block_name}' is not relative to the maximum of its row", block)
    own = dict(zip(_plain(largest.write_indices[0], largest), others, strict=True))
    own[_reduced(largest)] = names[dimension]
    if not computes_same(largest.yielded[0], difference.lhs, own):
        raise NoWeightedSum(f"'{largest.block_name}' is the maximum of something else", largest)
    return largest


def _require_sum(block: BlockOp, exponential: BlockOp, dimension: int) -> None:
    load = block.yielded[0].owner
    names = _plain(block.write_indices[0], block)
    names.insert(dimension, _reduced(block))
    plain = isinstance(load, LoadOp) and load.buffer is exponential.outputs[0] and not load.conditions
    if block.combiner.data != "add" or not isinstance(load, LoadOp) or not plain:
        raise NoWeightedSum(f"'{block.block_name}' does not add up the exponentials", block)
    if _plain(load.indices.data, block) != names:
        raise NoWeightedSum(f"'{block.block_name}' does not add up the exponentials of a row", block)


def _require_untouched(block: BlockOp) -> None:
    """Refuse a block that does not stand alone in a plain nest, a loop for each of its iterators."""
    loops = block.enclosing_loops
    around = [loop.loop_name for loop in loops]
    alone = all(loop.body.block.first_op is loop.body.block.last_op for loop in loops)
    marked = any(loop.loop_kind != "serial" or loop.notes for loop in loops)
    if block.conditions or marked or not alone or [e.as_axis() for e in block.bindings.data] != around:
        raise NoWeightedSum(f"'{block.block_name}' has been scheduled already", block)
    if block.is_reduction and not block.has_init:
        raise NoWeightedSum(f"the start of '{block.block_name}' is a block of its own", block)


def _require_settled(found: WeightedSum) -> None:
    """Refuse a softmax of what is written again between it and the sum."""
    order = {block: n for n, block in enumerate(blocks_in(function_of(found.total)))}
    for load in (*found.largest.loads, *found.exponential.loads):
        late = [w for w in writers(load.buffer) if w is not found.largest and order[w] > order[found.largest]]
        if late:
            name = buffer_name(load.buffer)
            raise NoWeightedSum(f"'{late[0].block_name}' writes '{name}' behind '{found.largest.block_name}'", late[0])


def written_for(buffer: SSAValue, wanted: Collection[BlockOp]) -> BlockOp | None:
    """Return the one block that writes a buffer, which is no argument, for just the blocks given to read; else None."""
    found = writers(buffer)
    if is_argument(buffer) or len(found) != 1 or len(found[0].outputs) != 1:
        return None
    return found[0] if set(readers(buffer)) == set(wanted) else None


def _plain(indices: Sequence[IndexExpr], block: BlockOp) -> list[str]:
    """Return the iterator that each index is; NoWeightedSum unless they are iterators, each its own."""
    names = [e.as_axis() for e in indices]
    found = [name for name in names if name is not None]
    if len(set(found)) != len(names):
        raise NoWeightedSum(f"'{block.block_name}' reads or writes at more than iterators", block)
    return found


def _unrounded(value: SSAValue) -> SSAValue:
    """Return what a value was before it was rounded to a narrower type."""
    return value.owner.operands[0] if isinstance(value.owner, arith.TruncFOp) else value
