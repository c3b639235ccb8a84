"""The meaning of networks: every operator by the interpreter of its tensor expressions, over NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..backends.arrays import as_array
from ..dialects.graph import ApplyOp, ConstantOp, GroupOp, OptionsAttr, YieldOp
from ..dialects.interpret.te import run_te
from ..te import create_module
from .module import Array, NetworkModule
from .operator import Kind, apply, operator
from .types import dtype_of, placeholder, shape_of


def evaluate(net: NetworkModule, feeds: Mapping[str, Any]) -> list[Array]:
    """Evaluate a network on inputs by name; ValueError where one is missing or misfits, TypeError for no array."""
    arguments = net.function.body.block.args
    unknown = set(feeds) - set(net.input_names)
    if unknown:
        raise ValueError(f"network '{net.name}' has no input '{min(unknown)}'; it has {', '.join(net.input_names)}")
    values: dict[SSAValue, Array] = {}
    for name, argument in zip(net.input_names, arguments, strict=True):
        if name not in feeds:
            raise ValueError(f"network '{net.name}': input '{name}' is missing")
        array = as_array(feeds[name], f"network '{net.name}': input '{name}'")
        if array.shape != shape_of(argument) or array.dtype != dtype_of(argument):
            raise ValueError(
                f"network '{net.name}': input '{name}' must be {dtype_of(argument)} of shape {shape_of(argument)}, "
                f"got {array.dtype} of shape {array.shape}"
            )
        values[argument] = array
    return evaluate_block(net, net.function, values)


def evaluate_block(net: NetworkModule, function: FuncOp, values: dict[SSAValue, Array]) -> list[Array]:
    """Evaluate a function, `values` being its arguments."""
    return _run(net, function.body.block.ops, values)


def _run(net: NetworkModule, ops: Iterable[Operation], values: dict[SSAValue, Array]) -> list[Array]:
    for op in ops:
        if isinstance(op, ReturnOp | YieldOp):
            return [values[v] for v in op.operands]
        if isinstance(op, ConstantOp):
            values[op.result] = net.constant_values(op)
        elif isinstance(op, ApplyOp):
            results = apply_arrays(op, [values[v] for v in op.inputs])
            values.update(zip(op.outputs, results, strict=True))
        elif isinstance(op, GroupOp):
            inner: dict[SSAValue, Array] = dict(zip(op.body.block.args, [values[v] for v in op.inputs], strict=True))
            values.update(zip(op.outputs, _run(net, op.body.block.ops, inner), strict=True))
        else:
            raise TypeError(f"operation '{op.name}' has no place in a network")
    return []


def apply_arrays(op: ApplyOp, arrays: Sequence[Array]) -> list[Array]:
    """Evaluate one operator on arrays."""
    name = op.operator.data
    if operator(name).kind is Kind.VIEW:
        return [arrays[0].reshape(shape_of(op.outputs[0]))]
    return run_te(expressions(name, tuple(v.type for v in op.inputs), op.options), list(arrays))


@lru_cache(maxsize=512)
def expressions(name: str, kinds: tuple[Attribute, ...], options: OptionsAttr) -> ModuleOp:
    """Return an operator on tensors of these types as tensor expressions; networks repeat themselves."""
    tensors = [placeholder(kind, f"p{k}") for k, kind in enumerate(kinds)]
    return create_module([*tensors, *apply(name, tensors, options.values)])
