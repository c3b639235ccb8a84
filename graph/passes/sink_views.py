"""The pass that moves changes of shape behind elementwise operators."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp, ConstantOp
from ..operator import Kind, kind_of
from ..types import shape_of
from ._rewrite import Before, applied, is_elementwise, replace, used_once, users


@dataclass(frozen=True)
class SinkViews(ModulePass):
    """f(reshape(x), y) -> reshape(f(x, reshape(y))) for elementwise f, so that f can join what gives x.

    All that reads the reshape is such an f, with a result of its shape, or the network's output; y has that shape too,
    or is broadcast along axes that x has as well. Where f can join the product or convolution that gives y, it stays.
    """

    name: ClassVar[str] = "lw-graph-sink-views"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants, readable = set[SSAValue](), dict[SSAValue, bool]()
        for found in applied(op):
            if all(value in constants or isinstance(value.owner, ConstantOp) for value in found.inputs):
                constants.update(found.outputs)
            elif is_elementwise(found):
                _sink(found, constants, readable)


def _sink(op: ApplyOp, constants: Set[SSAValue], readable: dict[SSAValue, bool]) -> None:
    """Sink the views that an operator reads; `constants` are the results ahead of it that depend on constants only.

    `readable` are the views of which it is known if all their readers can read the source: of hundreds of readers each
    would ask all others.
    """
    wanted = shape_of(op.outputs[0])
    source = next((s for v in op.inputs if (s := _viewed(v, wanted, constants, readable)) is not None), None)
    if source is None:
        return
    if any(_ends_anchor(v) for v in op.inputs if shape_of(v) == wanted):
        return
    shape = shape_of(source)
    shapes = [_under(shape_of(v), wanted, shape) for v in op.inputs]
    if None in shapes:
        return
    before = Before(op)
    inputs = []
    for value, under in zip(op.inputs, shapes, strict=True):
        assert under is not None
        inner = _viewed(value, wanted, constants, readable)
        if inner is not None and shape_of(inner) == under:
            read = inner
            readable.pop(inner, None)  # it has another reader now
        else:
            read = before.reshape(value, under)
            readable.pop(value, None)
        inputs.append(read)
    made = before.apply(op.operator.data, *inputs, label=op.outputs[0].name_hint, **op.options.values)
    replace(op, [before.reshape(made, wanted)])


def _ends_anchor(value: SSAValue) -> bool:
    """True for the result of an anchor, or of elementwise operators behind one, that is read once."""
    op = value.owner
    if not isinstance(op, ApplyOp) or not used_once(value):
        return False
    if kind_of(op) is Kind.ANCHOR:
        return True
    return is_elementwise(op) and any(_ends_anchor(v) for v in op.inputs if shape_of(v) == shape_of(value))


def _viewed(
    value: SSAValue, shape: tuple[int, ...], constants: Set[SSAValue], readable: dict[SSAValue, bool]
) -> SSAValue | None:
    """Return the source of a view that has the shape given, if all its readers can read the source instead."""
    owner = value.owner
    if not isinstance(owner, ApplyOp) or kind_of(owner) is not Kind.VIEW:
        return None
    source = owner.inputs[0]
    if shape_of(value) != shape or not isinstance(source.owner, ApplyOp) or value in constants:
        return None
    if used_once(value):
        return source
    if value not in readable:
        readable[value] = all(_reads(op, shape, shape_of(source)) for op in users(value))
    return source if readable[value] else None


def _reads(op: Operation, wanted: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """True where an operation is elementwise with a result of the shape `wanted`, and could have one of `shape`.

    Also for the network's end, which takes the view: it costs nothing.
    """
    if isinstance(op, ReturnOp):
        return True
    if not is_elementwise(op) or shape_of(op.outputs[0]) != wanted:
        return False
    return all(_under(shape_of(v), wanted, shape) is not None for v in op.inputs)


def _under(own: tuple[int, ...], wanted: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that an input of shape `own`, read for a result of shape `wanted`, has for one of shape `shape`."""
    if own == wanted:
        return shape
    if prod(own) == 1:
        return ()
    own = (*(1,) * (len(wanted) - len(own)), *own)
    under = list[int]()
    for before, after in _same_elements(wanted, shape):
        part = own[before]
        if part != wanted[before] and prod(part) != 1:
            return None
        under += shape[after] if part == wanted[before] else (1,) * len(shape[after])
    return tuple(under[next(k for k, n in enumerate(under) if n != 1) :])


def _same_elements(first: tuple[int, ...], second: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Give the axes of two shapes of as many elements in the shortest runs that hold the same elements."""
    i = j = 0
    while i < len(first) or j < len(second):
        start, a, b = (i, j), prod(first[i : i + 1]), prod(second[j : j + 1])
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * first[i], i + 1
            else:
                b, j = b * second[j], j + 1
        yield slice(start[0], i), slice(start[1], j)
