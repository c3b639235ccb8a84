"""Helpers of rewrites of networks: adding operators in front of one, and asking what a tensor depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.graph import ApplyOp, ConstantOp, Option, hint
from ..operator import Kind, is_view, operator
from ..types import dtype_of, infer, shape_of, tensor_type

_MOST_NAMES = 6
"""Operators that the label of a group names, at most."""


@dataclass(frozen=True)
class Before:
    """Adds operators in front of an operation."""

    place: Operation

    def apply(self, name: str, *inputs: SSAValue, label: str | None = None, **options: Any) -> SSAValue:
        """Add an operator with one result and return it."""
        kept = operator(name).options(name, options)
        kinds = infer(name, [v.type for v in inputs], kept)
        op = ApplyOp(name, inputs, kept, kinds, label)
        block = self.place.parent
        assert isinstance(block, Block)
        block.insert_op_before(op, self.place)
        return op.outputs[0]

    def number(self, value: float, dtype: str, label: str = "number") -> SSAValue:
        """Add a constant of one element."""
        constant = ConstantOp(label, tensor_type((), dtype), value)
        block = self.place.parent
        assert isinstance(block, Block)
        block.insert_op_before(constant, self.place)
        return constant.result

    def reshape(self, value: SSAValue, shape: Sequence[int], label: str | None = None) -> SSAValue:
        """Return the value under another shape; itself where it has that shape."""
        return value if shape_of(value) == tuple(shape) else self.apply("reshape", value, shape=shape, label=label)

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        """Return the value in another type; itself where it has that type."""
        return value if dtype_of(value) == dtype else self.apply("cast", value, dtype=dtype)


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Put values in the place of an operation's results, and drop it; names people chose go over to them."""
    for result, value in zip(op.results, values, strict=True):
        if result.name_hint is not None and isinstance(value.owner, ApplyOp):
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    erase(op)


def erase(op: Operation) -> None:
    """Drop an operation whose results nothing reads."""
    assert op.parent is not None
    op.parent.erase_op(op)


def networks(module: ModuleOp) -> list[FuncOp]:
    """Return the functions of a module that may be networks: those with a body of one block."""
    return [op for op in module.ops if isinstance(op, FuncOp) and len(op.body.blocks) == 1]


def applied(module: ModuleOp) -> list[ApplyOp]:
    """Return the operators of all networks in a module, in order, those in groups left out."""
    return [op for f in networks(module) for op in f.body.block.ops if isinstance(op, ApplyOp)]


def is_elementwise(op: Operation) -> TypeGuard[ApplyOp]:
    """True for an elementwise operator that means the same under another shape."""
    if not isinstance(op, ApplyOp):
        return False
    kind = operator(op.operator.data)
    return kind.kind is Kind.ELEMENTWISE and "axis" not in kind.defaults


def producer(value: SSAValue, *names: str) -> ApplyOp | None:
    """Return the operator that gives a value, if it is one of those named."""
    owner = value.owner
    return owner if isinstance(owner, ApplyOp) and owner.operator.data in names else None


def used_once(value: SSAValue) -> bool:
    """True where a value has exactly one use."""
    return value.has_one_use()


def is_constant(value: SSAValue) -> bool:
    """True where a value depends on constants only."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        owner = current.owner
        if isinstance(owner, ConstantOp):
            continue
        if not isinstance(owner, ApplyOp):
            return False
        waiting.extend(owner.inputs)
    return True


def number_of(value: SSAValue) -> float | None:
    """Return the number that a constant of one element is, in whatever shape."""
    while (view := producer(value, "reshape")) is not None:
        value = view.inputs[0]
    owner = value.owner
    return float(owner.value) if isinstance(owner, ConstantOp) and owner.value is not None else None


def either_way(op: ApplyOp) -> tuple[tuple[SSAValue, SSAValue], tuple[SSAValue, SSAValue]]:
    """Return the two inputs of an operator in both orders, to match what may be written either way."""
    first, second = op.inputs
    return (first, second), (second, first)


def root_label(value: SSAValue) -> str:
    """Return the name of the first constant that a value depends on."""
    owner = value.owner
    while isinstance(owner, ApplyOp):
        owner = owner.inputs[0].owner
    return owner.label.data if isinstance(owner, ConstantOp) else "constant"


def option(op: ApplyOp, name: str) -> Any:
    """Return an option of an operator, or its default."""
    values = op.options.values
    return values[name] if name in values else operator(op.operator.data).defaults[name]


def transposed_order(op: ApplyOp) -> tuple[int, ...]:
    """Return the axes of a transpose's input in the order in which its result has them."""
    rank = len(shape_of(op.inputs[0]))
    axes = option(op, "axes")
    return tuple(range(rank))[::-1] if axes is None else tuple(int(a) % rank for a in axes)


def users(value: SSAValue) -> Iterator[Operation]:
    """Iterate over the operations that read a value, each once."""
    return iter(dict.fromkeys(use.operation for use in value.uses))


def below_views(value: SSAValue) -> SSAValue:
    """Return the value of which another one is a view."""
    while isinstance(owner := value.owner, ApplyOp) and is_view(owner):
        value = owner.inputs[0]
    return value


def readers(value: SSAValue) -> list[Operation]:
    """Return the operations that read a value, under whatever shape."""
    found: list[Operation] = []
    for op in users(value):
        view = is_view(op)
        found += readers(op.results[0]) if view else [op]
    return found


def with_options(op: ApplyOp, **changes: Option | None) -> dict[str, Option]:
    """Return the options of an operator after changes; None takes one away."""
    merged = {**op.options.values, **changes}
    return operator(op.operator.data).options(op.operator.data, {k: v for k, v in merged.items() if v is not None})


def group_label(members: Sequence[ApplyOp]) -> str:
    """Return the label of a group of operators: their names, the first ones of many."""
    names = [op.operator.data for op in members]
    shown = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], f"and_{len(names) - _MOST_NAMES + 1}"]
    return hint("_".join(shown)) or "group"


def put_in_order(block: Block) -> None:
    """Have operations behind those that they read."""
    ahead: dict[Operation | Block, int] = {op: number for number, op in enumerate(block.ops)}
    if all(ahead.get(v.owner, -1) < ahead[op] for op in block.ops for v in op.operands):
        return
    done, waiting = dict[Operation, None](), list(block.ops)[::-1]
    while waiting:
        op = waiting.pop()
        needed = [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner not in done]
        if op in done:
            continue
        if needed:
            waiting += [op, *needed]
            continue
        done[op] = None
    for op in done:
        block.detach_op(op)
        block.add_op(op)
