"""Two-dimensional 3x3 convolution by Winograd's minimal filtering: fewer multiplications, more additions.

The transform matrices are not tensors: each row is written out in the body, and picked by a selection on the tile's
position that disappears where the loop over positions is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.minimal_filtering import BY_OUTPUT, KERNEL, Matrices, Matrix, tiles_along
from ...dialects.numpy_types import FLOATS
from ...te import ShapeError, Tensor, compute, reduce_axis, select, sum
from ...te.errors import format_shape
from ...te.expr import Expr, Operand, zero
from ..arguments import Ints, Padding, padding_of, require_rank, spread, window_output
from .convolution import accumulator_type
from .pad import pad_spatial


def conv2d_winograd_nchw(
    data: Tensor,
    kernel: Tensor,
    padding: Padding = 1,
    tile_size: int = 4,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    dilation: Ints = 1,
) -> Tensor:
    """data (N, CI, H, W), kernel (CO, CI, 3, 3) -> (N, CO, OH, OW); stride 1.

    `tile_size` is 2 or 4. With `pre_computed` the kernel is what `winograd_weight_transform` gives. The pixels that a
    dilated window sees are every so many: each phase of them has tiles of its own.
    """
    return _convolve("conv2d_winograd_nchw", data, kernel, padding, tile_size, out_dtype, pre_computed, dilation, False)


def conv2d_winograd_nhwc(
    data: Tensor,
    kernel: Tensor,
    padding: Padding = 1,
    tile_size: int = 4,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    dilation: Ints = 1,
) -> Tensor:
    """data (N, H, W, CI), kernel (3, 3, CI, CO) -> (N, OH, OW, CO); stride 1.

    `tile_size` is 2 or 4. With `pre_computed` the kernel is what `winograd_weight_transform` gives. The pixels that a
    dilated window sees are every so many: each phase of them has tiles of its own.
    """
    return _convolve("conv2d_winograd_nhwc", data, kernel, padding, tile_size, out_dtype, pre_computed, dilation, True)


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
    dilation: Ints,
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
    apart = spread(operator, "dilation", dilation, 2)
    window = tuple((KERNEL - 1) * d + 1 for d in apart)
    before, after = padding_of(operator, padding, extents, window, (1, 1))
    output = window_output(operator, extents, before, after, window, (1, 1))
    tiles = tiles_along(output, apart, matrices.output)
    needed = tuple(
        t * matrices.output + (KERNEL - 1) * d - e - b for t, d, e, b in zip(tiles, apart, extents, before, strict=True)
    )  # whole tiles, the last ones reaching past the output
    padded = pad_spatial(data, before, needed, first)
    parts = _Tiles(data.shape[0], tiles, apart, padded, packed, matrices, dtype)
    return parts.channels_last(output) if channels_last else parts.channels_first(output)


@dataclass(frozen=True)
class _Tiles:
    """The stages from padded data and transformed kernel to the output; tiles of all images are numbered through.

    Along a dilated axis neighbours are tiles of neighbouring phases, whose pixels lie side by side.
    """

    batch: int
    tiles: tuple[int, ...]
    apart: tuple[int, ...]
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
        return p // (rows * columns), self._start(p // columns % rows, 0), self._start(p % columns, 1)

    def _start(self, tile: Expr, axis: int) -> Expr:
        """The first row, or column, of a tile by its number along the axis."""
        m, d = self.matrices.output, self.apart[axis]
        return tile * m if d == 1 else tile // d * (m * d) + tile % d

    def _along(self, pixel: Expr, axis: int) -> Expr:
        """The number along an axis of the tile that holds a row, or column, of the output."""
        m, d = self.matrices.output, self.apart[axis]
        return pixel // m if d == 1 else pixel // (m * d) * d + pixel % d

    def tile_of(self, n: Expr, y: Expr, x: Expr) -> Expr:
        """The number of the tile that holds an output pixel."""
        return (n * self.tiles[0] + self._along(y, 0)) * self.tiles[1] + self._along(x, 1)

    def inside(self, pixel: Expr, axis: int) -> Expr:
        """The row, or column, within its tile of one of the output."""
        m, d = self.matrices.output, self.apart[axis]
        return pixel % m if d == 1 else pixel // d % m

    def at(self, corner: Expr, step: Operand, axis: int) -> Expr:
        """The row, or column, of the padded data so many steps of the window behind a tile's first."""
        return corner + (step if self.apart[axis] == 1 else step * self.apart[axis])

    def channels_first(self, output: tuple[int, ...]) -> Tensor:
        a, b, tile, m = self.matrices.a, self.matrices.b, self.matrices.tile, self.matrices.output
        inputs, outputs = self.kernel.shape[2:]

        def pixel(c: Expr, p: Expr, y: Operand, x: Operand) -> Expr:
            n, top, left = self.corner(p)
            return self.data[n, c, self.at(top, y, 0), self.at(left, x, 1)].astype(self.dtype)

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
            lambda nn, ff, yy, xx: inverse[self.inside(yy, 0), self.inside(xx, 1), ff, self.tile_of(nn, yy, xx)],
            "conv2d_winograd",
        )
        return result

    def channels_last(self, output: tuple[int, ...]) -> Tensor:
        a, b, tile, m = self.matrices.a, self.matrices.b, self.matrices.tile, self.matrices.output
        inputs, outputs = self.kernel.shape[2:]

        def pixel(c: Expr, p: Expr, y: Operand, x: Operand) -> Expr:
            n, top, left = self.corner(p)
            return self.data[n, self.at(top, y, 0), self.at(left, x, 1), c].astype(self.dtype)

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
            lambda nn, yy, xx, ff: inverse[self.inside(yy, 0), self.inside(xx, 1), self.tile_of(nn, yy, xx), ff],
            "conv2d_winograd",
        )
        return result
