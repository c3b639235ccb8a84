"""Reductions on tensors of a network, shared by dialects: named combiners, combiners of a region, windows."""

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
from ._padded_read import PaddedRead

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


def window_reduced(
    build: Builder,
    combiner: str,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    gaps: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Value:
    """Reduce windows over all axes; `gaps` are the base dilation. Padding does not count."""
    rank = len(x.shape)
    spread = [(n - 1) * g + 1 for n, g in zip(x.shape, gaps, strict=True)]
    extents = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    shape = [(n + sum(p) - e) // s + 1 for n, p, e, s in zip(spread, padding, extents, strides, strict=True)]
    if (
        combiner == "max"
        and x.dtype != "bool"
        and (pooled := _pooled(build, x, window, strides, dilations, gaps, padding))
    ):
        return pooled
    kind = "int8" if x.dtype == "bool" else working_type(x.dtype) if combiner in ("add", "mul") else x.dtype
    read = PaddedRead()
    places = []
    moving = [d for d in range(rank) if window[d] > 1]
    for d in range(rank):
        place = read.line(f"multiply i{d} {strides[d]}:int32") if strides[d] != 1 else f"i{d}"
        if d in moving:
            place = read.line(f"add {place} {read.line(f'multiply k{moving.index(d)} {dilations[d]}:int32')}")
        highest = (shape[d] - 1) * strides[d] + extents[d] - 1
        places.append(read.place(place, x.shape[d], gaps[d], padding[d][0], highest))
    outside = number(neutral(combiner, kind), kind)
    element = read.element(places, outside, kind if kind != x.dtype else None)
    if not moving:
        return build.cast(build.apply("map_formula", x, shape=tuple(shape), lines=tuple(read.lines)), x.dtype)
    made: Value = build.apply(
        "reduce_formula",
        x,
        shape=tuple(shape),
        reduced=tuple(window[d] for d in moving),
        lines=tuple(read.lines),
        values=(element,),
        combiner=(combiner,),
    )
    return build.cast(made, x.dtype)


def _pooled(
    build: Builder,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    gaps: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Value | None:
    """Return what max pooling over all axes but two gives, which are the first, and the second or the last."""
    rank = len(x.shape)
    still = [d for d in range(rank) if window[d] == strides[d] == 1 and tuple(padding[d]) == (0, 0)]
    if rank not in (3, 4, 5) or set(gaps) != {1} or 0 not in still or min(min(p) for p in padding) < 0:
        return None
    letters = "DHW"[5 - rank :]
    for layout, spatial in ((f"N{letters}C", range(1, rank - 1)), (f"NC{letters}", range(2, rank))):
        if all(d in still for d in range(rank) if d not in spatial):
            sides = [padding[d][0] for d in spatial] + [padding[d][1] for d in spatial]
            options = {"kernel": [window[d] for d in spatial], "stride": [strides[d] for d in spatial]}
            try:
                made: Value = build.apply(
                    "max_pool", x, padding=sides, dilation=[dilations[d] for d in spatial], layout=layout, **options
                )
            except ValueError:  # padding wider than the window: some windows see nothing
                return None
            return made
    return None
