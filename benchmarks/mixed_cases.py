"""Operators in fp32 that are no convolutions, of families drawn at random with odd extents: a seed is a list.

Products (any extents, few rows, tall, wide, batches of small ones), permutations of any rank, concatenations, slices,
softmax, norms, reductions over any axes, cumulative sums, gathers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from draws import Dice, distinct_cases
from operator_cases import (
    Case,
    Operator,
    dense,
    functional,
    layer_norm,
    matmul,
    of_one,
    permuted,
    placeholder,
    rms_norm,
    scores,
    weighted,
)

from loopwright import te, topi
from loopwright.te import Tensor

COUNT = 60
"""Cases of a seed."""
MOST_PRODUCTS, LEAST_PRODUCTS = 2e9, 2e5
"""Multiply-adds of a product."""
MOST_BYTES, LEAST_BYTES = 64e6, 2e5
"""Bytes of what is read and written by others."""

Draw = tuple[str, Operator, float]
"""A name, the operator, and what it costs: multiply-adds of a product, bytes of others."""


class ShapeDice(Dice):
    """Draws of extents, in their order."""

    def extent(self, least: int, most: int) -> int:
        """A log-uniform extent: any number two times in five, a power of two or beside one, else a multiple of 8."""
        number = math.exp(self.rng.uniform(math.log(least), math.log(most)))
        way = self.pick((0, 0, 1, 1, 2))
        if way == 0:
            return round(number)
        if way == 1:
            return max(least, 2 ** round(math.log2(number)) + self.pick((-1, 0, 0, 1, 1)))
        return max(8, round(number / 8) * 8)

    def shape(self, least_rank: int, most_rank: int, most: int = 1500) -> tuple[int, ...]:
        """A shape of so many axes, fewer elements an axis the more there are."""
        rank = self.pick(range(least_rank, most_rank + 1))
        longest = 2 * most ** (2 / rank)
        return tuple(self.extent(max(2, round(longest**0.4)), round(longest)) for _ in range(rank))


def named(shape: Sequence[int]) -> str:
    """The extents as text."""
    return "x".join(map(str, shape))


def _bytes(*shapes: Sequence[int]) -> float:
    return 4.0 * sum(math.prod(shape) for shape in shapes)


def _product(dice: ShapeDice) -> Draw:
    m, n, k = (dice.extent(24, 2500) for _ in range(3))
    return f"{m}x{n}x{k}", matmul(m, n, k), float(m * n * k)


def _layer(dice: ShapeDice) -> Draw:
    rows, k, out = dice.extent(17, 1500), dice.extent(24, 3000), dice.extent(24, 3000)
    activation = ("", "gelu", "relu")[dice.pick(range(3))]
    return f"{rows}x{k} to {out} {activation}".strip(), dense(rows, k, out, activation), float(rows * k * out)


def _few_rows(dice: ShapeDice) -> Draw:
    rows, k, out = dice.pick((1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16)), dice.extent(100, 5000), dice.extent(100, 5000)
    if dice.pick((0, 1)):
        return f"{rows}x{out}x{k}", matmul(rows, out, k), float(rows * k * out)
    return f"{rows}x{k} to {out}", dense(rows, k, out), float(rows * k * out)


def _long(dice: ShapeDice) -> Draw:
    """One extent long, the others short: tall, wide, or of many terms."""
    extents = [dice.extent(2, 90), dice.extent(2, 90)]
    extents.insert(dice.pick((0, 1, 2)), dice.extent(2000, 60000))
    m, n, k = extents
    return f"{m}x{n}x{k}", matmul(m, n, k), float(m * n * k)


def _batched(dice: ShapeDice) -> Draw:
    heads, rows, columns, terms = dice.extent(4, 500), dice.extent(3, 200), dice.extent(3, 200), dice.extent(3, 130)
    make = (scores, weighted)[dice.pick((0, 1))]
    made = scores(heads, rows, columns, terms) if make is scores else weighted(heads, rows, terms, columns)
    return f"{make.__name__} {heads} of {rows}x{columns}x{terms}", made, float(heads * rows * columns * terms)


def permutation(dice: ShapeDice, least_rank: int = 2) -> Draw:
    """A transpose of any axes, not as they are, of a rank up to 5."""
    shape = dice.shape(least_rank, 5)
    axes = tuple(range(len(shape)))
    while axes == tuple(range(len(shape))):
        axes = tuple(map(int, dice.rng.permutation(len(shape))))
    return f"{named(shape)} to {axes}", of_one(*permuted(*axes), *shape), 2 * _bytes(shape)


def _joined(dice: ShapeDice) -> Draw:
    shape, parts = dice.shape(2, 4, 1000), dice.pick((2, 2, 3, 4))
    axis = dice.pick(range(len(shape)))
    longs = [shape[axis] if dice.pick((0, 1)) else dice.extent(2, 2 * shape[axis]) for _ in range(parts)]
    shapes = [(*shape[:axis], long, *shape[axis + 1 :]) for long in longs]

    def tensors() -> list[Tensor]:
        given = [placeholder(f"part{n}", *one) for n, one in enumerate(shapes)]
        return [*given, topi.concatenate(given, axis)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        return lambda: torch.cat(list(arrays), axis)

    return f"{named(shape)} along {axis} of {longs}", Operator(tensors, peer), 2 * _bytes(*shapes)


def _sliced(dice: ShapeDice) -> Draw:
    shape = dice.shape(2, 4)
    steps = [dice.pick((1, 1, 1, 2)) for _ in shape]
    begin = [dice.pick(range(extent // 2 + 1)) if dice.pick((0, 1)) else 0 for extent in shape]
    end = [extent - dice.pick(range((extent - first) // 2 + 1)) for extent, first in zip(shape, begin, strict=True)]
    places = tuple(slice(*one) for one in zip(begin, end, steps, strict=True))
    if all(s.step == 1 and s.stop - s.start == extent for s, extent in zip(places, shape, strict=True)):
        return "all", of_one(lambda x: x, lambda torch, x: x, 1), 0.0
    made = of_one(
        lambda x: topi.strided_slice(x, begin, end, steps), lambda torch, x: x[places].clone(**_in_rows(torch)), *shape
    )
    taken = [len(range(s.start, s.stop, s.step)) for s in places]
    return f"{named(shape)} [{', '.join(f'{s.start}:{s.stop}:{s.step}' for s in places)}]", made, 2 * _bytes(taken)


def _in_rows(torch: Any) -> dict[str, Any]:
    return {"memory_format": torch.contiguous_format}


def _softmax(dice: ShapeDice) -> Draw:
    shape = dice.shape(2, 4)
    axis, name = dice.pick(range(len(shape))), ("softmax", "log_softmax")[dice.pick((0, 0, 1))]
    run = getattr(topi.nn, name)
    return (
        f"{name} {named(shape)} along {axis}",
        of_one(lambda x: run(x, axis), functional(name, axis), *shape),
        2 * _bytes(shape),
    )


def _normed(dice: ShapeDice) -> Draw:
    rows, width, make = dice.extent(1, 9000), dice.extent(7, 9000), (layer_norm, rms_norm)[dice.pick((0, 1))]
    return f"{make.__name__} {rows}x{width}", make(rows, width), 2 * _bytes((rows, width))


def _reduced(dice: ShapeDice) -> Draw:
    shape, name = dice.shape(2, 4), ("sum", "mean", "amax")[dice.pick((0, 1, 2))]
    count = dice.pick(range(1, len(shape)))
    axes = tuple(sorted(map(int, dice.rng.choice(len(shape), count, replace=False))))
    run = topi.max if name == "amax" else getattr(topi, name)
    made = of_one(lambda x: run(x, axes), lambda torch, x: getattr(torch, name)(x, axes), *shape)
    return f"{name} {named(shape)} over {axes}", made, _bytes(shape)


def _summed_up(dice: ShapeDice) -> Draw:
    shape = dice.shape(2, 3, 800)
    axis = dice.pick(range(len(shape)))
    made = of_one(lambda x: topi.cumsum(x, axis), lambda torch, x: torch.cumsum(x, axis), *shape)
    return f"{named(shape)} along {axis}", made, 2 * _bytes(shape)


def _gathered(dice: ShapeDice) -> Draw:
    shape, count = dice.shape(2, 3, 2500), dice.extent(10, 4000)
    axis = dice.pick((0, 0, len(shape) - 1))

    def tensors() -> list[Tensor]:
        data, places = placeholder("data", *shape), te.placeholder((count,), name="places", dtype="int64")
        return [data, places, topi.take(data, places, axis)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, places = arrays[0], arrays[1].clamp(0, shape[axis] - 1)
        return lambda: torch.index_select(data, axis, places)

    taken = (*shape[:axis], count, *shape[axis + 1 :])
    return f"{count} of {named(shape)} along {axis}", Operator(tensors, peer), 2 * _bytes(taken)


FAMILIES: dict[str, tuple[Callable[[ShapeDice], Draw], float]] = {
    "matmul": (_product, 0.14),
    "dense": (_layer, 0.1),
    "few rows": (_few_rows, 0.1),
    "long": (_long, 0.08),
    "batched": (_batched, 0.1),
    "permute": (permutation, 0.1),
    "concatenate": (_joined, 0.07),
    "slice": (_sliced, 0.05),
    "softmax": (_softmax, 0.08),
    "norm": (_normed, 0.05),
    "reduce": (_reduced, 0.07),
    "cumsum": (_summed_up, 0.03),
    "gather": (_gathered, 0.03),
}
"""The draw of a case of each kind, and the share of these."""
PRODUCTS = ("matmul", "dense", "few rows", "long", "batched")


def drawn_of(
    families: Mapping[str, tuple[Callable[[ShapeDice], Draw], float]],
    rng: np.random.Generator,
    count: int,
    half: str,
    fits: Callable[[str, float], bool],
) -> tuple[Case, ...]:
    """So many cases of families, of which some have no share in a list by their kind and what they cost."""

    def of_kind(kind: str) -> Case | None:
        name, operator, cost = families[kind][0](ShapeDice(rng))
        return Case(f"{kind} {name}", kind, half, operator) if fits(kind, cost) else None

    return distinct_cases(rng, {kind: share for kind, (_, share) in families.items()}, count, of_kind)


@cache
def mixed(seed: int, count: int = COUNT) -> tuple[Case, ...]:
    """The cases of a seed."""

    def fits(kind: str, cost: float) -> bool:
        least, most = (LEAST_PRODUCTS, MOST_PRODUCTS) if kind in PRODUCTS else (LEAST_BYTES, MOST_BYTES)
        return least < cost < most

    return drawn_of(FAMILIES, np.random.default_rng([seed, 91]), count, "mixed", fits)
