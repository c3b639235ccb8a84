"""Reductions on tensors of a network, shared by dialects: named combiners, and combiners of a region."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import Block

from ....dialects.numpy_types import FLOATS, working_type
from ....graph.network import Value
from ....graph.operators.formula import number
from ..bodies import combiner_of, custom_combiner
from ..errors import UnsupportedOperation
from ..node import Builder, Node, known_values

_OPERATORS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_JOIN = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def neutral(combiner: str, dtype: str) -> float:
    """Return the number that changes nothing."""
    if combiner in ("add", "mul"):
        return 0 if combiner == "add" else 1
    lowest = combiner == "max"
    if dtype in FLOATS:
        return -math.inf if lowest else math.inf
    if dtype == "bool":
        return 0 if lowest else 1
    limits = np.iinfo(dtype)
    return int(limits.min if lowest else limits.max)


def reduced(build: Builder, combiner: str, x: Value, axes: Sequence[int], start: Value | None) -> Value:
    """Reduce axes away by a named combiner, and join what a reduction starts from where that is not neutral."""
    if not axes:
        made = x
    elif x.dtype == "bool":
        made = build.cast(build.apply(_OPERATORS[combiner], build.cast(x, "int8"), axis=tuple(axes)), "bool")
    elif combiner == "mul" and working_type(x.dtype) != x.dtype:
        made = build.cast(build.apply("prod", build.cast(x, working_type(x.dtype)), axis=tuple(axes)), x.dtype)
    else:
        made = build.apply(_OPERATORS[combiner], x, axis=tuple(axes))
    return joined(build, combiner, made, start)


def joined(build: Builder, combiner: str, made: Value, start: Value | None) -> Value:
    """Join a reduction with what it starts from."""
    if start is None or _is_neutral(combiner, start):
        return made
    if made.dtype == "bool":
        return build.elementwise("logical_or" if combiner == "max" else "logical_and", made, start)
    return build.elementwise(_JOIN[combiner], made, start)


def _is_neutral(combiner: str, start: Value) -> bool:
    try:
        value = known_values(start, "a start").reshape(-1)
    except UnsupportedOperation:
        return False
    if not value.size or not bool((value == value[0]).all()):
        return False
    return float(value[0]) == neutral(combiner, start.dtype)


def reduce_node(node: Node, axes: Sequence[int]) -> list[Value]:
    """Reduce n tensors from n starts, by the region: a named combiner, or any that its lines say."""
    count, block, build = len(node.operands) // 2, node.region(), node.build
    data, starts = node.operands[:count], node.operands[count:]
    named = combiner_of(block, node.program)
    if count == 1 and named is not None:
        return [reduced(build, named, data[0], axes, starts[0])]
    return custom(node, block, data, starts, axes)


def custom(
    node: Node,
    block: Block,
    data: Sequence[Value],
    starts: Sequence[Value],
    axes: Sequence[int],
    held_first: bool = True,
) -> list[Value]:
    """Reduce by the lines of a region; starts are constants, which many parts of a reduction may begin with."""
    build = node.build
    lines, results = custom_combiner(block, node.program, held_first)
    identity = [number(known_values(s, "what it starts from").flat[0].item(), s.dtype) for s in starts]
    order = [d for d in range(len(data[0].shape)) if d not in axes]
    shape = tuple(data[0].shape[d] for d in order)
    extents = tuple(data[0].shape[d] for d in axes)
    names = {d: f"i{k}" for k, d in enumerate(order)} | {d: f"k{k}" for k, d in enumerate(axes)}
    place = " ".join(names[d] for d in range(len(data[0].shape)))
    reads = [f"read:{n} {place}" for n in range(len(data))]
    made = build.apply(
        "reduce_formula",
        *data,
        shape=shape,
        reduced=extents,
        lines=tuple(reads),
        values=tuple(f"t{n}" for n in range(len(data))),
        combiner=tuple(lines),
        joined=tuple(results),
        identity=tuple(identity),
    )
    return [made] if isinstance(made, Value) else list(made)
