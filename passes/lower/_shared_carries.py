"""Values that a reduction carries for each element of a row, all equal: each thread keeps one of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Region, SSAValue

from ...dialects.attributes import IndicesAttr
from ...dialects.index import ZERO, IndexExpr, axis
from ...dialects.loop import BlockOp, ForOp, LoadOp, blocks_in, scope_of
from ..analysis.access import is_argument, is_under, reads, writers
from ..analysis.nest import loops_reduced

CARRIED = "carried_once"
"""The annotation of a reduction by its outputs, by number, that only the last iteration of some loops stores."""


def share_carries(func: FuncOp) -> None:
    """Keep one of a row's running values where a reduction carries the same for each element of the row.

    `for k { for j { (c[i, j], m[i, j]) joined with (x[i, j, k], y[i, k]) } }`, where m is joined with y alone ->
    m[i, 0] in the place of m[i, j], stored by the last iteration of j, when all have read it.
    """
    for block in blocks_in(func):
        if block.combiner.data == "custom" and block.has_init and isinstance(block.combine, Region):
            _share(block, block.combine)


def _share(block: BlockOp, combine: Region) -> None:
    same = _joined_alone(block, combine)
    columns = _columns(block, same)
    loops = block.enclosing_loops
    reduced = loops_reduced(block)
    last = max((n for n, loop in enumerate(loops) if loop.loop_name in reduced), default=-1)
    if not same or not columns or last < 0:
        return
    moving = {n for name in columns for n in block.bound[name].axes()}
    within = [loop for loop in loops[last + 1 :] if loop.loop_name in moving and not _is_thread(loop)]
    others = [loop for loop in loops[: last + 1] if loop.loop_name in moving and not _is_thread(loop)]
    if others or not within or not all(_may_be_shared(block.outputs[n], block, loops[last]) for n in same):
        return
    for number in same:
        _narrow(block, number, columns)
    kept = DictionaryAttr(
        {
            "outputs": ArrayAttr([IntegerAttr(n, i64) for n in same]),
            "loops": ArrayAttr([StringAttr(loop.loop_name) for loop in within]),
        }
    )
    block.annotations = DictionaryAttr({**block.notes, CARRIED: kept})


def _is_thread(loop: ForOp) -> bool:
    return loop.loop_kind.startswith("threadIdx")


def _joined_alone(block: BlockOp, combine: Region) -> list[int]:
    """The outputs, by number, that are joined with nothing but such outputs."""
    count = len(block.outputs)
    arguments, last = combine.block.args, combine.block.last_op
    assert last is not None
    needs = [{arguments.index(v) % count for v in _arguments_of(value)} for value in last.operands]
    same = set(range(count))
    while wider := {n for n in same if not needs[n] <= same} or _those_of_the_widest(block, same):
        same -= wider
    return sorted(same)


def _those_of_the_widest(block: BlockOp, same: set[int]) -> set[int]:
    """The outputs that are joined with something else for each element of what the block writes."""
    written = {name for n in same for e in block.write_indices[n] for name in e.axes()}
    return {n for n in same if written and written <= _read_at(block, n)}


def _read_at(block: BlockOp, number: int) -> set[str]:
    """The iterators that the value joined to an output depends on; all of them where it is more than a load."""
    load = block.yielded[number].owner
    if not isinstance(load, LoadOp) or load.positions or load.conditions:
        return {a.name for a in block.axes}
    return {name for e in load.indices.data for name in e.axes()}


def _columns(block: BlockOp, same: Sequence[int]) -> set[str]:
    """The iterators that outputs are written at, each in a dimension of its own, and their values do not depend on."""
    read = {name for n in same for name in _read_at(block, n)}
    written = [e for n in same for e in block.write_indices[n]]
    wanted = {e.as_axis() for e in written} - read - {None}
    mixed = {name for e in written if e.as_axis() is None for name in e.axes()}
    return {name for name in wanted if name is not None} - mixed


def _arguments_of(value: SSAValue) -> set[SSAValue]:
    """The arguments of a region that a value in it is computed from."""
    found, left = set[SSAValue](), [value]
    while left:
        one = left.pop()
        operands = getattr(one.owner, "operands", None)
        if operands is None:
            found.add(one)
        else:
            left += operands
    return found


def _may_be_shared(buffer: SSAValue, block: BlockOp, reduced: ForOp) -> bool:
    """True for registers that the block alone writes, and others read behind its reduction."""
    if is_argument(buffer) or scope_of(buffer) != "local" or writers(buffer) != [block]:
        return False
    return all(not is_under(load, reduced) and not load.positions for load in reads(buffer))


def _narrow(block: BlockOp, number: int, columns: set[str]) -> None:
    """Write and read an output at 0 in the dimensions of columns."""
    dropped = [d for d, e in enumerate(block.write_indices[number]) if e.as_axis() in columns]

    def at(indices: Sequence[IndexExpr]) -> IndicesAttr:
        return IndicesAttr(tuple(ZERO if d in dropped else e for d, e in enumerate(indices)))

    for load in reads(block.outputs[number]):
        load.indices = at(load.indices.data)
    writes = list(block.writes)
    writes[number] = at(block.write_indices[number])
    block.writes = ArrayAttr(writes)


def carried_once(block: BlockOp) -> tuple[str, ...] | None:
    """The loops over the elements of a row, where the second and third output of a reduction are one for it."""
    kept = block.notes.get(CARRIED)
    if not isinstance(kept, DictionaryAttr):
        return None
    outputs, loops = kept.data["outputs"], kept.data["loops"]
    assert isinstance(outputs, ArrayAttr) and isinstance(loops, ArrayAttr)
    return tuple(name.data for name in loops) if [n.value.data for n in outputs] == [1, 2] else None


def last_iterations(block: BlockOp, number: int) -> list[IndexExpr]:
    """The conditions of the iterations that store an output of a reduction; none where all do."""
    kept = block.notes.get(CARRIED)
    if not isinstance(kept, DictionaryAttr):
        return []
    outputs, loops = kept.data["outputs"], kept.data["loops"]
    assert isinstance(outputs, ArrayAttr) and isinstance(loops, ArrayAttr)
    if number not in [n.value.data for n in outputs]:
        return []
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    return [axis(name.data) - (sizes[name.data] - 1) for name in loops]
