"""Finding loops and blocks by name, and the questions every primitive asks about a nest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, Region, SSAValue

from ...dialects.index import IndexExpr, Ranges
from ...dialects.loop import AllocOp, BlockOp, ForOp, IfOp, VersionsOp, blocks_in, loops_in
from ..lower.lower_te_to_loop import argument_name
from ..primitive import Primitive, ScheduleError


def functions(module: ModuleOp) -> list[FuncOp]:
    """Return the functions of a module that have a body."""
    return [f for f in module.ops if isinstance(f, FuncOp) and f.body.blocks]


def functions_on_loops(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that loops, blocks or allocations of the loop dialect are in."""
    return [f for f in functions(module) if any(isinstance(op, ForOp | BlockOp | AllocOp) for op in f.body.block.ops)]


def find_block(step: Primitive[object] | object, module: ModuleOp, name: str) -> BlockOp:
    """The block called `name`; ScheduleError listing the blocks where there is none, or where functions share it."""
    found: list[tuple[FuncOp, BlockOp]] = []
    for func in functions(module):
        block = next((block for block in blocks_in(func) if block.block_name == name), None)
        if block is not None:
            found.append((func, block))
    if len(found) > 1:
        where = " and ".join(f"'{func.sym_name.data}'" for func, _ in found)
        raise ScheduleError(step, f"functions {where} each have a block '{name}'; schedule one function a module")
    if found:
        return found[0][1]
    names = [block.block_name for func in functions(module) for block in blocks_in(func)]
    known = ", ".join(names) or "none: is this lowered to the loop dialect?"
    raise ScheduleError(step, f"no block is called '{name}'; blocks here: {known}")


def find_loop(step: Primitive[object] | object, block: BlockOp, name: str) -> ForOp:
    """Find the loop called `name` around `block`; ScheduleError listing the loops where there is none."""
    loops = block.enclosing_loops
    for loop in loops:
        if loop.loop_name == name:
            return loop
    known = ", ".join(loop.loop_name for loop in loops) or "none"
    raise ScheduleError(step, f"block '{block.block_name}' is in no loop '{name}'; loops around it: {known}", at=block)


def buffer_name(buffer: SSAValue) -> str:
    """Return the name of an argument or an allocation."""
    owner = buffer.owner
    if isinstance(owner, AllocOp):
        return owner.label.data
    if isinstance(owner, IrBlock) and isinstance(func := owner.parent_op(), FuncOp):
        return argument_name(func, owner.args.index(buffer))
    return buffer.name_hint or ""


def function_of(op: Operation) -> FuncOp:
    """Return the function around an operation."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    assert parent is not None
    return parent


def buffer_names(func: FuncOp) -> set[str]:
    """Return the names of all arguments and allocations."""
    args = {buffer_name(a) for a in func.body.block.args}
    return args | {op.label.data for op in func.body.block.ops if isinstance(op, AllocOp)}


def block_names(func: FuncOp) -> set[str]:
    """Return the names of all blocks."""
    return {b.block_name for b in blocks_in(func)}


def loop_names_around(loop: ForOp) -> set[str]:
    """Return the names a new loop in the place of `loop` must not take: the loops around and below it, and itself."""
    names = {inner.loop_name for inner in loops_in(loop)}
    parent: Operation | None = loop
    while isinstance(parent, ForOp):
        names.add(parent.loop_name)
        parent = parent.parent_op()
    return names


NOT_IN_NAMES = "#"
"""A character of no identifier, so of no name that a person chose or a schedule step made."""


def made_up(name: str, number: int) -> str:
    """Make up a name for an axis of an analysis or a lowering, which no loop, iterator or axis in the IR can have."""
    return f"{name}{NOT_IN_NAMES}{number}"


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or `wanted_0`, `wanted_1`, ... where taken."""
    return _first_free((f"{wanted}_{number}" for number in count()), wanted, taken)


def fresh_buffer_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or `wanted2`, `wanted3`, ...: buffers are SSA names, which lose a suffix of digits behind `_`."""
    return _first_free((f"{wanted}{number}" for number in count(2)), wanted, taken)


def _first_free(others: Iterator[str], wanted: str, taken: Iterable[str]) -> str:
    used = set(taken)
    return next(name for name in chain((wanted,), others) if name not in used)


def only_child(loop: ForOp | IfOp | VersionsOp) -> Operation | None:
    """Return the single loop or block in `loop`, None where there are several."""
    first = loop.body.block.first_op
    return first if first is not None and first is loop.body.block.last_op else None


def ranges_of(loops: Iterable[ForOp]) -> dict[str, tuple[int, int]]:
    """Inclusive ranges of the loops' values."""
    return {loop.loop_name: (0, loop.size - 1) for loop in loops}


def widest_ranges(loops: Iterable[ForOp]) -> dict[str, tuple[int, int]]:
    """Inclusive ranges that hold for every loop of a name: those of one path, or of nests beside each other."""
    last: dict[str, int] = {}
    for loop in loops:
        last[loop.loop_name] = max(loop.size - 1, last.get(loop.loop_name, 0))
    return {name: (0, value) for name, value in last.items()}


def loops_reduced(block: BlockOp) -> set[str]:
    """Return the names of the loops that reduce iterators of a block are bound to."""
    return {n for a, e in zip(block.axes, block.bindings.data, strict=True) if a.reduce for n in e.axes()}


def reduces_over(loop: ForOp) -> list[BlockOp]:
    """Return the blocks below `loop` with a reduce iterator bound to it."""
    return [block for block in blocks_in(loop) if loop.loop_name in loops_reduced(block)]


def is_reduce_loop(loop: ForOp) -> bool:
    """True where some block below has a reduce iterator bound to the loop."""
    return bool(reduces_over(loop))


def substitute_loops(root: ForOp | BlockOp, values: Mapping[str, IndexExpr]) -> None:
    """Replace loop names by expressions in the bindings and predicates of every block at or below `root`."""
    for block in [root] if isinstance(root, BlockOp) else blocks_in(root):
        bindings = [e.substitute(values) for e in block.bindings.data]
        where = [e.substitute(values) for e in block.conditions]
        block.rebind(bindings, simplify_conditions(where))


def simplify_conditions(conditions: Iterable[IndexExpr], ranges: Ranges | None = None) -> list[IndexExpr]:
    """Conditions `e >= 0` without repetition and, where `ranges` are given, without those that always hold."""
    kept: list[IndexExpr] = []
    for condition in conditions:
        if condition in kept or (condition.is_constant and condition.const >= 0):
            continue
        if ranges is not None and condition.bounds(ranges)[0] >= 0:
            continue
        kept.append(condition)
    return kept


def require_plain(step: Primitive[object] | object, loop: ForOp) -> None:
    """Refuse a loop that already has a kind or annotations: its marks would be lost or mean something else."""
    if loop.loop_kind != "serial":
        rule = f"loop '{loop.loop_name}' must be serial, it is {loop.loop_kind}; do this step before marking the loop"
        raise ScheduleError(step, rule, at=loop)
    if loop.notes:
        rule = f"loop '{loop.loop_name}' must carry no annotation, it has {', '.join(sorted(loop.notes))}"
        raise ScheduleError(step, rule, at=loop)


def move_body(source: ForOp, target: IrBlock) -> None:
    """Move all loops and blocks in `source` to the end of `target`."""
    block = source.body.block
    for op in list(block.ops):
        target.add_op(block.detach_op(op))


def replace_loop(old: ForOp, new: Operation) -> None:
    """Put `new` in the place of `old`, whose body has been moved away."""
    parent = old.parent_block()
    assert parent is not None
    parent.insert_op_before(new, old)
    parent.detach_op(old)


def new_loop(name: str, extent: int, children: Iterable[Operation] = (), kind: str = "serial") -> ForOp:
    """Make a loop around `children`, which must stand nowhere else."""
    return ForOp(name, extent, Region(IrBlock(list(children))), kind)


def nest_around(inner: Operation, loops: Iterable[tuple[str, int]]) -> Operation:
    """`inner` in new serial loops, the first outermost."""
    for name, extent in reversed(list(loops)):
        inner = new_loop(name, extent, [inner])
    return inner
