"""Operators in fp32 of shapes that are drawn at random: an unused seed is a set of cases nobody has looked at."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from draws import distinct_cases
from operator_cases import (
    Case,
    Operator,
    conv,
    conv1d,
    conv3d,
    dense,
    functional,
    layer_norm,
    matmul,
    of_one,
    permuted,
    rms_norm,
    scores,
    transposed,
    weighted,
)

from loopwright import topi

DRAWN = 96
"""Cases of a seed."""
MOST = {"conv": 4.0e9, "product": 8.0e9, "bytes": 64.0e6}
"""Multiply-adds of a case at most, and bytes of its tensors: some milliseconds on a core of a CPU."""
SIZES = (5, 7, 10, 13, 14, 19, 20, 28, 33, 38, 40, 56, 64, 75, 80, 112)
"""Pixels along a side of an image."""
CHANNELS = (3, 8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 768)

Draw = tuple[str, Operator, float, str]
"""A name, the operator, what it costs, and the bound of `MOST` that this is compared with."""


def extent(rng: np.random.Generator, least: int, most: int) -> int:
    """A log-uniform extent: a multiple of 64, of 8, or any number, a third each."""
    number = math.exp(rng.uniform(math.log(least), math.log(most)))
    unit = int(rng.choice((64, 8, 1)))
    return max(unit, round(number / unit) * unit)


def _conv(rng: np.random.Generator) -> Draw:
    n, size = int(rng.choice((1, 1, 1, 2, 4, 8, 16))), int(rng.choice(SIZES))
    c, out = (int(rng.choice(CHANNELS)) for _ in range(2))
    window, stride, dilation = int(rng.choice((1, 1, 3, 3, 5, 7))), int(rng.choice((1, 1, 2))), 1
    if window == 3 and stride == 1:
        dilation = int(rng.choice((1, 1, 1, 2, 4)))
    groups = int(rng.choice((1, 1, 1, 4, c)))
    if c % groups or out % groups or groups == c:
        groups, out = (c, c) if groups == c else (1, out)
    name = f"{n}x{c}x{size}x{size} to {out}, {window}x{window}/{stride} by {dilation}, {groups} groups"
    cost = n * out * (size / stride) ** 2 * (c / groups) * window**2
    return name, conv(n, c, size, out, window, stride, groups, dilation), cost, "conv"


def _transposed(rng: np.random.Generator) -> Draw:
    c, out, size = int(rng.choice(CHANNELS)), int(rng.choice(CHANNELS)), int(rng.choice(SIZES))
    window, stride, pad = ((2, 2, 0), (3, 2, 1), (4, 2, 1), (5, 3, 1))[int(rng.integers(4))]
    name = f"transposed {c}x{size}x{size} to {out}, {window}x{window}/{stride}"
    return name, transposed(c, size, out, window, stride, pad), c * out * size**2 * window**2, "conv"


def _long(rng: np.random.Generator) -> Draw:
    c, out, length = int(rng.choice(CHANNELS)), int(rng.choice(CHANNELS)), extent(rng, 100, 16000)
    window, stride = int(rng.choice((3, 5, 9, 15))), int(rng.choice((1, 2, 4)))
    name = f"1-D {c}x{length} to {out}, {window}/{stride}"
    return name, conv1d(c, length, out, window, stride), c * out * length / stride * window, "conv"


def _deep(rng: np.random.Generator) -> Draw:
    c, out = (int(rng.choice((8, 16, 24, 32, 48, 64))) for _ in range(2))
    depth, size = int(rng.choice((4, 8, 12, 16))), int(rng.choice((14, 20, 28, 32)))
    name = f"3-D {c}x{depth}x{size}x{size} to {out}"
    return name, conv3d(c, depth, size, out), c * out * depth * size**2 * 27.0, "conv"


def _dense(rng: np.random.Generator) -> Draw:
    rows, k, out = extent(rng, 1, 2048), extent(rng, 64, 5000), extent(rng, 64, 5000)
    activation = str(rng.choice(("", "gelu", "relu")))
    return f"dense {rows}x{k} to {out} {activation}", dense(rows, k, out, activation), rows * k * out, "product"


def _matmul(rng: np.random.Generator) -> Draw:
    m, n, k = (extent(rng, 16, 4096) for _ in range(3))
    return f"matmul {m}x{n}x{k}", matmul(m, n, k), m * n * k, "product"


def _batched(rng: np.random.Generator) -> Draw:
    heads, rows, columns = int(rng.choice((4, 8, 12, 16, 48, 96))), extent(rng, 16, 1024), extent(rng, 16, 1024)
    size, make = int(rng.choice((32, 64, 80, 128))), (scores, weighted)[int(rng.integers(2))]
    name = f"{make.__name__} {heads}x{rows}x{columns}x{size}"
    return name, make(heads, rows, columns, size), heads * rows * columns * size, "product"


def _rows(rng: np.random.Generator) -> Draw:
    rows, width, which = extent(rng, 1, 20000), extent(rng, 8, 20000), int(rng.integers(4))
    name = f"{('layer norm', 'rms norm', 'softmax', 'mean')[which]} {rows}x{width}"
    if which < 2:
        made = (layer_norm, rms_norm)[which](rows, width)
    elif which == 2:
        made = of_one(lambda x: topi.nn.softmax(x, -1), functional("softmax", -1), rows, width)
    else:
        axis = int(rng.integers(2))
        made = of_one(lambda x: topi.mean(x, axis), lambda torch, x: x.mean(axis), rows, width)
        name += f" along {axis}"
    return name, made, rows * width * 8.0, "bytes"


def _moves(rng: np.random.Generator) -> Draw:
    shape = tuple(extent(rng, 2, 300) for _ in range(int(rng.integers(2, 5))))
    axes = tuple(map(int, rng.permutation(len(shape))))
    name = f"permute {'x'.join(map(str, shape))} to {axes}"
    moved = axes != tuple(range(len(axes)))  # as they are, axes cost nothing: PyTorch answers with the tensor itself
    return name, of_one(*permuted(*axes), *shape), math.prod(shape) * 8.0 * moved, "bytes"


FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Draw], float]] = {
    "conv": (_conv, 0.4),
    "transposed": (_transposed, 0.06),
    "conv1d": (_long, 0.06),
    "conv3d": (_deep, 0.04),
    "dense": (_dense, 0.12),
    "matmul": (_matmul, 0.1),
    "batched": (_batched, 0.08),
    "rows": (_rows, 0.09),
    "moves": (_moves, 0.05),
}
"""The draw of a case of each kind, and the share of these."""


@cache
def drawn(seed: int, count: int = DRAWN) -> tuple[Case, ...]:
    """The cases of a seed."""
    rng = np.random.default_rng(seed)

    def of_kind(kind: str) -> Case | None:
        name, operator, cost, bound = FAMILIES[kind][0](rng)
        fits = MOST[bound] / 1000 <= cost <= MOST[bound]
        return Case(name, kind, "drawn", operator) if fits else None

    return distinct_cases(rng, {kind: share for kind, (_, share) in FAMILIES.items()}, count, of_kind)
