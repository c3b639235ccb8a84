"""Pools in fp32 that are drawn at random, with PyTorch's call: a seed is a list that nobody has looked at.

Maxima (dilated ones among them) and averages (with padding counted or not) along one, two or three dimensions, windows
of 2 to 13, odd ones more often, strides of 1 to 4, padding of up to half a window, batches of 1 to 8, channels first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from mixed_cases import ShapeDice, named
from operator_cases import Case, Operator, placeholder

from loopwright import topi
from loopwright.te import Tensor

COUNT = 40
"""Cases of a seed."""
MOST_BYTES, LEAST_BYTES = 32e6, 1e5
"""Bytes of what is read."""
SIZES = {1: (50, 3000), 2: (7, 160), 3: (4, 40)}
"""Least and largest extents by the number of dimensions."""


def pool(mean: bool, shape: tuple[int, ...], k: int, stride: int, pad: int, option: int) -> Operator:
    """A pool of channels first; `option` is the dilation of a maximum, and 1 where a mean counts padding."""

    def tensors() -> list[Tensor]:
        data, layout = placeholder("data", *shape), "NC" + "DHW"[5 - len(shape) :]
        if mean:
            return [data, topi.nn.avg_pool(data, k, stride, pad, False, bool(option), layout)]
        return [data, topi.nn.max_pool(data, k, stride, pad, option, False, layout)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        run = getattr(torch.nn.functional, f"{'avg' if mean else 'max'}_pool{len(shape) - 2}d")
        if mean:
            return lambda: run(*arrays, k, stride, pad, False, bool(option))
        return lambda: run(*arrays, k, stride, pad, option)

    return Operator(tensors, peer)


def _drawn(dice: ShapeDice) -> tuple[str, Operator, float]:
    mean, rank = dice.pick((0, 0, 1)) == 1, dice.pick((1, 2, 2, 2, 2, 3))
    k, stride = dice.pick((2, 3, 3, 3, 4, 5, 5, 7, 9, 13)), dice.pick((1, 1, 2, 2, 2, 3, 4))
    option = dice.pick((0, 1)) if mean else dice.pick((1, 1, 1, 1, 2, 3))
    pad = dice.pick((0, k // 2))
    channels = dice.pick((3, 16, 24, 32, 40, 64, 96, 128, 192, 256, 512))
    shape = (dice.pick((1, 1, 1, 2, 4, 8)), channels, *(dice.extent(*SIZES[rank]) for _ in range(rank)))
    if min(shape[2:]) + 2 * pad < (1 if mean else option) * (k - 1) + 1:
        return "none", pool(mean, shape, k, stride, pad, option), 0.0
    kind = ("mean", "mean with padding")[option] if mean else f"max by {option}"
    return (
        f"{kind} {named(shape)} {k}/{stride} pad {pad}",
        pool(mean, shape, k, stride, pad, option),
        4.0 * math.prod(shape),
    )


@cache
def pools(seed: int, count: int = COUNT) -> tuple[Case, ...]:
    """The cases of a seed."""
    rng = np.random.default_rng([seed, 53])
    found: dict[str, Case] = {}
    while len(found) < count:
        name, operator, read = _drawn(ShapeDice(rng))
        if LEAST_BYTES < read < MOST_BYTES:
            found[f"pool {name}"] = Case(f"pool {name}", "pool", "pools", operator)
    return tuple(found.values())
