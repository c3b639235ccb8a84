"""The nest of one candidate, read from the IR that its schedule makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.element import element_bytes
from ...dialects.intrinsics import find_intrinsic
from ...dialects.loop import AllocOp, BlockOp, ForOp, LoadOp, buffer_shape, scope_of
from ...dialects.target import Target, target_of
from ..analysis.matrix_product import TENSORIZE
from ..analysis.nest import buffer_name, functions
from ..analysis.placement import place_buffers
from .index import Cap, Index, from_ir
from .nest import Access, Buffer, Loop, Nest, SizedAxis, Stage
from .sizes import Size

KIND_OF = {
    "arith.addf": "add",
    "arith.subf": "add",
    "arith.negf": "add",
    "arith.mulf": "multiply",
    "arith.divf": "divide",
    "arith.remf": "divide",
    "arith.maximumf": "compare",
    "arith.minimumf": "compare",
    "arith.maxnumf": "compare",
    "arith.minnumf": "compare",
    "arith.cmpf": "compare",
    "math.absf": "compare",
    "math.fma": "multiply",
}
_COMBINING = {"add": "add", "mul": "multiply", "max": "compare", "min": "compare"}
_CONVERSIONS = ("ext", "trunc", "tofp", "tosi", "toui", "bitcast", "index_cast")
_FREE = ("arith.select", "arith.constant", "lw_te.index", "lw_te.predicate", "lw_te.yield", "lw_loop.load")


def nest_of_candidate(module: ModuleOp, target: Target) -> Nest:
    """The nest of a module on loops to which no step is applied any more: its buffers are as the lowering has them."""
    nest = nest_of_module(module, target)
    for func in functions(module):
        for buffer, place in place_buffers(func, target.is_gpu).items():
            nest.buffers[buffer_name(buffer)].kept = list(place.extents)
    return nest


def nest_of_module(module: ModuleOp, target: Target | None) -> Nest:
    """The nest of a module on loops; ValueError where it is on tensors or holds no function."""
    found = functions(module)
    if not found:
        raise ValueError("the module holds no function with a body")
    root = Loop("", 1)
    nest = Nest(root, {}, target or target_of(module))
    for func in found:
        buffers = _buffers(func)
        nest.buffers.update({b.name: b for b in buffers.values()})
        for op in func.body.block.ops:
            _read(op, root, buffers)
    return nest


def read_nests(
    nest: Nest,
    position: int,
    nests: Sequence[Operation],
    allocs: Sequence[AllocOp],
    buffers: Mapping[SSAValue, Buffer],
) -> None:
    """Put nests of the IR, with what they allocate, into a nest from a position on; `buffers` are those it has."""
    made: dict[SSAValue, Buffer] = {op.buffer: _buffer(op.buffer, op) for op in allocs}
    nest.buffers.update({buffer.name: buffer for buffer in made.values()})
    root = Loop("", 1)
    for op in nests:
        _read(op, root, {**buffers, **made})
    for number, child in enumerate(list(root.body)):
        nest.root.add(child, position + number)


def _numbers(notes: Mapping[str, Attribute]) -> dict[str, Size]:
    return {k: v.value.data for k, v in notes.items() if isinstance(v, IntegerAttr)}


def _instruction(notes: Mapping[str, Attribute]) -> dict[str, Size]:
    """The multiply-adds of the matrix instruction that a loop is one of, under the name of its note."""
    name = notes.get(TENSORIZE)
    found = find_intrinsic(name.data) if isinstance(name, StringAttr) else None
    return {TENSORIZE: found.multiply_adds} if found is not None else {}


def _buffers(func: FuncOp) -> dict[SSAValue, Buffer]:
    values: list[SSAValue] = list(func.body.block.args)
    values += [op.buffer for op in func.body.block.ops if isinstance(op, AllocOp)]
    found: dict[SSAValue, Buffer] = {}
    for value in values:
        if not isinstance(value.type, MemRefType):
            raise ValueError(f"function '{func.sym_name.data}' is not on loops yet: lower it first")
        found[value] = _buffer(value, value.owner)
    return found


def _buffer(value: SSAValue, owner: Operation | Block) -> Buffer:
    assert isinstance(value.type, MemRefType)
    align = owner.alignment if isinstance(owner, AllocOp) else None
    size = element_bytes(value.type.element_type)
    is_argument = not isinstance(owner, AllocOp)
    return Buffer(buffer_name(value), [*buffer_shape(value)], size, scope_of(value), is_argument, align)


def _read(op: Operation, parent: Loop, buffers: dict[SSAValue, Buffer]) -> None:
    if isinstance(op, ForOp):
        loop = Loop(op.loop_name, op.size, op.loop_kind, _numbers(op.notes) | _instruction(op.notes))
        parent.add(loop)
        for child in op.body.block.ops:
            _read(child, loop, buffers)
    elif isinstance(op, BlockOp):
        parent.add(_stage(op, buffers))


def _stage(block: BlockOp, buffers: dict[SSAValue, Buffer]) -> Stage:
    axes = [
        SizedAxis(a.name, a.extent, a.reduce, from_ir(e)) for a, e in zip(block.axes, block.bindings.data, strict=True)
    ]
    writes = zip(block.outputs, block.write_indices, strict=True)
    joining = _joining(block)
    return Stage(
        name=block.block_name,
        iterators=axes,
        writes=[Access(buffers[o], [from_ir(e) for e in w]) for o, w in writes],
        loads=[_load(load, buffers) for load in block.loads],
        arithmetic=dict(Counter(_arithmetic(block.body)) + Counter(joining)),
        combiner=block.combiner.data,
        joining=joining,
        notes=_numbers(block.notes),
        caps=[Cap.of(Index.constant(e.const) - from_ir(e), e.const) for e in block.conditions],
    )


def _load(load: LoadOp, buffers: dict[SSAValue, Buffer]) -> Access:
    return Access(buffers[load.buffer], [from_ir(e) for e in load.indices.data])


def _joining(block: BlockOp) -> dict[str, int]:
    """The arithmetic that joins an instance to the result so far."""
    if not block.is_reduction:
        return {}
    if block.combine is not None:
        return _arithmetic(block.combine)
    return {_COMBINING[block.combiner.data]: 1}


def _arithmetic(body: Region) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for op in body.block.ops:
        if op.name not in _FREE:
            counts[operation_kind(op.name)] += 1
    return dict(counts)


def operation_kind(op: str) -> str:
    """The kind of an operation by its name."""
    if op in KIND_OF:
        return KIND_OF[op]
    if any(part in op for part in _CONVERSIONS):
        return "convert"
    return "special" if op.startswith("math.") else "integer"
