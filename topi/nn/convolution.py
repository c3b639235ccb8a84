"""Convolutions of any number of spatial axes, in channels-first and channels-last layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...te import IterVar, ShapeError, Tensor, compute, reduce_axis, sum
from ...te.errors import format_shape
from ...te.expr import NARROW, Expr
from ...te.reduce import Reduce
from ..arguments import Ints, Padding, padding_of, require_rank, spread, window_output
from .pad import pad_spatial

OUTPUT_AXES = {1: ("xx",), 2: ("yy", "xx"), 3: ("zz", "yy", "xx")}
WINDOW_AXES = {1: ("rx",), 2: ("ry", "rx"), 3: ("rz", "ry", "rx")}


def accumulator_type(dtype: str, out_dtype: str | None) -> str:
    """The type that products are summed in: as asked, else int32 for integers of 8 and 16 bits, else the data's."""
    return out_dtype or ("int32" if dtype in NARROW else dtype)


@dataclass(frozen=True)
class Window:
    """A kernel sliding over the spatial axes of padded data."""

    data: Tensor
    output: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    axes: tuple[IterVar, ...]

    def at(self, position: Sequence[Expr]) -> tuple[Expr, ...]:
        """Indices into the padded data at an output position and a point of the window."""
        points = zip(position, self.axes, self.strides, self.dilation, strict=True)
        return tuple((p if s == 1 else p * s) + (r if d == 1 else r * d) for p, r, s, d in points)


def slide(
    operator: str,
    data: Tensor,
    first: int,
    kernel: Sequence[int],
    stride: Ints,
    padding: Padding,
    dilation: Ints,
    pad_value: float = 0,
) -> Window:
    """Pad the spatial axes `first, first + 1, ...` of `data` and slide a window of extents `kernel` over them."""
    count = len(kernel)
    strides = spread(operator, "stride", stride, count)
    dilations = spread(operator, "dilation", dilation, count)
    windows = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    extents = data.shape[first : first + count]
    before, after = padding_of(operator, padding, extents, windows, strides)
    output = window_output(operator, extents, before, after, windows, strides)
    axes = tuple(reduce_axis((0, k), name) for k, name in zip(kernel, WINDOW_AXES[count], strict=True))
    return Window(pad_spatial(data, before, after, first, pad_value), output, strides, dilations, axes)


def convolve(
    operator: str,
    data: Tensor,
    kernel: Tensor,
    spatial: int,
    stride: Ints,
    padding: Padding,
    dilation: Ints,
    groups: int,
    out_dtype: str | None,
    channels_last: bool,
    pad_value: float = 0,
) -> Tensor:
    """A convolution over `spatial` axes, of data with `pad_value` around them.

    Kernels are (CO, CI / groups, *window); with channels last, (*window, CI / groups, CO).
    """
    require_rank(operator, spatial + 2, data=data, kernel=kernel)
    batch, channels = data.shape[0], data.shape[-1 if channels_last else 1]
    filters, depth = (kernel.shape[-1], kernel.shape[-2]) if channels_last else kernel.shape[:2]
    if groups < 1 or channels % groups or filters % groups or channels // groups != depth:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} and kernel {format_shape(kernel.shape)} do not fit with "
            f"groups={groups}: {channels} input channels, kernel for {depth} per group, {filters} output channels"
        )
    extents = kernel.shape[:spatial] if channels_last else kernel.shape[2:]
    window = slide(operator, data, 1 if channels_last else 2, extents, stride, padding, dilation, pad_value)
    dtype = accumulator_type(data.dtype, out_dtype)
    rc = reduce_axis((0, depth), "rc")

    def product(n: Expr, f: Expr, position: Sequence[Expr]) -> Reduce:
        channel = rc if groups == 1 else f // (filters // groups) * depth + rc
        at = window.at(position)
        source = (n, *at, channel) if channels_last else (n, channel, *at)
        weight = (*window.axes, rc, f) if channels_last else (f, rc, *window.axes)
        axes = (*window.axes, rc) if channels_last else (rc, *window.axes)
        return sum(window.data[source].astype(dtype) * kernel[weight].astype(dtype), axis=axes)

    return named_output(batch, filters, window.output, product, channels_last)


def named_output(
    batch: int,
    filters: int,
    output: tuple[int, ...],
    product: Callable[[Expr, Expr, Sequence[Expr]], Reduce],
    channels_last: bool,
    name: str = "compute",
) -> Tensor:
    """A compute over (nn, ff, yy, xx) or (nn, yy, xx, ff), its element given by `product(n, f, (y, x))`."""
    names = OUTPUT_AXES[len(output)]
    result: Tensor
    if channels_last:
        shape, axes = (batch, *output, filters), ("nn", *names, "ff")
        result = compute(shape, lambda *i: product(i[0], i[-1], i[1:-1]), name, axes)
    else:
        shape, axes = (batch, filters, *output), ("nn", "ff", *names)
        result = compute(shape, lambda *i: product(i[0], i[1], i[2:]), name, axes)
    return result
