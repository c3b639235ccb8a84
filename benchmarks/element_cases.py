"""Operators that move, choose, convert, scan or reduce elements, of families drawn at random: a seed is a list.

Pads of three modes, tiles and repeats, selections with broadcast operands, casts, places of extremes, gathers of
elements, one-hot rows, cumulative products, variances and norms along any axes, broadcasts, rolls, flips, triangles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from mixed_cases import Draw, ShapeDice, drawn_of, named, permutation
from operator_cases import Case, Operator, of_one, placeholder

from loopwright import te, topi
from loopwright.graph.operators.indexing import take_along_axis
from loopwright.te import Tensor

COUNT = 60
"""Cases of a seed."""
MOST_BYTES, LEAST_BYTES = 64e6, 2e4
"""Bytes of what is read and written."""
TYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
TYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "int32": 4, "int64": 8, "bool": 1}


def _bytes(*shapes: Sequence[int]) -> float:
    return 4.0 * sum(math.prod(shape) for shape in shapes)


def _padded(dice: ShapeDice) -> Draw:
    shape, mode = dice.shape(2, 4), ("constant", "constant", "reflect", "replicate")[dice.pick(range(4))]
    rank = len(shape)
    axes = dice.pick(range(1, rank + 1)) if mode == "constant" else min(rank - 1, dice.pick((1, 2)))
    amounts = [(dice.pick((0, 1, 2, 3, 5)), dice.pick((0, 1, 2, 3, 7))) for _ in range(axes)]
    amounts = [(min(a, e - 1), min(b, e - 1)) for (a, b), e in zip(amounts, shape[rank - axes :], strict=True)]
    around = [(0, 0)] * (rank - axes) + amounts
    before, after = zip(*around, strict=True)

    def border(x: Tensor, axis: int, count: int, at_end: bool) -> list[Tensor]:
        """The `count` elements before or after all of an axis."""
        if count == 0:
            return []
        last, edge = x.shape[axis] - 1, mode == "replicate"
        begin, end = (
            ((last, last + 1) if edge else (last - count, last)) if at_end else ((0, 1) if edge else (1, 1 + count))
        )
        part = topi.strided_slice(x, [begin], [end], axes=[axis])
        return [topi.repeat(part, count, axis) if edge else topi.flip(part, axis)]

    def ours(x: Tensor) -> Tensor:
        if mode == "constant":
            return topi.nn.pad(x, before, after)
        for axis, (low, high) in enumerate(around):
            parts = [*border(x, axis, low, False), x, *border(x, axis, high, True)]
            x = topi.concatenate(parts, axis) if len(parts) > 1 else x
        return x

    named_axes = 2 if mode != "constant" and rank == 4 else axes
    flat = [n for pair in reversed(around[rank - named_axes :]) for n in pair]
    lifted = (
        (None,) if mode != "constant" and rank == named_axes + 1 < 4 else ()
    )  # PyTorch's borders have two axes around

    def peer(torch: Any, x: Any) -> Any:
        given = x[lifted] if lifted else x
        return torch.nn.functional.pad(given, flat, mode=mode)

    taken = [e + b + a for e, b, a in zip(shape, before, after, strict=True)]
    cost = _bytes(shape, taken) if any(flat) else 0.0
    return f"{mode} {named(shape)} by {amounts}", of_one(ours, peer, *shape), cost


def _repeated(dice: ShapeDice) -> Draw:
    shape = dice.shape(1, 4, 500)
    if dice.pick((0, 1)):
        times = [dice.pick((1, 1, 2, 3, 4)) for _ in shape]
        made = of_one(lambda x: topi.tile(x, times), lambda torch, x: x.repeat(times), *shape)
        cost = _bytes(shape) * (1 + math.prod(times)) if math.prod(times) > 1 else 0.0
        return f"tile {named(shape)} by {times}", made, cost
    axis, count = dice.pick(range(len(shape))), dice.pick((2, 3, 4, 5, 8))
    made = of_one(lambda x: topi.repeat(x, count, axis), lambda torch, x: x.repeat_interleave(count, axis), *shape)
    return f"repeat {named(shape)} along {axis} {count} times", made, _bytes(shape) * (1 + count)


def _part_of(dice: ShapeDice, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that is broadcast to another."""
    return tuple(extent if dice.pick((0, 1)) else 1 for extent in shape)


def _selected(dice: ShapeDice) -> Draw:
    shape = dice.shape(2, 4)
    shapes = [shape if dice.pick((0, 1)) else _part_of(dice, shape) for _ in range(3)]
    shapes[dice.pick((1, 2))] = shape

    def tensors() -> list[Tensor]:
        mask = te.placeholder(shapes[0], name="mask", dtype="bool")
        yes, no = placeholder("yes", *shapes[1]), placeholder("no", *shapes[2])
        return [mask, yes, no, topi.where(mask, yes, no)]

    made = Operator(tensors, lambda torch, arrays: lambda: torch.where(*arrays))
    return f"where {', '.join(map(named, shapes))}", made, _bytes(*shapes, shape)


def _clipped(dice: ShapeDice) -> Draw:
    shape = dice.shape(2, 4)
    low, high = _part_of(dice, shape), _part_of(dice, shape)

    def tensors() -> list[Tensor]:
        x, a, b = placeholder("x", *shape), placeholder("low", *low), placeholder("high", *high)
        return [x, a, b, topi.minimum(topi.maximum(x, a), b)]

    made = Operator(tensors, lambda torch, arrays: lambda: torch.clamp(*arrays))
    return f"clip {named(shape)} by {named(low)}, {named(high)}", made, _bytes(shape, low, high, shape)


def _converted(dice: ShapeDice) -> Draw:
    shape = dice.shape(1, 3)
    source, wanted = TYPES[dice.pick((0, 0, 0, 1, 3, 4, 5, 6))], TYPES[dice.pick((0, 0, 1, 2, 3, 4, 5, 6))]
    if source == wanted:
        return "same", of_one(lambda x: x, lambda torch, x: x, 1), 0.0

    def tensors() -> list[Tensor]:
        x = te.placeholder(shape, name="x", dtype=source)
        return [x, topi.cast(x, wanted)]

    made = Operator(tensors, lambda torch, arrays: lambda: arrays[0].to(getattr(torch, wanted)))
    return f"{source} to {wanted} {named(shape)}", made, math.prod(shape) * (TYPE_BYTES[source] + TYPE_BYTES[wanted])


def _placed(dice: ShapeDice) -> Draw:
    shape, name = dice.shape(2, 4), ("argmax", "argmin")[dice.pick((0, 1))]
    axis = dice.pick(range(len(shape)))
    made = of_one(lambda x: getattr(topi, name)(x, axis), lambda torch, x: getattr(torch, name)(x, axis), *shape)
    return f"{name} {named(shape)} along {axis}", made, _bytes(shape)


def _gathered(dice: ShapeDice) -> Draw:
    shape = dice.shape(2, 3)
    axis = dice.pick(range(len(shape)))
    taken = tuple(dice.extent(2, 2 * n) if d == axis else n for d, n in enumerate(shape))

    def tensors() -> list[Tensor]:
        data, places = placeholder("data", *shape), te.placeholder(taken, name="places", dtype="int64")
        found = take_along_axis.compute(data, places, axis=axis)
        assert isinstance(found, Tensor)
        return [data, places, found]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, places = arrays[0], arrays[1].clamp(0, shape[axis] - 1)
        return lambda: torch.gather(data, axis, places)

    return f"gather {named(taken)} of {named(shape)} along {axis}", Operator(tensors, peer), 4 * _bytes(taken)


def _one_hot(dice: ShapeDice) -> Draw:
    count, classes = dice.extent(10, 5000), dice.extent(4, 3000)

    def tensors() -> list[Tensor]:
        places = te.placeholder((count,), name="places", dtype="int64")
        one, zero = te.const(1, "float32"), te.const(0, "float32")
        hot = te.compute((count, classes), lambda i, j: te.select(places[i] == te.cast(j, "int64"), one, zero), "hot")
        return [places, hot]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        places = arrays[0].clamp(0, classes - 1)
        return lambda: torch.nn.functional.one_hot(places, classes).float()

    return f"{count} of {classes}", Operator(tensors, peer), _bytes((count, classes))


def _multiplied_up(dice: ShapeDice) -> Draw:
    shape, name = dice.shape(1, 3, 800), ("cumprod", "cumsum")[dice.pick((0, 1))]
    axis = dice.pick(range(len(shape)))
    if name == "cumprod" and shape[axis] > 1000:
        return "long", of_one(lambda x: x, lambda torch, x: x, 1), 0.0
    made = of_one(lambda x: getattr(topi, name)(x, axis), lambda torch, x: getattr(torch, name)(x, axis), *shape)
    return f"{name} {named(shape)} along {axis}", made, 2 * _bytes(shape)


def _spread(dice: ShapeDice) -> Draw:
    shape, name = dice.shape(2, 4), ("var", "std", "norm", "logsumexp")[dice.pick(range(4))]
    count = dice.pick(range(1, len(shape)))
    axes = tuple(sorted(map(int, dice.rng.choice(len(shape), count, replace=False))))

    def ours(x: Tensor) -> Tensor:
        if name == "norm":
            return topi.sqrt(topi.sum(topi.multiply(x, x), axes))
        if name == "logsumexp":
            most = topi.max(x, axes, keepdims=True)
            return topi.add(topi.log(topi.sum(topi.exp(topi.subtract(x, most)), axes)), topi.max(x, axes))
        apart = topi.subtract(x, topi.mean(x, axes, keepdims=True))
        found = topi.mean(topi.multiply(apart, apart), axes)
        return found if name == "var" else topi.sqrt(found)

    def peer(torch: Any, x: Any) -> Any:
        if name == "norm":
            return torch.linalg.vector_norm(x, 2, axes)
        return torch.logsumexp(x, axes) if name == "logsumexp" else getattr(torch, name)(x, axes, correction=0)

    return f"{name} {named(shape)} over {axes}", of_one(ours, peer, *shape), _bytes(shape)


def _scaled(dice: ShapeDice) -> Draw:
    """Instance norms and norms along an axis that is not the last."""
    shape = dice.shape(3, 4)
    axes = ((1,), tuple(range(2, len(shape))), tuple(range(1, len(shape))))[dice.pick(range(3))]

    def ours(x: Tensor) -> Tensor:
        apart = topi.subtract(x, topi.mean(x, axes, keepdims=True))
        spread = topi.mean(topi.multiply(apart, apart), axes, keepdims=True)
        return topi.multiply(apart, topi.rsqrt(topi.add(spread, 1e-5)))

    def peer(torch: Any, x: Any) -> Any:
        if axes == (1,):
            mean, spread = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
            return (x - mean) * torch.rsqrt(spread + 1e-5)
        if axes[0] == 2:
            return torch.nn.functional.instance_norm(x)
        return torch.nn.functional.group_norm(x, 1)

    return f"{named(shape)} over {axes}", of_one(ours, peer, *shape), 2 * _bytes(shape)


def _broadcast(dice: ShapeDice) -> Draw:
    shape, name = dice.shape(2, 5), ("add", "multiply", "subtract", "divide")[dice.pick(range(4))]
    shapes = [shape, _part_of(dice, shape)]
    if dice.pick((0, 1)):
        shapes[0] = tuple(a if b == 1 or dice.pick((0, 1)) else 1 for a, b in zip(*shapes, strict=True))

    def tensors() -> list[Tensor]:
        left, right = placeholder("left", *shapes[0]), placeholder("right", *shapes[1])
        return [left, right, getattr(topi, name)(left, right)]

    out = [max(a, b) for a, b in zip(*shapes, strict=True)]
    made = Operator(tensors, lambda torch, arrays: lambda: getattr(torch, name)(*arrays))
    return f"{name} {', '.join(map(named, shapes))}", made, _bytes(*shapes, out)


def _turned(dice: ShapeDice) -> Draw:
    """Flips and rolls of an axis, triangles of matrices."""
    shape, way = dice.shape(2, 4), ("flip", "roll", "tril")[dice.pick(range(3))]
    axis = dice.pick(range(len(shape)))
    long, by = shape[axis], dice.pick(range(1, shape[axis]))
    if way == "flip":
        made = of_one(lambda x: topi.flip(x, axis), lambda torch, x: torch.flip(x, (axis,)), *shape)
        return f"flip {named(shape)} along {axis}", made, 2 * _bytes(shape)
    if way == "roll":
        made = of_one(
            lambda x: topi.concatenate(topi.split(x, [long - by], axis)[::-1], axis),
            lambda torch, x: torch.roll(x, by, axis),
            *shape,
        )
        return f"roll {named(shape)} along {axis} by {by}", made, 2 * _bytes(shape)

    def ours(x: Tensor) -> Tensor:
        zero = te.const(0, "float32")
        made: Tensor = te.compute(shape, lambda *i: te.select(i[-1] <= i[-2], x[i], zero), "lower")
        return made

    return f"tril {named(shape)}", of_one(ours, lambda torch, x: torch.tril(x), *shape), 2 * _bytes(shape)


def _activated(dice: ShapeDice) -> Draw:
    shape, names = dice.shape(1, 3), ("sigmoid", "tanh", "exp", "erf", "sqrt", "log", "sin", "silu", "gelu")
    name = names[dice.pick(range(len(names)))]
    inside = name in ("sqrt", "log")
    run = getattr(topi, name, None) or getattr(topi.nn, name)

    def ours(x: Tensor) -> Tensor:
        return run(topi.add(topi.abs(x), 0.5)) if inside else run(x)

    def peer(torch: Any, x: Any) -> Any:
        own = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        return own(x.abs() + 0.5) if inside else own(x)

    return f"{name} {named(shape)}", of_one(ours, peer, *shape), 2 * _bytes(shape)


FAMILIES: dict[str, tuple[Callable[[ShapeDice], Draw], float]] = {
    "pad": (_padded, 0.13),
    "repeat": (_repeated, 0.1),
    "where": (_selected, 0.08),
    "clip": (_clipped, 0.06),
    "cast": (_converted, 0.13),
    "place": (_placed, 0.08),
    "gather elements": (_gathered, 0.06),
    "one-hot": (_one_hot, 0.03),
    "scan": (_multiplied_up, 0.05),
    "spread": (_spread, 0.08),
    "scaled": (_scaled, 0.04),
    "broadcast": (_broadcast, 0.05),
    "turn": (_turned, 0.05),
    "permute": (partial(permutation, least_rank=3), 0.03),
    "function": (_activated, 0.03),
}
"""The draw of a case of each kind, and the share of these."""


@cache
def of_elements(seed: int, count: int = COUNT) -> tuple[Case, ...]:
    """The cases of a seed."""
    rng = np.random.default_rng([seed, 92])
    return drawn_of(FAMILIES, rng, count, "elements", lambda _, cost: LEAST_BYTES < cost < MOST_BYTES)
