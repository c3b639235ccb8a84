"""Chains of blocks, found backwards from their last one; those of reductions over rows, such as softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...dialects.index import IndexExpr, constant
from ...dialects.loop import BlockOp, blocks_in
from ...passes.analysis.access import consumers, is_argument
from ..sketch.draft import Draft
from .strides import positions


def unscheduled(draft: Draft) -> list[BlockOp]:
    """The blocks that stand alone in a nest nobody has touched."""
    found = []
    for block in blocks_in(draft.module):
        loops = block.enclosing_loops
        plain = all(x.loop_kind == "serial" and not x.notes for x in loops)
        if plain and (not loops or len(list(blocks_in(loops[0]))) == 1) and block.block_name not in draft.settled:
            found.append(block)
    return found


Admits = Callable[[BlockOp, Sequence[BlockOp]], bool]
"""The rule by which a chain takes a block, given its readers, which are of the chain."""


def chain_to(last: BlockOp, before: Sequence[BlockOp], admits: Admits) -> list[BlockOp]:
    """The chain that ends in a block, backwards: `last`, and blocks before it that nobody but the chain reads.

    What kind of chain it is, say those that `admits`: rows of a reduction, neighbourhoods of a filter.
    """
    chain = [last]
    for block in reversed(before):
        readers = consumers(block)
        alone = bool(readers) and all(r in chain for r in readers) and not any(is_argument(o) for o in block.outputs)
        if alone and admits(block, readers):
            chain.append(block)
    return chain


def next_chain(draft: Draft) -> list[str] | None:
    """The last group of blocks that ends in one block and holds a reduction, in program order."""
    waiting = unscheduled(draft)
    for last in reversed(waiting):
        rows = row_dimensions(last)
        before = waiting[: waiting.index(last)] if rows else []
        chain = chain_to(last, before, partial(_follows, rows=rows))
        if any(b.is_reduction for b in chain):
            return [b.block_name for b in reversed(chain)]
    return None


def row_dimensions(block: BlockOp) -> int:
    """Count the leading dimensions of the output for the loops over rows: all but the last, all of a reduction."""
    dims = [e.as_axis() for e in block.write_indices[0]]
    if any(d is None for d in dims):
        return 0
    return len(dims) if block.is_reduction else len(dims) - 1


def _follows(block: BlockOp, readers: Sequence[BlockOp], rows: int) -> bool:
    """True where what `block` computes is read row by row."""
    if len(block.outputs) != 1:
        return False
    write = [e.as_axis() for e in block.write_indices[0]]
    if any(d is None for d in write) or len(write) < rows:
        return False
    for reader in readers:
        own = _places(reader, reader.write_indices[0], rows)
        for load in reader.loads:
            if load.buffer is block.outputs[0] and _places(reader, load.indices.data, rows) != own:
                return False
    return True


def _places(block: BlockOp, indices: Sequence[IndexExpr], rows: int) -> list[IndexExpr]:
    """The first indices of an access, where iterators of extent 1 stay at 0."""
    still = {a.name: constant(0) for a in block.axes if a.extent == 1}
    return [e.substitute(still) for e in indices[:rows]]


def along_reduce(block: BlockOp) -> bool:
    """True where the block reads contiguous memory along its last reduce axis."""
    reduce = [a.name for a in block.axes if a.reduce and a.extent > 1]
    if not reduce:
        return False
    loaded = positions(block)[len(block.outputs) :]
    return any(at.is_linear_in(reduce[-1]) and at.coefficient(reduce[-1]) == 1 for at in loaded)
