"""Attention in a nest: scores as sums of products, steps on each of them, and a sum weighted by their softmax."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import arith

from ...dialects.index import IndexExpr, axis
from ...dialects.loop import BlockOp, LoadOp
from ...passes.analysis.access import is_argument
from ...passes.analysis.masked import kept_where
from ...passes.analysis.nest import buffer_name
from ...passes.analysis.summed_product import summed_product
from ...passes.analysis.weighted_sum import NoWeightedSum, WeightedSum, match_weighted_sum, written_for


@dataclass(frozen=True)
class AttentionBlocks:
    """Blocks by name, the axis of each that is its `rows` (queries), and of scores that of `keys`.

    `scores` are the products with keys, `steps` the blocks of one element each that lead from them to what softmax
    reads. `quotient` is the last one of softmax. `queries` is the buffer that scores read along rows, `columns` the
    axis of `total` along a value. It `ends_early` where a mask hides the last keys from the first queries.
    """

    scores: str
    steps: tuple[str, ...]
    largest: str
    exponential: str
    denominator: str
    quotient: str
    total: str
    rows: dict[str, str]
    keys: dict[str, str]
    columns: str
    queries: str
    row_extent: int
    key_extent: int
    ends_early: bool


@dataclass(frozen=True)
class _Scored:
    """The block of scores, those from there to the softmax, and the axes of each, as the softmax has them."""

    scores: BlockOp
    steps: tuple[BlockOp, ...]
    axes: dict[BlockOp, list[str]]


def find_attention(total: BlockOp) -> AttentionBlocks | None:
    """Match the block of a weighted sum; None for another, or where scores or rows are of another form."""
    try:
        found = match_weighted_sum(total)
    except NoWeightedSum:
        return None
    row, column = _row_and_column(found)
    scored = _scores(found)
    if row < 0 or not column or scored is None:
        return None
    largest, denominator = found.largest, found.denominator
    plain = {b: _names(b.write_indices[0]) for b in (largest, denominator)}
    plain |= {b: _others(names, found.dimension) for b, names in scored.axes.items()}
    for block in (found.exponential, found.quotient):
        plain[block] = _others(_names(block.write_indices[0]), found.dimension)
    plain[total] = _names(found.row)
    rows = {block.block_name: names[row] for block, names in plain.items()}
    keys = {block.block_name: names[found.dimension] for block, names in scored.axes.items()}
    queries = _moving(scored.scores, rows[scored.scores.block_name], keys[scored.scores.block_name])
    if queries is None:
        return None
    extents = {a.name: a.extent for a in total.axes}
    return AttentionBlocks(
        scored.scores.block_name,
        tuple(block.block_name for block in scored.steps),
        largest.block_name,
        found.exponential.block_name,
        denominator.block_name,
        found.quotient.block_name,
        total.block_name,
        rows,
        keys,
        column,
        queries,
        extents[rows[total.block_name]],
        next(a.extent for a in total.axes if a.reduce),
        _ends_early(found),
    )


def _ends_early(found: WeightedSum) -> bool:
    """True where no key behind a certain one, another for each query, is more than -inf."""
    names = _names(found.exponential.write_indices[0])
    conditions = kept_where(found.score, {name: axis(name) for name in names})
    return any(c.coefficient(names[found.dimension]) < 0 and len(c.axes()) > 1 for c in conditions)


def _row_and_column(found: WeightedSum) -> tuple[int, str]:
    """The place of the rows among the dimensions of a softmax without that of its terms, and the axis of columns.

    Rows are what values do not depend on, columns what weights do not; -1 and "" where there is none, or several.
    """
    total, names = found.total, _names(found.row)
    others = {n for load in total.loads if load is not found.weight for e in load.indices.data for n in e.axes()}
    rows = [n for n in names if n not in others]
    columns = [a.name for a in total.axes if not a.reduce and a.name not in names and a.extent > 1]
    return (names.index(rows[-1]) if rows else -1), (columns[0] if len(columns) == 1 else "")


def _scores(found: WeightedSum) -> _Scored | None:
    """Follow what softmax reads up to a sum of products; None where somebody else reads a block on the way."""
    exponential = found.exponential
    loads = [x for x in exponential.loads if x.buffer is not found.largest.outputs[0]]
    place, allowed = _names(exponential.write_indices[0]), {exponential, found.largest}
    axes: dict[BlockOp, list[str]] = {}
    steps: list[BlockOp] = []
    while len(loads) == 1:
        (load,) = loads
        block = _written_for(load, allowed)
        indices = [e.as_axis() for e in load.indices.data]
        if block is None or sorted(map(str, indices)) != sorted(place):
            return None
        written = dict(zip(indices, (e.as_axis() for e in block.write_indices[0]), strict=True))
        if None in written.values():
            return None
        place = [str(written[name]) for name in place]
        axes[block] = place
        if block.is_reduction:
            return _Scored(block, tuple(reversed(steps)), axes) if _is_product(block) else None
        steps.append(block)
        allowed, loads = {block}, [x for x in block.loads if not is_argument(x.buffer)]
    return None


def _written_for(load: LoadOp, wanted: set[BlockOp]) -> BlockOp | None:
    """Return the block that writes what is loaded, in nests of its own, for the wanted blocks alone to read."""
    block = None if load.conditions or load.positions else written_for(load.buffer, wanted)
    return None if block is None or block.conditions else block


def _is_product(block: BlockOp) -> bool:
    reduced = [a for a in block.axes if a.reduce]
    return len(reduced) == 1 and isinstance(summed_product(block), arith.MulfOp)


def _moving(scores: BlockOp, row: str, keys: str) -> str | None:
    """The one buffer that scores read along rows; None where there is none, or keys move it too."""
    loads = [load for load in scores.loads if any(row in e.axes() for e in load.indices.data)]
    if len(loads) != 1 or loads[0].conditions or loads[0].positions:
        return None
    moved = any(keys in e.axes() for e in loads[0].indices.data)
    return None if moved else buffer_name(loads[0].buffer)


def _names(indices: Iterable[IndexExpr]) -> list[str]:
    """The axes that indices are: those of a softmax are plain, as it was matched."""
    return [str(e.as_axis()) for e in indices]


def _others(names: list[str], dimension: int) -> list[str]:
    return [*names[:dimension], *names[dimension + 1 :]]
