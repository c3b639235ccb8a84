"""Pooling over one, two or three spatial axes, in any layout that names N, C and D, H, W."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from ... import te
from ...dialects.numpy_types import FLOATS, working_type
from ...te import IterVar, ShapeError, Tensor, compute, min_value, reduce_axis
from ...te.errors import format_shape
from ...te.expr import Expr
from ...te.reduce import Reduce
from ..arguments import Ints, Padding, padding_of, spread
from .pad import pad_spatial

_WINDOW = {1: ("rx",), 2: ("ry", "rx"), 3: ("rz", "ry", "rx")}


def max_pool(
    data: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    """The largest element of each window; `stride` is `kernel` unless given, padding never wins.

    `stride`, `padding` and `dilation` are as in `topi.nn.conv2d_nchw`, over the spatial axes of `layout`. With
    `ceil_mode` windows are counted up: the last one, or only one, may end behind the padding. ShapeError where no
    window fits.
    """
    pool = _pooling("max_pool", data, kernel, stride, padding, dilation, ceil_mode, layout)
    padded = pad_spatial(data, pool.before, pool.after, pool.first, min_value(data.dtype).value)
    result: Tensor = compute(
        pool.shape(data), lambda *i: te.max(padded[pool.at(i)], axis=pool.axes), "pool_max", pool.names
    )
    return result


def avg_pool(
    data: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    """The mean of each window, over the elements inside the data unless `count_include_pad`; as `topi.mean`.

    Options are those of `max_pool`.
    """
    _require_float("avg_pool", data)
    pool = _pooling("avg_pool", data, kernel, stride, padding, 1, ceil_mode, layout)
    padded = pad_spatial(data, pool.before, pool.after, pool.first)
    shape, kind = pool.shape(data), working_type(data.dtype)

    def summed(*indices: Expr) -> Expr | Reduce:
        return te.sum(padded[pool.at(indices)].astype(kind), axis=pool.axes)

    total: Tensor = compute(shape, summed, "pool_sum", pool.names)
    included = [b if count_include_pad else 0 for b in pool.before]
    trailing = [a if count_include_pad else 0 for a in pool.asked_after]

    def mean(*indices: Expr) -> Expr:
        counts: list[Expr | int] = []
        for k, d in enumerate(range(pool.first, pool.first + pool.count)):
            start = indices[d] * pool.strides[k] - pool.before[k]
            counts.append(_overlap(start, pool.kernel[k], -included[k], data.shape[d] + trailing[k], shape[d], pool, k))
        return _divided(total[indices], _product(counts)).astype(data.dtype)

    result: Tensor = compute(shape, mean, "pool_avg", pool.names)
    return result


def global_max_pool(data: Tensor, layout: str = "NCHW") -> Tensor:
    """The largest element of each channel; spatial extents become 1."""
    first, count = _spatial("global_max_pool", data, layout)
    return max_pool(data, data.shape[first : first + count], layout=layout)


def global_avg_pool(data: Tensor, layout: str = "NCHW") -> Tensor:
    """The mean of each channel; spatial extents become 1."""
    first, count = _spatial("global_avg_pool", data, layout)
    return avg_pool(data, data.shape[first : first + count], layout=layout)


def adaptive_max_pool(data: Tensor, output_size: Ints, layout: str = "NCHW") -> Tensor:
    """The largest element of each of `output_size` windows, from floor(o * E / O) to ceil((o + 1) * E / O)."""
    windows = _adaptive("adaptive_max_pool", data, output_size, layout)

    def element(*indices: Expr) -> Expr | Reduce:
        value: Expr = data[windows.at(indices)]
        conditions = windows.conditions(indices)
        if conditions:
            value = te.select(te.all(*conditions), value, min_value(data.dtype))
        return te.max(value, axis=windows.axes)

    result: Tensor = compute(windows.shape, element, "adaptive_pool_max", windows.names)
    return result


def adaptive_avg_pool(data: Tensor, output_size: Ints, layout: str = "NCHW") -> Tensor:
    """The mean of each of `output_size` windows, from floor(o * E / O) to ceil((o + 1) * E / O)."""
    _require_float("adaptive_avg_pool", data)
    windows = _adaptive("adaptive_avg_pool", data, output_size, layout)

    def element(*indices: Expr) -> Expr | Reduce:
        value: Expr = data[windows.at(indices)]
        conditions = windows.conditions(indices)
        if conditions:
            value = te.select(te.all(*conditions), value, 0)
        return te.sum(value.astype(working_type(data.dtype)), axis=windows.axes)

    total: Tensor = compute(windows.shape, element, "adaptive_pool_sum", windows.names)

    def mean(*indices: Expr) -> Expr:
        return _divided(total[indices], windows.points(indices)).astype(data.dtype)

    result: Tensor = compute(windows.shape, mean, "adaptive_pool_avg", windows.names)
    return result


def _product(counts: Sequence[Expr | int]) -> Expr | int:
    """The product of counts, the known ones in one number."""
    known = prod(c for c in counts if isinstance(c, int))
    result: Expr | int = known
    for count in counts:
        if not isinstance(count, int):
            result = count if isinstance(result, int) and result == 1 else result * count
    return result


def _divided(total: Expr, count: Expr | int) -> Expr:
    return total * (1.0 / count) if isinstance(count, int) else total / count.astype(total.dtype)


@dataclass(frozen=True)
class _Pool:
    """Windows over the spatial axes `first, first + 1, ...`; `after` pads enough for the last window of ceil_mode."""

    first: int
    names: tuple[str, ...]
    output: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    asked_after: tuple[int, ...]
    axes: tuple[IterVar, ...]

    @property
    def count(self) -> int:
        return len(self.kernel)

    def shape(self, data: Tensor) -> tuple[int, ...]:
        return (*data.shape[: self.first], *self.output, *data.shape[self.first + self.count :])

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        moved = list(indices)
        for k, r in enumerate(self.axes):
            d = self.first + k
            moved[d] = indices[d] * self.strides[k] + r * self.dilation[k]
        return tuple(moved)


def _overlap(start: Expr, kernel: int, low: int, high: int, outputs: int, pool: _Pool, k: int) -> Expr | int:
    """Elements of the window from `start` that lie in `[low, high)`: a number where all windows lie inside."""
    first = -pool.before[k]
    last = (outputs - 1) * pool.strides[k] + first + kernel
    if first >= low and last <= high:
        return kernel
    stop: Expr = te.minimum(start + kernel, high) if last > high else start + kernel
    return stop - (te.maximum(start, low) if first < low else start)


def _pooling(
    operator: str,
    data: Tensor,
    kernel: Ints,
    stride: Ints | None,
    padding: Padding,
    dilation: Ints,
    ceil_mode: bool,
    layout: str,
) -> _Pool:
    first, count = _spatial(operator, data, layout)
    extents = data.shape[first : first + count]
    kernels = spread(operator, "kernel", kernel, count)
    strides = spread(operator, "stride", kernels if stride is None else stride, count)
    dilations = spread(operator, "dilation", dilation, count)
    windows = tuple((k - 1) * d + 1 for k, d in zip(kernels, dilations, strict=True))
    before, after = padding_of(operator, padding, extents, windows, strides)
    output, needed = [], []
    for e, w, s, b, a in zip(extents, windows, strides, before, after, strict=True):
        steps = (e + b + a - w + (s - 1 if ceil_mode else 0)) // s
        if b >= w or a >= w or steps < 0:
            raise ShapeError(
                f"{operator}: a window of {format_shape(windows)} does not fit data {format_shape(data.shape)} "
                f"with padding {(*before, *after)}"
            )
        steps -= ceil_mode and steps * s >= e + b  # a window that would start in the padding after the data
        output.append(steps + 1)
        needed.append(max(a, steps * s + w - e - b))
    axes = tuple(reduce_axis((0, k), n) for k, n in zip(kernels, _WINDOW[count], strict=True))
    names = tuple(layout.lower())
    return _Pool(first, names, tuple(output), kernels, strides, dilations, before, tuple(needed), after, axes)


def _spatial(operator: str, data: Tensor, layout: str) -> tuple[int, int]:
    """The first spatial axis of a layout, and how many there are."""
    letters = layout.upper()
    spatial = letters.replace("N", "").replace("C", "")
    if len(letters) != data.ndim or spatial not in ("W", "HW", "DHW") or spatial not in letters:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} does not have layout {layout}; known are NCW, NCHW, NCDHW, "
            "NWC, NHWC, NDHWC"
        )
    return letters.index(spatial), len(spatial)


def _require_float(operator: str, data: Tensor) -> None:
    if data.dtype not in FLOATS:
        raise ShapeError(f"{operator}: a mean needs floats, got {data.dtype}: cast the data first")


@dataclass(frozen=True)
class _Windows:
    """Windows of adaptive pooling: their starts and stops are floors and ceilings of multiples of E / O."""

    first: int
    extents: tuple[int, ...]
    outputs: tuple[int, ...]
    axes: tuple[IterVar, ...]
    shape: tuple[int, ...]
    names: tuple[str, ...]

    def _each(self, indices: Sequence[Expr], function: Callable[[Expr, IterVar, int, int], Expr]) -> list[Expr]:
        own = indices[self.first : self.first + len(self.axes)]
        return [function(*point) for point in zip(own, self.axes, self.extents, self.outputs, strict=True)]

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        moved = list(indices)
        moved[self.first : self.first + len(self.axes)] = self._each(indices, lambda o, r, e, n: o * e // n + r)
        return tuple(moved)

    def conditions(self, indices: Sequence[Expr]) -> list[Expr]:
        """The point lies inside its window, for the axes whose windows differ."""
        every = self._each(indices, lambda o, r, e, n: o * e // n + r < ((o + 1) * e + n - 1) // n)
        return [c for c, e, n in zip(every, self.extents, self.outputs, strict=True) if e % n]

    def points(self, indices: Sequence[Expr]) -> Expr | int:
        """Count the elements of the window."""
        sizes = self._each(indices, lambda o, r, e, n: ((o + 1) * e + n - 1) // n - o * e // n)
        exact = zip(sizes, self.extents, self.outputs, strict=True)
        return _product([size if e % n else e // n for size, e, n in exact])


def _adaptive(operator: str, data: Tensor, output_size: Ints, layout: str) -> _Windows:
    first, count = _spatial(operator, data, layout)
    extents = data.shape[first : first + count]
    outputs = spread(operator, "output_size", output_size, count)
    sizes = [max(-(-(o + 1) * e // n) - o * e // n for o in range(n)) for e, n in zip(extents, outputs, strict=True)]
    axes = tuple(reduce_axis((0, k), name) for k, name in zip(sizes, _WINDOW[count], strict=True))
    shape = (*data.shape[:first], *outputs, *data.shape[first + count :])
    return _Windows(first, extents, outputs, axes, shape, tuple(layout.lower()))
