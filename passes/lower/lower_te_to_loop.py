"""Lower a DAG of tensor expressions to loops: one nest and one block per expression, every tensor a buffer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType, ModuleOp, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects.attributes import Axis, IndicesAttr
from ...dialects.index import IndexExpr
from ...dialects.index import axis as axis_expr
from ...dialects.loop import AllocOp, BlockOp, ForOp, LoadOp
from ...dialects.te import ComputeOp, ReadOp, YieldOp
from ...dialects.workload import erase_unread, verify_function
from ._shared_divisors import let_softmax_multiply


@dataclass(frozen=True)
class LowerTeToLoop(ModulePass):
    """`%c = lw_te.compute "c" [i = n, reduce k = m] add { body }` -> a buffer `c` and

    `for i in n { for k in m { block c (i in n = i, reduce k in m = k) writes %c[i] add { body } } }`

    The results of the function become its last arguments, named after their expressions. An expression that none of
    them hangs on has no nest: nobody would see it run, and on a GPU it would be a launch of its own. Functions that are
    not on tensors stay as they are. An axis that is called as a part of another one would be (`i0` beside `i`), or as
    several fused (`i_j`), has its loop and iterator called `i0x`: schedules count on what steps call the loops.
    """

    name = "lw-lower-te-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_te_to_loop(op)

    def describe(self) -> str:
        return "Turn each tensor expression into a nest of loops around one block."


def lower_te_to_loop(module: ModuleOp) -> None:
    """Lower every function on tensors in `module`, in place; PassFailedException for one that is no workload."""
    for func in [f for f in module.ops if isinstance(f, FuncOp)]:
        types = (*func.function_type.inputs, *func.function_type.outputs)
        if func.body.blocks and types and all(isinstance(t, TensorType) for t in types):
            try:
                verify_function(func)
            except VerifyException as error:
                raise PassFailedException(f"lw-lower-te-to-loop: {error}") from None
            erase_unread(func.body.block)
            _lower_function(func)


def argument_name(func: FuncOp, position: int) -> str:
    """The name a person gave to an argument: its `lw.name`, else its SSA name."""
    if func.arg_attrs is not None:
        named = func.arg_attrs.data[position].data.get("lw.name")
        if isinstance(named, StringAttr):
            return named.data
    return func.body.block.args[position].name_hint or f"arg{position}"


def _lower_function(func: FuncOp) -> None:
    old = func.body.block
    returned = old.last_op
    assert isinstance(returned, ReturnOp)
    names = [argument_name(func, i) for i in range(len(old.args))]
    output_names = _output_names(returned, names)
    input_types = [_memref(t) for t in func.function_type.inputs]
    output_types = [_memref(v.type) for v in returned.arguments]
    body = Block(arg_types=[*input_types, *output_types])
    for argument, name in zip(body.args, (*names, *output_names), strict=True):
        argument.name_hint = name
    buffers: dict[SSAValue, SSAValue] = dict(zip(old.args, body.args, strict=False))
    copies: list[tuple[SSAValue, SSAValue, str]] = []
    for value, argument, name in zip(returned.arguments, body.args[len(names) :], output_names, strict=True):
        if value in buffers:
            copies.append((value, argument, name))
        else:
            buffers[value] = argument
    allocs, nests, labels = _nests(old, buffers, {*names, *output_names})
    nests += [_copy(buffers[value], out, _fresh(name, labels)) for value, out, name in copies]
    body.add_ops([*allocs, *nests, ReturnOp()])
    attributes = [*(func.arg_attrs or [DictionaryAttr({"lw.name": StringAttr(n)}) for n in names])]
    attributes += [DictionaryAttr({"lw.name": StringAttr(n), "lw.output": UnitAttr()}) for n in output_names]
    new = FuncOp(
        func.sym_name.data,
        ([*input_types, *output_types], []),
        Region(body),
        func.sym_visibility,
        arg_attrs=ArrayAttr(attributes),
    )
    new.attributes |= func.attributes
    block = func.parent_block()
    assert block is not None
    block.insert_op_before(new, func)
    block.erase_op(func)


def _nests(
    function: Block, buffers: dict[SSAValue, SSAValue], used: set[str]
) -> tuple[list[Operation], list[Operation], set[str]]:
    """The allocations and nests of a function's stages, and the labels of these; `buffers` gets what they compute.

    No buffer is called as one that is `used`.
    """
    allocs: list[Operation] = []
    nests: list[Operation] = []
    labels: set[str] = set()
    for op in function.ops:
        if isinstance(op, ReturnOp):
            continue
        assert isinstance(op, ComputeOp)
        let_softmax_multiply(op)
        label = _fresh(op.label.data, labels)
        labels.add(label)
        for result in op.outputs:
            if result not in buffers:
                alloc = AllocOp(_fresh(label, used), _memref(result.type))
                used.add(alloc.label.data)
                allocs.append(alloc)
                buffers[result] = alloc.buffer
        nests.append(_nest(op, label, buffers))
    return allocs, nests, labels


def _output_names(returned: ReturnOp, names: list[str]) -> list[str]:
    used = set(names)
    result: list[str] = []
    for value in returned.arguments:
        owner = value.owner
        name = _fresh(owner.label.data if isinstance(owner, ComputeOp) else "output", used)
        used.add(name)
        result.append(name)
    return result


def _fresh(name: str, used: set[str]) -> str:
    """`name`, or `name1`, `name2`, ... where taken: a suffix of digits behind `_` would be lost from SSA names."""
    if name not in used:
        return name
    number = 1
    while f"{name}{number}" in used:
        number += 1
    return f"{name}{number}"


def _memref(tensor: Attribute) -> MemRefType[Attribute]:
    assert isinstance(tensor, TensorType)
    return MemRefType(tensor.get_element_type(), tensor.get_shape())


def _nest(op: ComputeOp, label: str, buffers: dict[SSAValue, SSAValue]) -> Operation:
    called = _loop_names([a.name for a in op.axes.data])
    axes = tuple(a._replace(name=called[a.name]) for a in op.axes.data)
    spatial = tuple(axis_expr(called[a.name]) for a in op.spatial_axes)
    combine = op.combine.clone() if op.combine is not None else None
    block = BlockOp(
        label,
        axes,
        [axis_expr(a.name) for a in axes],
        [buffers[o] for o in op.outputs],
        [spatial] * len(op.outputs),
        _body(op, buffers, {name: axis_expr(new) for name, new in called.items() if new != name}),
        op.combiner.data,
        identity=op.identity.data if op.identity is not None else None,
        combine=combine,
    )
    return _wrap(block, axes)


def _wrap(block: BlockOp, axes: tuple[Axis, ...]) -> Operation:
    inner: Operation = block
    for axis in reversed(axes):
        inner = ForOp(axis.name, axis.extent, Region(Block([inner])))
    return inner


def _loop_names(names: Sequence[str]) -> dict[str, str]:
    """Name the loops of axes as these, but for names that splitting or fusing other ones would make."""
    called: dict[str, str] = {}
    for name in names:
        part = "|".join(re.escape(other) + r"\d*" for other in names if other != name)
        new = name
        if part and re.fullmatch(f"(?:{part})(?:_(?:{part}))*", name):
            new = name + "x"
            while new in names or new in called.values():
                new += "x"
        called[name] = new
    return called


def _body(op: ComputeOp, buffers: dict[SSAValue, SSAValue], renamed: Mapping[str, IndexExpr]) -> Region:
    values: dict[SSAValue, SSAValue] = {}
    block = Block()
    for inner in op.body.block.ops:
        if isinstance(inner, ReadOp):
            indices, where = ([e.substitute(renamed) for e in es] for es in (inner.indices.data, inner.conditions))
            positions = [values[v] for v in inner.positions]
            load = LoadOp(buffers[inner.tensor], indices, where, positions=positions)
            load.result.name_hint = inner.result.name_hint
            values[inner.result] = load.result
            block.add_op(load)
            continue
        copy = inner.clone(values)
        for key, exprs in copy.properties.items():
            if renamed and isinstance(exprs, IndicesAttr):
                copy.properties[key] = IndicesAttr(tuple(e.substitute(renamed) for e in exprs.data))
        block.add_op(copy)
    return Region(block)


def _copy(source: SSAValue, destination: SSAValue, label: str) -> Operation:
    assert isinstance(source.type, MemRefType)
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(source.type.get_shape()))
    indices = tuple(axis_expr(a.name) for a in axes)
    load = LoadOp(source, indices)
    body = Region(Block([load, YieldOp.create(operands=[load.result])]))
    return _wrap(BlockOp(label, axes, indices, [destination], [indices], body), axes)
