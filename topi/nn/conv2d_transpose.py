"""Transposed two-dimensional convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...te import ShapeError, Tensor, all, compute, reduce_axis, select, sum
from ...te.errors import format_shape
from ...te.expr import Expr
from ...te.reduce import Reduce
from ..arguments import Ints, Padding, padding_of, require_rank, spread
from ..transform import reshape
from .convolution import accumulator_type, named_output
from .dense import matmul
from .pad import pad


def conv2d_transpose_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints | tuple[int, int] = (0, 0),
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """data (N, CI, H, W), kernel (CI, CO / groups, KH, KW) -> (N, CO, OH, OW).

    OH = (H - 1) * stride - padding (before and after) + KH + output_padding: the gradient of a convolution. With
    a stride it is made phase by phase, (N, CO, SH, SW, rows, columns): no product is with a zero between pixels. Of one
    pixel, all of whose results are asked for, it is a product of matrices, (N, CI) and (CI, CO * KH * KW).
    """
    operator = "conv2d_transpose_nchw"
    return _transposed(operator, data, kernel, stride, padding, output_padding, groups, out_dtype, False)


def conv2d_transpose_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints | tuple[int, int] = (0, 0),
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """data (N, H, W, CI), kernel (KH, KW, CI, CO / groups) -> (N, OH, OW, CO), as `conv2d_transpose_nchw`."""
    operator = "conv2d_transpose_nhwc"
    return _transposed(operator, data, kernel, stride, padding, output_padding, groups, out_dtype, True)


def _transposed(
    operator: str,
    data: Tensor,
    kernel: Tensor,
    stride: Ints,
    padding: Padding,
    output_padding: Ints | tuple[int, int],
    groups: int,
    out_dtype: str | None,
    channels_last: bool,
) -> Tensor:
    require_rank(operator, 4, data=data, kernel=kernel)
    batch, channels = data.shape[0], data.shape[-1 if channels_last else 1]
    extents = data.shape[1:-1] if channels_last else data.shape[2:]
    depth, per_group = kernel.shape[2:] if channels_last else kernel.shape[:2]
    window = kernel.shape[:2] if channels_last else kernel.shape[2:]
    if channels != depth or groups < 1 or channels % groups:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} and kernel {format_shape(kernel.shape)} do not fit with "
            f"groups={groups}: {channels} input channels, kernel for {depth}"
        )
    strides = spread(operator, "stride", stride, 2)
    phases = _phases(operator, extents, window, strides, padding, output_padding)
    if min(phases.output) < 1:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)}, kernel {format_shape(kernel.shape)}, stride {strides} and "
            f"padding {padding} leave no output"
        )
    shape = (batch, per_group * groups, *phases.output)
    dtype, depth = accumulator_type(data.dtype, out_dtype), channels // groups
    if set(extents) == {1} and groups == 1 and phases.output == phases.window and not any(phases.before):
        return _of_one_place(data, kernel, dtype, channels_last)
    moved = phases.shifted(data, 1 if channels_last else 2)
    taps = phases.filled(kernel, 0 if channels_last else 2)
    rc = reduce_axis((0, depth), "rc")
    ry, rx = (reduce_axis((0, t), name) for t, name in zip(phases.taps, ("ry", "rx"), strict=True))

    def product(n: Expr, f: Expr, phase: Sequence[Expr | int], position: Sequence[Expr]) -> Reduce:
        at = (position[0] + ry, position[1] + rx)
        point = tuple((t - 1 - r) * s + p for t, r, s, p in zip(phases.taps, (ry, rx), strides, phase, strict=True))
        channel, filter_ = (rc, f) if groups == 1 else (f // per_group * depth + rc, f % per_group)
        source = (n, *at, channel) if channels_last else (n, channel, *at)
        weight = (*point, channel, filter_) if channels_last else (channel, filter_, *point)
        axes = (ry, rx, rc) if channels_last else (rc, ry, rx)
        return sum(moved[source].astype(dtype) * taps[weight].astype(dtype), axis=axes)

    if phases.number == 1:
        none = (0, 0)
        return named_output(batch, shape[1], phases.output, lambda n, f, at: product(n, f, none, at), channels_last)
    if channels_last:
        parts = compute(
            (batch, *strides, *phases.steps, shape[1]),
            lambda n, p, q, y, x, f: product(n, f, (p, q), (y, x)),
            "compute",
            ("nn", "py", "px", "yy", "xx", "ff"),
        )
    else:
        parts = compute(
            (*shape[:2], *strides, *phases.steps),
            lambda n, f, p, q, y, x: product(n, f, (p, q), (y, x)),
            "compute",
            ("nn", "ff", "py", "px", "yy", "xx"),
        )
    return phases.joined(parts, channels_last)


def _of_one_place(data: Tensor, kernel: Tensor, dtype: str, channels_last: bool) -> Tensor:
    """One pixel's channels times the kernel: no result adds up more than one tap, all others would meet padding."""
    if channels_last:
        rc = reduce_axis((0, data.shape[-1]), "rc")
        height, width, _, filters = kernel.shape
        return named_output(
            data.shape[0],
            filters,
            (height, width),
            lambda n, f, at: sum(data[n, 0, 0, rc].astype(dtype) * kernel[(*at, rc, f)].astype(dtype), axis=rc),
            True,
        )
    batch, channels = data.shape[:2]
    weights = reshape(kernel, (channels, prod(kernel.shape[1:])))
    result = matmul(reshape(data, (batch, channels)), weights, out_dtype=dtype)
    return reshape(result, (batch, *kernel.shape[1:]))


def _phases(
    operator: str,
    extents: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    output_padding: Ints | tuple[int, int],
) -> _Phases:
    """The phases of an output, whose extents may come out as less than 1."""
    if isinstance(padding, str):
        raise ShapeError(f"{operator}: padding is given as integers, got '{padding}'")
    before, after = padding_of(operator, padding, extents, window, strides)
    extra = _extra_rows(operator, output_padding, strides)
    sizes = zip(extents, strides, before, after, window, extra, strict=True)
    output = tuple((n - 1) * s - b - a + k + e for n, s, b, a, k, e in sizes)
    return _Phases(tuple(strides), tuple(window), tuple(before), output)


def _extra_rows(operator: str, output_padding: Ints | tuple[int, int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return what is added to each output extent; ShapeError where a stride would skip it."""
    extra = (output_padding,) * 2 if isinstance(output_padding, int) else tuple(output_padding)
    if len(extra) != 2 or any(not 0 <= e < s for e, s in zip(extra, strides, strict=True)):
        raise ShapeError(f"{operator}: output_padding {output_padding} must be at least 0 and below stride {strides}")
    return extra


@dataclass(frozen=True)
class _Phases:
    """Output rows and columns by their remainders by the stride: each phase is a convolution by its own taps.

    Row `o` with `o + before = stride * q + p` adds up `data[q - j] * kernel[stride * j + p]`.
    """

    strides: tuple[int, ...]
    window: tuple[int, ...]
    before: tuple[int, ...]
    output: tuple[int, ...]

    @property
    def number(self) -> int:
        """Number of phases."""
        return prod(self.strides)

    @property
    def taps(self) -> tuple[int, ...]:
        """The rows and columns of a phase's kernel, of which some are zeros where strides do not divide the window."""
        return tuple(-(-k // s) for k, s in zip(self.window, self.strides, strict=True))

    @property
    def first(self) -> tuple[int, ...]:
        """The least `q` of an output row and column."""
        return tuple(b // s for b, s in zip(self.before, self.strides, strict=True))

    @property
    def steps(self) -> tuple[int, ...]:
        """The rows and columns of each phase."""
        ends = zip(self.output, self.before, self.strides, self.first, strict=True)
        return tuple((o - 1 + b) // s - f + 1 for o, b, s, f in ends)

    def shifted(self, data: Tensor, axis: int) -> Tensor:
        """The data behind so many zeros, or from where on, the first output is made of."""
        extents = data.shape[axis : axis + 2]
        starts = [t - 1 - f for t, f in zip(self.taps, self.first, strict=True)]
        reach = [n + t - 1 for n, t in zip(self.steps, self.taps, strict=True)]
        if not any(starts) and tuple(extents) == tuple(reach):
            return data
        shape = [*data.shape[:axis], *reach, *data.shape[axis + 2 :]]

        def element(*indices: Expr) -> Expr:
            source, inside = list(indices), []
            for d, (start, extent, end) in enumerate(zip(starts, extents, reach, strict=True), axis):
                source[d] = indices[d] - start if start else indices[d]
                inside += [source[d] >= 0] if start > 0 else []
                inside += [source[d] < extent] if end - start > extent else []
            value = data[tuple(source)]
            return select(all(*inside), value, 0) if inside else value

        result: Tensor = compute(tuple(shape), element, "pad_temp", ("i0", "i1", "i2", "i3"))
        return result

    def filled(self, kernel: Tensor, axis: int) -> Tensor:
        """The kernel with zeros behind it, so that all phases have as many taps."""
        wanted = [t * s for t, s in zip(self.taps, self.strides, strict=True)]
        if wanted == list(self.window):
            return kernel
        after = [0] * kernel.ndim
        after[axis : axis + 2] = [n - k for n, k in zip(wanted, self.window, strict=True)]
        return pad(kernel, [0] * kernel.ndim, after, name="kernel_taps")

    def joined(self, parts: Tensor, channels_last: bool) -> Tensor:
        """The phases side by side, as rows and columns of the output."""

        def place(index: Expr, d: int) -> tuple[Expr, Expr]:
            at = index + self.before[d] % self.strides[d]
            return at % self.strides[d], at // self.strides[d]

        def element(*indices: Expr) -> Expr:
            n, *others = indices
            (y, x), f = (others[:2], others[2]) if channels_last else (others[1:], others[0])
            (p, i), (q, j) = place(y, 0), place(x, 1)
            return parts[(n, p, q, i, j, f) if channels_last else (n, f, p, q, i, j)]

        batch, filters = parts.shape[0], parts.shape[-1 if channels_last else 1]
        shape = (batch, *self.output, filters) if channels_last else (batch, filters, *self.output)
        result: Tensor = compute(shape, element, "T_interleave")
        return result
