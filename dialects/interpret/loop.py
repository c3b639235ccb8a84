"""The meaning of the loop dialect, as a checking interpreter: the oracle that every schedule step is tested against.

The function becomes Python source, about a microsecond for each scalar operation. It runs strictly: an index outside of
its buffer, a read of an element nobody wrote and a conditional read at a bad place are errors. Loops whose iterations
may run at once run backwards, and a buffer that is used inside one loop only is forgotten at each of its iterations,
which is what lowering relies on when it keeps just the region one iteration needs. Where it is decided which elements
lanes touch, each block runs for all of them before the next one does, and elements that lie otherwise are an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..buffers import callers_shape
from ..combiner import combine_op, identity
from ..element import dtype_name, is_unsigned
from ..errors import Error
from ..index import ZERO, IndexExpr, Lookup, axis, flatten
from ..index_text import python_source
from ..lookups import looked_up, lookups_of
from ..loop import AllocOp, AtOp, BlockOp, ForOp, IfOp, LoadOp, VersionsOp, blocks_in, buffer_shape
from ..loop_lanes import LanesAttr, is_in_lanes, lanes_around, step_of
from ..strides import row_major
from ..te import IndexOp, PredicateOp, YieldOp
from .scalar import FUNCTIONS, python_expression, wrapped

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*|_[A-Za-z_][A-Za-z0-9_]*")
"""Names that are words of Python as they are; `_0` begins none of them."""


class InterpretationError(Error):
    """The program did something it must not: an index outside of its buffer, a read before a write."""


def run_loops(module: ModuleOp | FuncOp, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run the (first) function on loops in `module` on `inputs`, and return its outputs.

    Floats are computed in double precision; outputs have the types of the function's output arguments (those after the
    inputs). InterpretationError where the program reads or writes what it must not.
    """
    func = module if isinstance(module, FuncOp) else next(f for f in module.ops if isinstance(f, FuncOp))
    source = _Source(func)
    names: dict[str, Any] = dict(FUNCTIONS) | {"fail": _fail}
    exec(compile("\n".join(source.lines), "<loops>", "exec"), names)
    arguments = list(func.body.block.args)
    flat: list[list[Any]] = [np.asarray(a).reshape(-1).tolist() for a in inputs]
    for argument in arguments[len(inputs) :]:
        flat.append([None] * int(np.prod(buffer_shape(argument), dtype=np.int64)))
    names["run"](*flat)
    outputs = []
    for argument, values in zip(arguments[len(inputs) :], flat[len(inputs) :], strict=True):
        if None in values:
            position = values.index(None)
            raise InterpretationError(f"element {position} of output '{argument.name_hint}' is never written")
        assert isinstance(argument.type, MemRefType)
        dtype = dtype_name(argument.type.element_type)
        exact = dtype if is_unsigned(argument.type.element_type) else None  # NumPy takes large integers for floats
        with np.errstate(over="ignore"):
            outputs.append(np.array(values, exact).astype(dtype).reshape(callers_shape(argument)))
    return outputs


def _fail(what: str, name: str, index: object) -> None:
    raise InterpretationError(f"{what} of '{name}' at {index}")


def owning_loops(func: FuncOp) -> dict[SSAValue, ForOp | None]:
    """Return for each allocated buffer the innermost loop around all blocks that use it.

    What a block reduces into lives outside of the loops that it reduces over, whether another block reads it or not.
    """
    paths: dict[SSAValue, list[ForOp]] = {}
    for block in blocks_in(func):
        around = block.enclosing_loops
        outputs = tuple(block.outputs)
        for buffer in dict.fromkeys((*outputs, *(load.buffer for load in block.loads))):
            if not isinstance(buffer.owner, AllocOp):
                continue
            path = outside_reduction(block, around) if buffer in outputs else around
            known = paths.get(buffer)
            if known is None:
                paths[buffer] = path
            else:
                shared = 0
                while shared < min(len(known), len(path)) and known[shared] is path[shared]:
                    shared += 1
                paths[buffer] = known[:shared]
    return {buffer: path[-1] if path else None for buffer, path in paths.items()}


def _is_joined(loop: ForOp) -> bool:
    """True for iterations whose partial results are joined: who comes first says where a sum begins."""
    reduced = (block.bound[a.name] for block in blocks_in(loop) for a in block.axes if a.reduce)
    return any(loop.loop_name in bound.axes() for bound in reduced)


def outside_reduction(block: BlockOp, path: list[ForOp]) -> list[ForOp]:
    """Return the loops outside of the first one that the block reduces over; all of them where it is no reduction."""
    reduced = {name for a in block.axes if a.reduce for name in block.bound[a.name].axes()}
    first = next((k for k, loop in enumerate(path) if loop.size > 1 and loop.loop_name in reduced), len(path))
    return path[:first]


class _Source:
    """Writes one function as Python source."""

    def __init__(self, func: FuncOp) -> None:
        self.lines: list[str] = []
        self.buffers: dict[SSAValue, str] = {}
        self.counter = 0
        self.lanes: ForOp | None = None
        """The loop around whose iterations run block by block."""
        self.owned: dict[ForOp, list[SSAValue]] = {}
        for buffer, loop in owning_loops(func).items():
            if loop is not None and isinstance(buffer.owner, AllocOp) and buffer.owner.layout is None:
                self.owned.setdefault(loop, []).append(buffer)
        for argument in func.body.block.args:
            self.buffers[argument] = f"b{len(self.buffers)}"
        self.lines.append(f"def run({', '.join(self.buffers.values())}):")
        self.lines.append(" pass")
        for op in func.body.block.ops:
            self.statement(op, 1)

    def emit(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def fresh(self) -> str:
        self.counter += 1
        return f"t{self.counter}"

    def statement(self, op: Operation, depth: int) -> None:
        if isinstance(op, AllocOp):
            self.buffers[op.buffer] = f"b{len(self.buffers)}"
            self.emit(depth, f"{self.buffers[op.buffer]} = [None] * {_size(op.buffer)}")
        elif isinstance(op, ForOp):
            self.loop(op, depth)
        elif isinstance(op, BlockOp):
            self.block(op, depth)
        elif isinstance(op, IfOp | VersionsOp):
            if isinstance(op, IfOp):
                self.emit(depth, f"if {_all_hold(op.conditions, _loop)}:")
                depth += 1
            for child in op.body.block.ops:
                self.statement(child, depth)
        elif isinstance(op, AtOp):
            raise ValueError("an expanded pipeline keeps values in the registers of threads, which are not interpreted")

    def loop(self, op: ForOp, depth: int) -> None:
        if op.written is None and any(block.lanes is not None for block in _in_lanes(op)):
            self.lanes = op
            for child in op.body.block.ops:
                self.statement(child, depth)
            self.lanes = None
            return
        counted = f"range({op.size})"
        at_once = op.loop_kind == "parallel" or "Idx" in op.loop_kind or op.loop_kind == "vthread"
        if at_once and not _is_joined(op):
            counted = f"reversed({counted})"
        self.emit(depth, f"for {_loop(op.loop_name)} in {counted}:")
        for buffer in self.owned.get(op, ()):
            self.emit(depth + 1, f"{self.buffers[buffer]}[:] = [None] * {_size(buffer)}")
        self.emit(depth + 1, "pass")
        if op.ends is not None:
            self.emit(depth + 1, f"if not ({_all_hold(op.ends.data, _loop)}): continue")
        for child in op.body.block.ops:
            self.statement(child, depth + 1)

    def block(self, op: BlockOp, depth: int) -> None:
        if self.lanes is not None:
            self.emit(depth, f"for {_loop(self.lanes.loop_name)} in range({self.lanes.size}):")
            depth += 1
        for condition in op.conditions:
            self.emit(depth, f"if {python_source(condition, _loop)} >= 0:")
            depth += 1
        for axis_, expr in zip(op.axes, op.bindings.data, strict=True):
            name = _iterator(axis_.name)
            self.emit(depth, f"{name} = {python_source(expr, _loop)}")
            what = f"{f'iterator {axis_.name}'!r}, {op.block_name!r}"
            self.emit(depth, f"if not 0 <= {name} < {axis_.extent}: fail({what}, {name})")
        values = self.body(list(op.body.block.ops), {}, depth)
        targets = []
        for output, write, lanes in zip(op.outputs, op.write_indices, op.write_lanes, strict=True):
            targets.append(self.element(output, write, depth))
            self.as_decided(op, output, write, lanes, depth)
        if not op.is_reduction:
            for target, value in zip(targets, values, strict=True):
                self.emit(depth, f"{target} = {value}")
            return
        if op.has_init:
            first = " and ".join(f"{_iterator(a.name)} == 0" for a in op.axes if a.reduce)
            self.emit(depth, f"if {first}:")
            for k, target in enumerate(targets):
                self.emit(depth + 1, f"{target} = {initial_value(op, k)!r}".replace("inf", "float('inf')"))
        for target, output in zip(targets, op.outputs, strict=True):
            self.emit(depth, f"if {target} is None: fail('update before initialisation', {output.name_hint!r}, ())")
        if op.combiner.data == "custom":
            assert op.combine is not None
            arguments: dict[SSAValue, str] = dict(zip(op.combine.block.args, [*targets, *values], strict=True))
            joined = self.body(list(op.combine.block.ops), arguments, depth)
            self.emit(depth, f"{', '.join(targets)}, = {', '.join(joined)},")
            return
        for target, value, output in zip(targets, values, op.outputs, strict=True):
            self.emit(depth, f"{target} = {_combined(op.combiner.data, output, target, value)}")

    def body(self, ops: list[Operation], names: dict[SSAValue, str], depth: int) -> list[str]:
        for op in ops:
            if isinstance(op, YieldOp):
                return [names[v] for v in op.values]
            name = names[op.results[0]] = self.fresh()
            if isinstance(op, LoadOp):
                self.load(op, name, [names[v] for v in op.positions], depth)
            elif isinstance(op, IndexOp):
                self.emit(depth, f"{name} = {wrapped(python_source(op.value, _iterator), op.result.type)}")
            elif isinstance(op, PredicateOp):
                self.emit(depth, f"{name} = {_all_hold(op.where.data, _iterator)}")
            else:
                self.emit(depth, f"{name} = {python_expression(op, [names[v] for v in op.operands])}")
        raise AssertionError("a body ends with a yield")

    def load(self, op: LoadOp, name: str, positions: list[str], depth: int) -> None:
        places = {
            k: axis(self.position(found, positions[k], depth)) for k, found in lookups_of(op.indices.data).items()
        }
        indices = [looked_up(e, places) for e in op.indices.data]
        if op.conditions:
            assert isinstance(op.buffer.type, MemRefType)
            zero = "0" if isinstance(op.buffer.type.element_type, IntegerType) else "0.0"
            self.emit(depth, f"{name} = {zero}")
            self.emit(depth, f"if {_all_hold(op.conditions, _iterator)}:")
            depth += 1
        self.emit(depth, f"{name} = {self.element(op.buffer, indices, depth)}")
        self.emit(depth, f"if {name} is None: fail('read of an unwritten element', {op.buffer.name_hint!r}, ())")
        block = op.parent_op()
        assert isinstance(block, BlockOp)
        if not places:  # lanes of which each reads where it likes are scattered, or refused when they are written
            self.as_decided(block, op.buffer, op.indices.data, op.lanes, depth)

    def position(self, found: Lookup, value: str, depth: int) -> str:
        """Clamp a position that the program reads; return the name of the axis that stands for it."""
        name = f"read_{self.fresh()}"
        self.emit(depth, f"{_iterator(name)} = min(max({value}, 0), {found.extent - 1})")
        return name

    def as_decided(
        self, block: BlockOp, buffer: SSAValue, indices: Sequence[IndexExpr], lanes: LanesAttr | None, depth: int
    ) -> None:
        """Check that lanes touch the elements that they are said to, by where these lie."""
        loop = lanes_around(block)
        if lanes is None or not isinstance(loop, ForOp):
            return
        offset = _position(buffer, [e.substitute(block.bound) for e in indices])
        first = offset.substitute({loop.loop_name: ZERO})
        step = str(step_of(lanes.data.usual))
        for kind, copies in reversed(lanes.data.other):
            here = " or ".join(f"({_all_hold(conditions, _loop)})" for conditions in copies)
            step = f"({step_of(kind)} if {here} else {step})"
        name, lane = self.fresh(), _loop(loop.loop_name)
        self.emit(depth, f"{name} = {step}")
        apart = f"{python_source(offset, _loop)} - ({python_source(first, _loop)})"
        where = f"{buffer.name_hint!r}, f'lane {{{lane}}}'"
        self.emit(depth, f"if {name} is not None and {apart} != {lane} * {name}:")
        self.emit(depth + 1, f"fail({f'access {lanes.data}'!r}, {where})")

    def element(self, buffer: SSAValue, indices: Sequence[IndexExpr], depth: int) -> str:
        """Return the element as Python source, after a check of its indices."""
        shape = buffer_shape(buffer)
        if not shape:
            return f"{self.buffers[buffer]}[0]"
        names = [f"x{d}" for d in range(len(shape))]
        for name, expr in zip(names, indices, strict=True):
            self.emit(depth, f"{name} = {python_source(expr, _iterator)}")
        inside = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, shape, strict=True))
        self.emit(depth, f"if not ({inside}): fail('index outside', {buffer.name_hint!r}, ({', '.join(names)},))")
        offset = self.fresh()
        self.emit(depth, f"{offset} = {python_source(flatten([axis(n) for n in names], row_major(shape)))}")
        return f"{self.buffers[buffer]}[{offset}]"


def _in_lanes(loop: ForOp) -> list[BlockOp]:
    """The blocks in a loop whose iterations are lanes; none where they are not."""
    return list(blocks_in(loop)) if loop.size > 1 and is_in_lanes(loop) else []


def _position(buffer: SSAValue, indices: Sequence[IndexExpr]) -> IndexExpr:
    """The flat position of an element in a buffer as it is placed."""
    if isinstance(buffer.owner, AllocOp) and buffer.owner.layout is not None:
        return buffer.owner.layout.offset(indices)
    return flatten(indices, row_major(buffer_shape(buffer)))


def initial_value(op: BlockOp, position: int) -> float | int:
    """Return what a reduction block initialises its output with."""
    if op.identity is not None:
        return constant_value(op.identity.data[position])
    output = op.outputs[position]
    assert isinstance(output.type, MemRefType)
    return identity(op.combiner.data, output.type.element_type)


def constant_value(attribute: Attribute) -> float | int:
    """Return the number in a float or integer attribute."""
    assert isinstance(attribute, FloatAttr | IntegerAttr)
    value: float | int = attribute.value.data
    return value


def _combined(combiner: str, output: SSAValue, old: str, new: str) -> str:
    assert isinstance(output.type, MemRefType)
    element = output.type.element_type
    zero = ConstantOp(IntegerAttr(0, element) if isinstance(element, IntegerType) else FloatAttr(0.0, element))
    op = combine_op(combiner, element)
    joined = op.create(operands=[zero.result, zero.result], result_types=[element])
    return python_expression(joined, [old, new])


def _all_hold(conditions: Sequence[IndexExpr], name: Callable[[str], str]) -> str:
    return " and ".join(f"{python_source(c, name)} >= 0" for c in conditions) or "True"


def _size(buffer: SSAValue) -> int:
    return int(np.prod(buffer_shape(buffer), dtype=np.int64))


def _loop(name: str) -> str:
    return f"l_{_word(name)}"


def _iterator(name: str) -> str:
    return f"v_{_word(name)}"


def _word(name: str) -> str:
    """Return a name as part of Python's: equal ones give equal words, different ones different words."""
    return name if _WORD.fullmatch(name) else f"_0{name.encode().hex()}"
