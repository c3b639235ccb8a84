"""Convolutions in fp32 of families that are drawn at random: a seed is a list that nobody has looked at.

Depthwise (windows of 3 to 7, strided or dilated), grouped, 3-D, 1-D, dilated, plain and transposed ones of batches of 1
to 8, with odd extents among them; windows most of which reach into padding (`MOSTLY_PADDED`) are a family of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from draws import Dice, kind_of
from operator_cases import Case, Operator, placeholder, transposed

from loopwright import topi
from loopwright.te import Tensor

CHANNELS = (3, 8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512)
LEAST, MOST = 2e5, 2e9
"""Multiply-adds of a case, depthwise ones counted eight times: some microseconds to some milliseconds of a core."""
COUNT = 70
"""Cases of a seed."""
MOSTLY_PADDED = 0.5
"""Part of the products of the last family whose pixel is no padding, at most."""

Draw = tuple[str, Operator, float]
"""A name, the operator, and what it costs."""


def conv2d(
    n: int, c: int, size: tuple[int, int], out: int, k: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> Operator:
    """2-D convolution, NCHW, "same" padding, with bias and relu."""
    pad = dilation * (k // 2)

    def tensors() -> list[Tensor]:
        data, bias = placeholder("data", n, c, *size), placeholder("bias", out)
        kernel = placeholder("kernel", out, c // groups, k, k)
        found = topi.nn.conv2d_nchw(data, kernel, stride, pad, dilation, groups)
        return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(found, bias))]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        run = torch.nn.functional.conv2d
        return lambda: torch.relu_(run(*arrays, stride, pad, dilation, groups))

    return Operator(tensors, peer)


def conv3d(n: int, c: int, size: tuple[int, int, int], out: int, k: tuple[int, int, int], stride: int) -> Operator:
    """3-D convolution, NCDHW, "same" padding."""
    pad = (k[0] // 2, k[1] // 2, k[2] // 2)

    def tensors() -> list[Tensor]:
        data, kernel = placeholder("data", n, c, *size), placeholder("kernel", out, c, *k)
        return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, stride, pad)]

    return Operator(tensors, lambda torch, arrays: lambda: torch.nn.functional.conv3d(*arrays, None, stride, pad))


def conv1d(n: int, c: int, length: int, out: int, k: int, stride: int, pad: int, dilation: int) -> Operator:
    """1-D convolution, NCW."""

    def tensors() -> list[Tensor]:
        data, kernel = placeholder("data", n, c, length), placeholder("kernel", out, c, k)
        return [data, kernel, topi.nn.conv1d_ncw(data, kernel, stride, pad, dilation)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        return lambda: torch.nn.functional.conv1d(*arrays, None, stride, pad, dilation)

    return Operator(tensors, peer)


class _Dice(Dice):
    """Draws of sizes, in their order."""

    def odd(self, sizes: Sequence[int]) -> int:
        """A size, as it is half of the time, or one or three beside it."""
        return self.pick(sizes) + self.pick((0, 0, 0, -1, 1, 3))

    def dilation(self, stride: int, choices: Sequence[int]) -> int:
        return self.pick(choices) if stride == 1 else 1


def _depthwise(n: int, dice: _Dice) -> Draw:
    c, k, stride = dice.pick(CHANNELS[2:]), dice.pick((3, 5, 7)), dice.pick((1, 1, 2))
    dilation = dice.dilation(stride, (1, 1, 1, 2, 3, 4))
    high = dice.odd((7, 10, 14, 20, 28, 40, 56, 80, 112))
    wide = high if dice.rng.random() < 0.7 else dice.odd((7, 14, 28, 56, 112))
    made = conv2d(n, c, (high, wide), c, k, stride, c, dilation)
    cost = n * c * (high // stride) * (wide // stride) * k * k * 8.0
    return f"dw {n}x{c}x{high}x{wide} {k}x{k}/{stride} by {dilation}", made, cost


def _grouped(n: int, dice: _Dice) -> Draw:
    groups = dice.pick((2, 3, 4, 8, 16, 32))
    c, out = groups * dice.pick((2, 4, 6, 8, 16, 24, 32)), groups * dice.pick((2, 4, 8, 16, 24, 32))
    k, stride = dice.pick((1, 3, 3, 5)), dice.pick((1, 1, 2))
    dilation = dice.pick((1, 1, 2, 4)) if stride == 1 and k == 3 else 1
    size = dice.odd((7, 14, 28, 40, 56))
    made = conv2d(n, c, (size, size), out, k, stride, groups, dilation)
    cost = float(n * out * (c // groups) * (size // stride) ** 2 * k * k)
    return f"grouped {n}x{c}x{size}x{size} to {out} g{groups} {k}x{k}/{stride} by {dilation}", made, cost


WINDOWS = ((3, 3, 3), (3, 3, 3), (1, 3, 3), (3, 1, 1), (1, 1, 1), (5, 5, 5))
"""Of 3-D convolutions."""


def _deep(_: int, dice: _Dice) -> Draw:
    c, out = dice.pick((3, 8, 16, 24, 32, 48, 64, 96, 128)), dice.pick((8, 16, 24, 32, 48, 64, 96, 128))
    k, stride = WINDOWS[dice.pick(range(6))], dice.pick((1, 1, 2))
    n, depth, size = dice.pick((1, 1, 2)), dice.pick((4, 7, 8, 12, 16)), dice.odd((7, 14, 20, 28, 40, 56))
    made = conv3d(n, c, (depth, size, size), out, k, stride)
    cost = n * c * out * depth * size * size * math.prod(k) / stride**3
    return f"3d {n}x{c}x{depth}x{size}x{size} to {out} {'x'.join(map(str, k))}/{stride}", made, cost


def _long(n: int, dice: _Dice) -> Draw:
    c, out = dice.pick((1, *CHANNELS)), dice.pick(CHANNELS[1:])
    length = int(np.exp(dice.rng.uniform(np.log(50), np.log(16000))))
    k, stride = dice.pick((3, 5, 7, 9, 15, 25)), dice.pick((1, 1, 2, 4))
    dilation = dice.dilation(stride, (1, 1, 2, 4, 16))
    pad = dilation * (k // 2) if dice.rng.random() < 0.5 else 0
    length = max(length, dilation * (k - 1) + 5)
    made = conv1d(n, c, length, out, k, stride, pad, dilation)
    return f"1d {n}x{c}x{length} to {out} {k}/{stride} by {dilation} pad {pad}", made, n * c * out * k * length / stride


def _dilated(n: int, dice: _Dice) -> Draw:
    c, out = dice.pick(CHANNELS), dice.pick(CHANNELS[1:])
    k, dilation = dice.pick((3, 3, 3, 5)), dice.pick((2, 3, 4, 6, 8, 12))
    size = dice.odd((7, 14, 28, 33, 56))
    made = conv2d(n, c, (size, size), out, k, 1, 1, dilation)
    return f"dilated {n}x{c}x{size}x{size} to {out} {k}x{k} by {dilation}", made, float(n * c * out * (size * k) ** 2)


def _mostly_padded(n: int, dice: _Dice) -> Draw:
    part = 1.0
    while part > MOSTLY_PADDED:
        c, out = dice.pick((*CHANNELS, 768, 1024, 2048)), dice.pick(CHANNELS[1:])
        k, dilation, size = dice.pick((3, 3, 3, 5)), dice.pick((3, 4, 6, 8, 12, 18)), dice.odd((7, 10, 14, 20, 28, 33))
        read = sum(max(0, size - abs(tap - k // 2) * dilation) for tap in range(k))
        part = (read / (size * k)) ** 2
    made = conv2d(n, c, (size, size), out, k, 1, 1, dilation)
    return f"atrous {n}x{c}x{size}x{size} to {out} {k}x{k} by {dilation}", made, float(n * c * out * (size * k) ** 2)


def _transposed(_: int, dice: _Dice) -> Draw:
    c, out, size = dice.pick(CHANNELS), dice.pick(CHANNELS), dice.pick((7, 14, 20, 28, 40))
    k, stride, pad = ((2, 2, 0), (3, 2, 1), (4, 2, 1), (5, 3, 1))[dice.pick(range(4))]
    return f"tr {c}x{size} to {out} {k}/{stride}", transposed(c, size, out, k, stride, pad), c * out * (size * k) ** 2.0


def _plain(n: int, dice: _Dice) -> Draw:
    c, out = dice.pick(CHANNELS), dice.pick(CHANNELS)
    k, stride = dice.pick((1, 3, 3, 5, 7)), dice.pick((1, 1, 2))
    high = dice.odd((7, 14, 28, 40, 56, 80))
    wide = high if dice.rng.random() < 0.6 else dice.odd((7, 14, 28, 56, 112))
    cost = float(n * c * out * (high // stride) * (wide // stride) * k * k)
    return f"plain {n}x{c}x{high}x{wide} to {out} {k}x{k}/{stride}", conv2d(n, c, (high, wide), out, k, stride), cost


FAMILIES: dict[str, tuple[Callable[[int, _Dice], Draw], float]] = {
    "dw": (_depthwise, 0.27),
    "grouped": (_grouped, 0.13),
    "3d": (_deep, 0.15),
    "1d": (_long, 0.15),
    "dilated": (_dilated, 0.15),
    "plain": (_plain, 0.1),
    "tr": (_transposed, 0.05),
    "atrous": (_mostly_padded, 0.0),
}
"""The draw of a case of each kind, and the share of these where all kinds are drawn."""


@cache
def families(seed: int, kind: str = "", count: int = COUNT) -> tuple[Case, ...]:
    """The cases of a seed: of all kinds in their shares, or of one."""
    rng = np.random.default_rng([seed, 77])
    cases: list[Case] = []
    shares = {name: share for name, (_, share) in FAMILIES.items() if share}
    while len(cases) < count:
        drawn = kind or kind_of(rng, shares)
        n = int(rng.choice((1, 1, 1, 2, 4, 8)))
        name, operator, cost = FAMILIES[drawn][0](n, _Dice(rng))
        if LEAST < cost < MOST:
            cases.append(Case(name, drawn, "families", operator))
    return tuple(cases)
