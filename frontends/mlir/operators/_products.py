"""Matrix products and convolutions on tensors of a network, shared by dialects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_lowercase

from ....graph.network import Value
from ..errors import UnsupportedOperation
from ..node import Builder
from ._movement import padded


def contracted(
    build: Builder,
    x: Value,
    y: Value,
    batch: tuple[Sequence[int], Sequence[int]],
    summed: tuple[Sequence[int], Sequence[int]],
    dtype: str,
) -> Value:
    """Multiply and sum along `summed` axes, pairwise along `batch` axes: batch, then x's own axes, then y's."""
    x, y = build.cast(x, dtype), build.cast(y, dtype)
    free = [
        [d for d in range(len(t.shape)) if d not in (*b, *s)] for t, b, s in zip((x, y), batch, summed, strict=True)
    ]
    shape = [x.shape[d] for d in (*batch[0], *free[0])] + [y.shape[d] for d in free[1]]
    if len(summed[0]) == 1 and _in_front(batch):
        made = _as_matrices(build, x, y, len(batch[0]), (summed[0][0], summed[1][0]), free)
        if made is not None:
            return build.reshape(made, shape)
    if free[1] and len(y.shape) - 1 not in free[1]:
        y, batch, summed, free = _own_axes_last(build, y, batch, summed, free)
    letters = iter(ascii_lowercase)
    left = {d: next(letters) for d in range(len(x.shape))}
    right = {b: left[a] for pairs in (batch, summed) for a, b in zip(*pairs, strict=True)}
    right |= {d: next(letters) for d in free[1]}
    result = [left[d] for d in (*batch[0], *free[0])] + [right[d] for d in free[1]]
    terms = ["".join(names[d] for d in range(len(t.shape))) for names, t in ((left, x), (right, y))]
    equation = f"{terms[0]},{terms[1]}->{''.join(result)}"
    if not summed[0]:
        return _outer(build, x, y, batch, free)
    made = build.apply("einsum", x, y, equation=equation)
    assert isinstance(made, Value)
    return made


def _own_axes_last(
    build: Builder,
    y: Value,
    batch: tuple[Sequence[int], Sequence[int]],
    summed: tuple[Sequence[int], Sequence[int]],
    free: list[list[int]],
) -> tuple[Value, tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]], list[list[int]]]:
    """Bring the axes that only y has behind the others, which are batches and what is summed.

    Neighbours in the result are then neighbours in y. Products of queries and keys (2, 128, 8, 64) of an attention take
    298 us so and 395 us as they are, (1, 256, 12, 64) 786 and 924, (8, 64, 4, 32) 127 and 136
    on two cores with AVX-512.
    """
    order = [*batch[1], *summed[1], *free[1]]
    now = {d: k for k, d in enumerate(order)}
    places = [[now[d] for d in axes] for axes in (batch[1], summed[1], free[1])]
    return build.transpose(y, order), (batch[0], places[0]), (summed[0], places[1]), [free[0], places[2]]


def _in_front(batch: tuple[Sequence[int], Sequence[int]]) -> bool:
    return all(list(axes) == list(range(len(axes))) for axes in batch)


def _outer(
    build: Builder, x: Value, y: Value, batch: tuple[Sequence[int], Sequence[int]], free: list[list[int]]
) -> Value:
    left = build.transpose(x, [*batch[0], *free[0]])
    right = build.transpose(y, [*batch[1], *free[1]])
    count = len(batch[0])
    left = build.reshape(left, (*left.shape, *(1,) * len(free[1])))
    right = build.reshape(right, (*right.shape[:count], *(1,) * len(free[0]), *right.shape[count:]))
    return build.elementwise("multiply", left, right)


def _as_matrices(
    build: Builder, x: Value, y: Value, batch: int, summed: tuple[int, int], free: list[list[int]]
) -> Value | None:
    """Return the product as one of (batches of) matrices, where axes stand so that views suffice."""
    k, other = summed
    if not free[0] and not free[1]:
        return None
    before, last = batch, [len(x.shape) - 1, len(y.shape) - 1]
    if k not in (before, last[0]) or other not in (before, last[1]):
        return None
    lead = x.shape[:batch]
    rows, columns = prod(x.shape[d] for d in free[0]), prod(y.shape[d] for d in free[1])
    depth = x.shape[k]
    turned_x, turned_y = k != last[0], other == last[1] and other != before
    if k == before == last[0]:
        turned_x = False
    if other == before == last[1]:
        turned_y = False
    x = build.reshape(x, (*_joined(lead), *((depth, rows) if turned_x else (rows, depth))))
    y = build.reshape(y, (*_joined(lead), *((columns, depth) if turned_y else (depth, columns))))
    name = "batch_matmul" if batch else "matmul"
    made: Value = build.apply(name, x, y, transpose_a=turned_x, transpose_b=turned_y)
    return made


def _joined(lead: Sequence[int]) -> tuple[int, ...]:
    return (prod(lead),) if lead else ()


@dataclass(frozen=True)
class Convolution:
    """The places of the axes of a convolution: batch and channels of data and result, both channels of weights."""

    data: tuple[int, int, tuple[int, ...]]
    weight: tuple[int, int, tuple[int, ...]]
    result: tuple[int, int, tuple[int, ...]]
    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    gaps: Sequence[int]
    dilations: Sequence[int]
    groups: int = 1


def convolved(build: Builder, x: Value, w: Value, how: Convolution, dtype: str) -> Value:
    """Convolve, in whatever order the axes are: data (batch, channels, spatial), weights (out, in, spatial)."""
    x, w = build.cast(x, dtype), build.cast(w, dtype)
    count = len(how.strides)
    if count not in (1, 2, 3):
        raise UnsupportedOperation(f"convolutions go over 1, 2 or 3 spatial axes, this one over {count}")
    spatial = how.data[2]
    low, high, gaps = [0] * len(x.shape), [0] * len(x.shape), [0] * len(x.shape)
    sides = [(max(a, 0), max(b, 0)) for a, b in how.padding]
    if any(g != 1 for g in how.gaps) or min(min(p) for p in how.padding) < 0:
        for axis, gap, pads in zip(spatial, how.gaps, how.padding, strict=True):
            gaps[axis], (low[axis], high[axis]) = gap - 1, pads
        x, sides = padded(build, x, 0.0, low, high, gaps), [(0, 0)] * count
    last = how.data[1] == len(x.shape) - 1
    letters = "DHW"[3 - count :]
    layout = f"N{letters}C" if last else f"NC{letters}"
    order = [how.data[0], *spatial, how.data[1]] if last else [how.data[0], how.data[1], *spatial]
    out, into, window = how.weight
    filters = [*window, into, out] if last else [out, into, *window]
    x, w = build.transpose(x, order), build.transpose(w, filters)
    made: Value = build.apply(
        f"conv{count}d",
        x,
        w,
        stride=tuple(how.strides),
        padding=(*(a for a, _ in sides), *(b for _, b in sides)),
        dilation=tuple(how.dilations),
        groups=how.groups,
        layout=layout,
    )
    now = [how.result[0], *how.result[2], how.result[1]] if last else [how.result[0], how.result[1], *how.result[2]]
    return build.transpose(made, [now.index(d) for d in range(len(now))])
