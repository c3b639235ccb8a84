"""Small tensor programs as plain trees, from which the te program and, apart from it, the NumPy values are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from loopwright import te
from loopwright.te.reduce import CommReducer, Reduce

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)


@dataclass(frozen=True)
class Node:
    """A scalar: an operation on other scalars, a `number`, an `axis` by name, or a `read` of a tensor at `args`."""

    op: str
    dtype: str
    args: tuple[Node, ...] = ()
    name: str = ""
    number: float | int = 0
    tensor: Source | None = None


@dataclass(frozen=True, eq=False)
class Input:
    """An argument of the program; `wide` integers span their whole type, so that sums of them wrap."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    constant: bool = False
    wide: bool = False


@dataclass(frozen=True, eq=False)
class Stage:
    """One value per body at each point of `axes`, reduced over `reduced` by `combiner` where there are such axes.

    Axes are (name, extent), axes to reduce over (name, first, extent). Combiners are `add`, `mul`, `max`, `min`, and on
    a value and its place `argmax` and `argmin`, where of equal values the smaller place wins.
    """

    name: str
    axes: tuple[tuple[str, int], ...]
    bodies: tuple[Node, ...]
    reduced: tuple[tuple[str, int, int], ...] = ()
    combiner: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent for _, extent in self.axes)

    @property
    def points(self) -> int:
        """Evaluations of the bodies."""
        return prod(self.shape) * prod(extent for *_, extent in self.reduced)


@dataclass(frozen=True)
class Source:
    """A tensor that can be read: an input, or one output of a stage."""

    owner: Input | Stage
    output: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.owner.shape

    @property
    def dtype(self) -> str:
        return self.owner.dtype if isinstance(self.owner, Input) else self.owner.bodies[self.output].dtype


@dataclass(frozen=True)
class Program:
    """Inputs, stages in the order of their use, and the outputs among them."""

    inputs: tuple[Input, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Source, ...] = field(default=())

    def tensors(self) -> list[te.Tensor]:
        """The program for `te.create_module`: inputs that some stage reads, then outputs."""
        made: dict[Source, te.Tensor] = {}
        for item in self.inputs:
            made[Source(item)] = te.placeholder(item.shape, item.dtype, item.name, item.constant)
        for stage in self.stages:
            results = _stage(stage, made)
            made.update({Source(stage, k): tensor for k, tensor in enumerate(results)})
        return [*(made[Source(i)] for i in self.inputs), *(made[o] for o in self.outputs)]


def number(value: float | int, dtype: str) -> Node:
    return Node("number", dtype, number=value)


def axis(name: str) -> Node:
    return Node("axis", "int32", name=name)


def read(tensor: Source, indices: Sequence[Node]) -> Node:
    return Node("read", tensor.dtype, tuple(indices), tensor=tensor)


def op(name: str, *args: Node, dtype: str = "") -> Node:
    """An operation on values of one type, which is its own unless given."""
    return Node(name, dtype or args[-1].dtype, args)


def test(name: str, left: Node, right: Node) -> Node:
    return Node(name, "bool", (left, right))


def cast(value: Node, dtype: str) -> Node:
    return value if value.dtype == dtype else Node("cast", dtype, (value,))


def reads(node: Node) -> set[Source]:
    """The tensors that a tree reads."""
    found = {node.tensor} if node.tensor is not None else set()
    return found.union(*(reads(a) for a in node.args))


# -- the te program ---------------------------------------------------------------------------------------------------


_COMBINERS: dict[str, Callable[..., Reduce]] = {"add": te.sum, "mul": te.prod, "max": te.max, "min": te.min}


def _stage(stage: Stage, tensors: Mapping[Source, te.Tensor]) -> Sequence[te.Tensor]:
    reduced = {name: te.reduce_axis((low, low + extent), name) for name, low, extent in stage.reduced}

    def body(*at: te.Expr) -> Any:
        where = {**{name: e for (name, _), e in zip(stage.axes, at, strict=True)}, **reduced}
        values = tuple(expression(node, where, tensors) for node in stage.bodies)
        if stage.combiner in ("argmax", "argmin"):
            return _pair(stage.combiner)(values, axis=[*reduced.values()])
        if stage.combiner:
            return _COMBINERS[stage.combiner](values[0], axis=[*reduced.values()])
        return values if len(values) > 1 else values[0]

    made = te.compute(stage.shape, body, stage.name, axes=[name for name, _ in stage.axes])
    return made if isinstance(made, list) else [made]


def _pair(combiner: str) -> CommReducer:
    """Reducer of (value, place) pairs to the one with the larger value, of equal ones that with the smaller place."""

    def combine(x: tuple[te.Expr, te.Expr], y: tuple[te.Expr, te.Expr]) -> tuple[te.Expr, te.Expr]:
        better = x[0] > y[0] if combiner == "argmax" else x[0] < y[0]
        first = te.any(better, te.all(x[0] == y[0], x[1] < y[1]))
        return te.select(first, x[0], y[0]), te.select(first, x[1], y[1])

    def identity(value: str, place: str) -> tuple[te.Expr, te.Expr]:
        worst = te.min_value(value) if combiner == "argmax" else te.max_value(value)
        return worst, te.max_value(place)

    return te.comm_reducer(combine, identity, combiner)


_FUNCTIONS: dict[str, Callable[..., te.Expr]] = {
    "mod": lambda a, b: a % b,
    "neg": lambda a: -a,
    "max": te.maximum,
    "min": te.minimum,
    "and": te.bitwise_and,
    "or": te.bitwise_or,
    "xor": te.bitwise_xor,
    "shl": te.shift_left,
    "shr": te.shift_right,
    "all": te.all,
    "any": te.any,
    "not": te.logical_not,
    "select": te.select,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
}
CALLS = ("exp", "tanh", "sqrt", "log", "sin", "cos", "erf", "floor", "ceil", "round", "trunc", "abs")


def expression(node: Node, where: Mapping[str, te.Expr], tensors: Mapping[Source, te.Tensor]) -> te.Expr:
    """A tree as a te expression."""
    if node.op == "number":
        return te.const(node.number, node.dtype)
    if node.op == "axis":
        return where[node.name]
    args = [expression(a, where, tensors) for a in node.args]
    if node.op == "read":
        assert node.tensor is not None
        return tensors[node.tensor][tuple(args)]
    if node.op == "cast":
        return args[0].astype(node.dtype)
    if node.op == "bitcast":
        return te.bitcast(args[0], node.dtype)
    if node.op in CALLS:
        return getattr(te, node.op)(args[0])
    return _FUNCTIONS[node.op](*args)
