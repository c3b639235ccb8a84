"""Convolution of images and volumes by Winograd's minimal filtering of 3x3: fewer multiplications, more additions.

The transform matrices are not tensors: each row is written out in the body, and picked by a selection on the tile's
position that disappears where the loop over positions is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...dialects.minimal_filtering import BY_OUTPUT, KERNEL, Matrices, Matrix, tiles_along
from ...dialects.numpy_types import FLOATS
from ...te import ShapeError, Tensor, compute, reduce_axis, select, sum
from ...te.errors import format_shape
from ...te.expr import Expr, Operand, zero
from ...te.reduce import Reduce
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


def conv3d_winograd_ncdhw(
    data: Tensor,
    kernel: Tensor,
    padding: Padding = 1,
    tile_size: int = 4,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    dilation: Ints = 1,
) -> Tensor:
    """data (N, CI, D, H, W), kernel (CO, CI, KD, 3, 3) -> (N, CO, OD, OH, OW); stride 1.

    Each plane is cut into tiles, and products of all taps along planes are added up before they are transformed back.
    Options are those of `conv2d_winograd_nchw`.
    """
    return _convolve(
        "conv3d_winograd_ncdhw", data, kernel, padding, tile_size, out_dtype, pre_computed, dilation, False
    )


def conv3d_winograd_ndhwc(
    data: Tensor,
    kernel: Tensor,
    padding: Padding = 1,
    tile_size: int = 4,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    dilation: Ints = 1,
) -> Tensor:
    """data (N, D, H, W, CI), kernel (KD, 3, 3, CI, CO) -> (N, OD, OH, OW, CO); stride 1.

    As `conv3d_winograd_ncdhw`.
    """
    return _convolve("conv3d_winograd_ndhwc", data, kernel, padding, tile_size, out_dtype, pre_computed, dilation, True)


_CHANNELS_LAST = {"OIHW": False, "HWIO": True, "OIDHW": False, "DHWIO": True}
"""Layouts of filters, and whether their channels are last."""


def winograd_weight_transform(
    kernel: Tensor, tile_size: int = 4, layout: str = "OIHW", out_dtype: str | None = None
) -> Tensor:
    """kernel (CO, CI, 3, 3), or (3, 3, CI, CO) with layout "HWIO" -> (tile, tile, CI, CO), tile = tile_size + 2.

    Of volumes (CO, CI, KD, 3, 3) with layout "OIDHW", or (KD, 3, 3, CI, CO) with "DHWIO" -> (tile, tile, KD, CI, CO).
    """
    operator = "winograd_weight_transform"
    matrices = _matrices(operator, tile_size)
    if layout not in _CHANNELS_LAST:
        raise ShapeError(f"{operator}: layout is one of {', '.join(_CHANNELS_LAST)}, got {layout}")
    require_rank(operator, len(layout), kernel=kernel)
    last = _CHANNELS_LAST[layout]
    inputs, outputs = kernel.shape[-2:] if last else kernel.shape[1::-1]
    *depth, high, wide = kernel.shape[:-2] if last else kernel.shape[2:]
    if (high, wide) != (KERNEL, KERNEL):
        raise ShapeError(f"{operator}: the window must be 3x3, got kernel {format_shape(kernel.shape)} in {layout}")
    dtype = accumulator_type(kernel.dtype, out_dtype)

    def weight(y: Operand, x: Operand, rest: tuple[Expr, ...]) -> Expr:
        *plane, ci, co = rest
        value = kernel[*plane, y, x, ci, co] if last else kernel[co, ci, *plane, y, x]
        return value.astype(dtype)

    tile, names = matrices.tile, ("kz",) * len(depth) + ("ci", "co")
    rows: Tensor = compute(
        (tile, KERNEL, *depth, inputs, outputs),
        lambda eps, rx, *rest: pick_row(eps, matrices.g, lambda ry: weight(ry, rx, rest)),
        "kernel_rows",
        ("eps", "rx", *names),
    )
    result: Tensor = compute(
        (tile, tile, *depth, inputs, outputs),
        lambda eps, nu, *rest: pick_row(nu, matrices.g, lambda rx: rows[eps, rx, *rest]),
        "kernel_pack",
        ("eps", "nu", *names),
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
    volumes = operator.startswith("conv3d")
    require_rank(operator, 5 if volumes else 4, data=data, kernel=kernel)
    matrices = _matrices(operator, tile_size)
    dtype = accumulator_type(data.dtype, out_dtype)
    if dtype not in FLOATS:
        raise ShapeError(f"{operator}: the transforms need floats, got {data.dtype}: use the direct convolution")
    layout = ("DHWIO" if channels_last else "OIDHW") if volumes else ("HWIO" if channels_last else "OIHW")
    packed = kernel if pre_computed else winograd_weight_transform(kernel, tile_size, layout, dtype)
    channels, taps = data.shape[-1 if channels_last else 1], (*packed.shape[2:-2], KERNEL, KERNEL)
    if (*packed.shape[:2], packed.shape[-2]) != (matrices.tile, matrices.tile, channels):
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} and kernel {format_shape(kernel.shape)} do not fit: "
            f"{channels} input channels, the transformed kernel is {format_shape(packed.shape)}"
        )
    first, ones = 1 if channels_last else 2, (1,) * len(taps)
    extents = data.shape[first : first + len(taps)]
    apart = spread(operator, "dilation", dilation, len(taps))
    window = tuple((k - 1) * d + 1 for k, d in zip(taps, apart, strict=True))
    before, after = padding_of(operator, padding, extents, window, ones)
    output = window_output(operator, extents, before, after, window, ones)
    tiles = tiles_along(output[-2:], apart[-2:], matrices.output)
    needed = (
        *after[:-2],
        *(
            t * matrices.output + (KERNEL - 1) * d - e - b
            for t, d, e, b in zip(tiles, apart[-2:], extents[-2:], before[-2:], strict=True)
        ),
    )  # whole tiles, the last ones reaching past the output
    padded = pad_spatial(data, before, needed, first)
    parts = _Tiles(data.shape[0], output[0] if volumes else 1, tiles, apart, padded, packed, matrices, dtype)
    return parts.results(output, channels_last)


@dataclass(frozen=True)
class _Tiles:
    """The stages from padded data and transformed kernel to the output; tiles of all images are numbered through.

    Those of volumes plane by plane, each of all images, so that a tap along planes reads tiles at a distance. Along a
    dilated axis neighbours are tiles of neighbouring phases, whose pixels lie side by side.
    """

    batch: int
    planes: int
    tiles: tuple[int, ...]
    apart: tuple[int, ...]
    data: Tensor
    kernel: Tensor
    matrices: Matrices
    dtype: str

    @property
    def volumes(self) -> bool:
        return len(self.apart) == 3

    @property
    def depth(self) -> int:
        """Taps along planes."""
        return self.kernel.shape[2] if self.volumes else 1

    @property
    def plane(self) -> int:
        """Tiles of a plane, of all images."""
        return self.batch * self.tiles[0] * self.tiles[1]

    @property
    def count(self) -> int:
        """Tiles of results."""
        return self.planes * self.plane

    @property
    def beyond(self) -> int:
        """Tiles of data that the last taps along planes read beyond them."""
        return (self.depth - 1) * self.apart[0] * self.plane

    def corner(self, p: Expr) -> tuple[Expr, ...]:
        """Image number, plane if any, top row and left column of tile `p` in the padded data."""
        rows, columns = self.tiles
        image = p // (rows * columns)
        place = (image % self.batch, p // self.plane) if self.volumes else (image,)
        return *place, self._start(p // columns % rows, 0), self._start(p % columns, 1)

    def _start(self, tile: Expr, axis: int) -> Expr:
        """The first row, or column, of a tile by its number along the axis."""
        m, d = self.matrices.output, self.apart[axis - 2]
        return tile * m if d == 1 else tile // d * (m * d) + tile % d

    def _along(self, pixel: Expr, axis: int) -> Expr:
        """The number along an axis of the tile that holds a row, or column, of the output."""
        m, d = self.matrices.output, self.apart[axis - 2]
        return pixel // m if d == 1 else pixel // (m * d) * d + pixel % d

    def tile_of(self, n: Expr, plane: Sequence[Expr], y: Expr, x: Expr) -> Expr:
        """The number of the tile that holds an output pixel."""
        image = plane[0] * self.batch + n if plane else n
        return (image * self.tiles[0] + self._along(y, 0)) * self.tiles[1] + self._along(x, 1)

    def inside(self, pixel: Expr, axis: int) -> Expr:
        """The row, or column, within its tile of one of the output."""
        m, d = self.matrices.output, self.apart[axis - 2]
        return pixel % m if d == 1 else pixel // d % m

    def at(self, corner: Expr, step: Operand, axis: int) -> Expr:
        """The row, or column, of the padded data so many steps of the window behind a tile's first."""
        return corner + (step if self.apart[axis - 2] == 1 else step * self.apart[axis - 2])

    def results(self, output: tuple[int, ...], last: bool) -> Tensor:
        """The output of an extent along each axis of images, with channels behind these where they are `last`."""
        a, b, tile, m = self.matrices.a, self.matrices.b, self.matrices.tile, self.matrices.output
        inputs, outputs = self.kernel.shape[-2:]

        def both(channel: Any, tiles: Any) -> tuple[Any, Any]:
            """Channels and tiles in the order of data, or from it."""
            return (tiles, channel) if last else (channel, tiles)

        def pixel(at: Sequence[Expr], y: Operand, x: Operand) -> Expr:
            c, p = both(*at)
            n, *plane, top, left = self.corner(p)
            place = (*plane, self.at(top, y, 0), self.at(left, x, 1))
            return (self.data[n, *place, c] if last else self.data[n, c, *place]).astype(self.dtype)

        rows = compute(
            (tile, tile, *both(inputs, self.count + self.beyond)),
            lambda eps, j, *at: pick_row(eps, b, lambda i: pixel(at, i, j)),
            "data_rows",
            ("eps", "j", *both("c", "p")),
        )
        pack = compute(
            (tile, tile, *both(inputs, self.count + self.beyond)),
            lambda eps, nu, *at: pick_row(nu, b, lambda j: rows[eps, j, *at]),
            "data_pack",
            ("eps", "nu", *both("c", "p")),
        )
        bgemm = self._product(pack, last, both)
        inverse_rows = compute(
            (m, tile, *both(outputs, self.count)),
            lambda vh, nu, *at: pick_row(vh, a, lambda eps: bgemm[eps, nu, *at]),
            "inverse_rows",
            ("vh", "nu", *both("co", "p")),
        )
        inverse = compute(
            (m, m, *both(outputs, self.count)),
            lambda vh, vw, *at: pick_row(vw, a, lambda nu: inverse_rows[vh, nu, *at]),
            "inverse",
            ("vh", "vw", *both("co", "p")),
        )

        def result(nn: Expr, *rest: Expr) -> Expr:
            ff, (*plane, yy, xx) = (rest[-1], rest[:-1]) if last else (rest[0], rest[1:])
            return inverse[self.inside(yy, 0), self.inside(xx, 1), *both(ff, self.tile_of(nn, plane, yy, xx))]

        shape, names = output, ("zz", "yy", "xx")[-len(output) :]
        shape = (self.batch, *output, outputs) if last else (self.batch, outputs, *output)
        names = ("nn", *names, "ff") if last else ("nn", "ff", *names)
        return compute(shape, result, "conv3d_winograd" if self.volumes else "conv2d_winograd", names)

    def _product(self, pack: Tensor, last: bool, both: Callable[[Any, Any], tuple[Any, Any]]) -> Tensor:
        """Sums of products over channels, and taps along planes, for each position in a tile."""
        inputs, outputs = self.kernel.shape[-2:]
        ci, taps = reduce_axis((0, inputs), "ci"), [reduce_axis((0, self.depth), "pz")][: self.depth > 1]

        def product(eps: Expr, nu: Expr, *at: Expr) -> Reduce:
            co, p = both(*at)
            place = [*taps] if taps else [0][: self.volumes]
            weight = self.kernel[eps, nu, *place, ci, co].astype(self.dtype)
            tile = p + taps[0] * (self.apart[0] * self.plane) if taps else p
            value = pack[eps, nu, *both(ci, tile)]
            return sum(value * weight if last else weight * value, axis=[ci, *taps])

        shape = (self.matrices.tile, self.matrices.tile, *both(outputs, self.count))
        return compute(shape, product, "bgemm", ("eps", "nu", *both("co", "p")))
