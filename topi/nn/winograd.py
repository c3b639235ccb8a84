"""Two-dimensional 3x3 convolution by Winograd's minimal filtering: fewer multiplications, more additions.

The transform matrices are not tensors: each row is written out in the body, and picked by a selection on the tile's
position that disappears where the loop over positions is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.minimal_filtering import BY_OUTPUT, KERNEL, Matrices, Matrix
from ...dialects.numpy_types import FLOATS
from ...te import ShapeError, Tensor, compute, reduce_axis, select, sum
from ...te.errors import format_shape
from ...te.expr import Expr, Operand, zero
from ..arguments import Padding, padding_of, require_rank, window_output
from .convolution import accumulator_type
from .pad import pad_spatial


def conv2d_winograd_nchw(
    data: Tensor,
    kernel: Tensor,
    padding: Padding = 1,
    tile_size: int = 4,
    out_dtype: str | None = None,
    pre_computed: bool = False,
) -> Tensor:
    """data (N, CI, H, W), kernel (CO, CI, 3, 3) -> (N, CO, OH, OW); stride 1, dilation 1.

    `tile_size` is 2 or 4. With `pre_computed` the kernel is what `winograd_weight_transform` gives.
    """
    return _convolve("conv2d_winograd_nchw", data, kernel, padding, tile_size, out_dtype, pre_computed, False)


def conv2d_winograd_nhwc(
    data: Tensor,
    kernel: Tensor,
    padding: Padding = 1,
    tile_size: int = 4,
    out_dtype: str | None = None,
    pre_computed: bool = False,
) -> Tensor:
    """data (N, H, W, CI), kernel (3, 3, CI, CO) -> (N, OH, OW, CO); stride 1, dilation 1.

    `tile_size` is 2 or 4. With `pre_computed` the kernel is what `winograd_weight_transform` gives.
    """
    return _convolve("conv2d_winograd_nhwc", data, kernel, padding, tile_size, out_dtype, pre_computed, True)


def winograd_weight_transform(
    kernel: Tensor, tile_size: int = 4, layout: str = "OIHW", out_dtype: str | None = None
) -> Tensor:
    """kernel (CO, CI, 3, 3), or (3, 3, CI, CO) with layout "HWIO" -> (tile, tile, CI, CO), tile = tile_size + 2."""
    operator = "winograd_weight_transform"
    require_rank(operator, 4, kernel=kernel)
    matrices = _matrices(operator, tile_size)
    if layout not in ("OIHW", "HWIO"):
        raise ShapeError(f"{operator}: layout is OIHW or HWIO, got {layout}")
    window = kernel.shape[:2] if layout == "HWIO" else kernel.shape[2:]
    inputs, outputs = kernel.shape[2:] if layout == "HWIO" else kernel.shape[1::-1]
    if window != (KERNEL, KERNEL):
        raise ShapeError(f"{operator}: the window must be 3x3, got kernel {format_shape(kernel.shape)} in {layout}")
    dtype = accumulator_type(kernel.dtype, out_dtype)

    def weight(y: Operand, x: Operand, ci: Expr, co: Expr) -> Expr:
        value = kernel[y, x, ci, co] if layout == "HWIO" else kernel[co, ci, y, x]
        return value.astype(dtype)

    tile = matrices.tile
    rows: Tensor = compute(
        (tile, KERNEL, inputs, outputs),
        lambda eps, rx, ci, co: pick_row(eps, matrices.g, lambda ry: weight(ry, rx, ci, co)),
        "kernel_rows",
    )
    result: Tensor = compute(
        (tile, tile, inputs, outputs),
        lambda eps, nu, ci, co: pick_row(nu, matrices.g, lambda rx: rows[eps, rx, ci, co]),
        "kernel_pack",
    )
    return result


def pick_row(row: Expr, matrix: Matrix, value: Callable[[int], Expr]) -> Expr:
    """The product of the matrix row number `row` with the values: every row written out without its zeros."""
    rows = [_dot(coefficients, value) for coefficients in matrix]
    result = rows[-1]
    for k in range(len(rows) - 2, -1, -1):
        result = select(row < k + 1, rows[k], result)
    return result


def _dot(coefficients: Sequence[float], value: Callable[[int], Expr]) -> Expr:
    total: Expr | None = None
    for k, c in enumerate(coefficients):
        if c == 0:
            continue
        term = value(k) if abs(c) == 1 else value(k) * float(abs(c))
        if total is None:
            total = term if c > 0 else -term
        else:
            total = total + term if c > 0 else total - term
    return total if total is not None else zero(value(0).dtype)


def _matrices(operator: str, tile_size: int) -> Matrices:
    if tile_size not in BY_OUTPUT:
        raise ShapeError(f"{operator}: tile_size is 2 or 4, got {tile_size}")
    return BY_OUTPUT[tile_size]


def _convolve(
    operator: str,
    data: Tensor,
    kernel: Tensor,
    padding: Padding,
    tile_size: int,
    out_dtype: str | None,
    pre_computed: bool,
    channels_last: bool,
) -> Tensor:
    require_rank(operator, 4, data=data, kernel=kernel)
    matrices = _matrices(operator, tile_size)
    dtype = accumulator_type(data.dtype, out_dtype)
    if dtype not in FLOATS:
        raise ShapeError(f"{operator}: the transforms need floats, got {data.dtype}: use the direct convolution")
    layout = "HWIO" if channels_last else "OIHW"
    packed = kernel if pre_computed else winograd_weight_transform(kernel, tile_size, layout, dtype)
    channels = data.shape[3 if channels_last else 1]
    if packed.shape[:3] != (matrices.tile, matrices.tile, channels):
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} and kernel {format_shape(kernel.shape)} do not fit: "
            f"{channels} input channels, the transformed kernel is {format_shape(packed.shape)}"
        )
    first = 1 if channels_last else 2
    extents = data.shape[first : first + 2]
    window = (KERNEL, KERNEL)
    before, after = padding_of(operator, padding, extents, window, (1, 1))
    output = window_output(operator, extents, before, after, window, (1, 1))
    m = matrices.output
    tiles = tuple(-(-o // m) for o in output)
    needed = tuple(
        t * m + KERNEL - 1 - e - b for t, e, b in zip(tiles, extents, before, strict=True)
    )  # whole tiles, the last ones reaching past the output
    padded = pad_spatial(data, before, needed, first)
    parts = _Tiles(data.shape[0], tiles, padded, packed, matrices, dtype)
    return parts.channels_last(output) if channels_last else parts.channels_first(output)


@dataclass(frozen=True)
class _Tiles:
    """The stages from padded data and transformed kernel to the output; tiles of all images are numbered through."""

    batch: int
    tiles: tuple[int, ...]
    data: Tensor
    kernel: Tensor
    matrices: Matrices
    dtype: str

    @property
    def count(self) -> int:
        return self.batch * self.tiles[0] * self.tiles[1]

    def corner(self, p: Expr) -> tuple[Expr, Expr, Expr]:
        """Image number, top row and left column of tile `p` in the padded data."""
        rows, columns = self.tiles
        m = self.matrices.output
        return p // (rows * columns), p // columns % rows * m, p % columns * m

    def tile_of(self, n: Expr, y: Expr, x: Expr) -> Expr:
        """The number of the tile that holds an output pixel."""
        m = self.matrices.output
        return (n * self.tiles[0] + y // m) * self.tiles[1] + x // m

    def channels_first(self, output: tuple[int, ...]) -> Tensor:
        a, b, tile, m = self.matrices.a, self.matrices.b, self.matrices.tile, self.matrices.output
        inputs, outputs = self.kernel.shape[2:]

        def pixel(c: Expr, p: Expr, y: Operand, x: Operand) -> Expr:
            n, top, left = self.corner(p)
            return self.data[n, c, top + y, left + x].astype(self.dtype)

        rows = compute(
            (tile, tile, inputs, self.count),
            lambda eps, j, c, p: pick_row(eps, b, lambda i: pixel(c, p, i, j)),
            "data_rows",
        )
        pack = compute(
            (tile, tile, inputs, self.count),
            lambda eps, nu, c, p: pick_row(nu, b, lambda j: rows[eps, j, c, p]),
            "data_pack",
        )
        ci = reduce_axis((0, inputs), "ci")
        bgemm = compute(
            (tile, tile, outputs, self.count),
            lambda eps, nu, co, p: sum(self.kernel[eps, nu, ci, co].astype(self.dtype) * pack[eps, nu, ci, p], axis=ci),
            "bgemm",
        )
        inverse_rows = compute(
            (m, tile, outputs, self.count),
            lambda vh, nu, co, p: pick_row(vh, a, lambda eps: bgemm[eps, nu, co, p]),
            "inverse_rows",
        )
        inverse = compute(
            (m, m, outputs, self.count),
            lambda vh, vw, co, p: pick_row(vw, a, lambda nu: inverse_rows[vh, nu, co, p]),
            "inverse",
        )
        result: Tensor = compute(
            (self.batch, outputs, *output),
            lambda nn, ff, yy, xx: inverse[yy % m, xx % m, ff, self.tile_of(nn, yy, xx)],
            "conv2d_winograd",
        )
        return result

    def channels_last(self, output: tuple[int, ...]) -> Tensor:
        a, b, tile, m = self.matrices.a, self.matrices.b, self.matrices.tile, self.matrices.output
        inputs, outputs = self.kernel.shape[2:]

        def pixel(c: Expr, p: Expr, y: Operand, x: Operand) -> Expr:
            n, top, left = self.corner(p)
            return self.data[n, top + y, left + x, c].astype(self.dtype)

        rows = compute(
            (tile, tile, self.count, inputs),
            lambda eps, j, p, c: pick_row(eps, b, lambda i: pixel(c, p, i, j)),
            "data_rows",
        )
        pack = compute(
            (tile, tile, self.count, inputs),
            lambda eps, nu, p, c: pick_row(nu, b, lambda j: rows[eps, j, p, c]),
            "data_pack",
        )
        ci = reduce_axis((0, inputs), "ci")
        bgemm = compute(
            (tile, tile, self.count, outputs),
            lambda eps, nu, p, co: sum(pack[eps, nu, p, ci] * self.kernel[eps, nu, ci, co].astype(self.dtype), axis=ci),
            "bgemm",
        )
        inverse_rows = compute(
            (m, tile, self.count, outputs),
            lambda vh, nu, p, co: pick_row(vh, a, lambda eps: bgemm[eps, nu, p, co]),
            "inverse_rows",
        )
        inverse = compute(
            (m, m, self.count, outputs),
            lambda vh, vw, p, co: pick_row(vw, a, lambda nu: inverse_rows[vh, nu, p, co]),
            "inverse",
        )
        result: Tensor = compute(
            (self.batch, *output, outputs),
            lambda nn, yy, xx, ff: inverse[yy % m, xx % m, self.tile_of(nn, yy, xx), ff],
            "conv2d_winograd",
        )
        return result
