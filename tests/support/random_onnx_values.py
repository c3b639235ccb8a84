"""Random choices that operators of a random ONNX graph share: types, axes, tensors beside others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from random_onnx import Graph, Tensor

FLOATS = ("float32", "float32", "float32", "float32", "float32", "float16", "float64")
INTS = ("int64", "int32", "int64", "int32", "int8", "uint8")
ALL = (*FLOATS, *INTS, "bool")
ANY_RANK = (0, 1, 2, 3, 4, 4, 5)

Step = Callable[[Graph], Any]


def axes_of(g: Graph, operator: str, axes: Sequence[int] | None, since: int) -> tuple[list[Tensor], dict[str, Any]]:
    """Axes as an attribute or, in newer operator sets, as an input."""
    if axes is None:
        return [], {}
    return ([g.constant(np.array(axes, np.int64))], {}) if g.opset >= since else ([], {"axes": list(axes)})


def some_axes(g: Graph, rank: int) -> list[int]:
    """A few distinct axes, some counted from the end."""
    count = g.number(1, max(rank, 1))
    return [int(a) - rank * int(g.chance(0.4)) for a in sorted(g.rng.permutation(rank)[:count])]


def axis(g: Graph, rank: int) -> int:
    return g.number(-rank, rank - 1)


def beside(g: Graph, x: Tensor, dtype: str = "", scale: float = 1.0) -> Tensor:
    """A tensor that broadcasts with another."""
    kind = dtype or x.dtype
    if g.chance(0.5):
        found = g.pick(lambda t: t.dtype == kind and t.name != x.name and _broadcasts(t.shape, x.shape))
        if found is not None:
            return found
    shape = [n if g.chance(0.6) else 1 for n in x.shape][g.number(0, x.rank) if g.chance(0.5) else 0 :]
    if g.chance(0.1) and x.rank < 5:
        shape = [g.choose((1, 2)), *([1] * (x.rank - len(shape))), *shape]
    return g.weight(shape, kind, scale)


def _broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(tuple(a), tuple(b))) <= 4000)
    except ValueError:
        return False
