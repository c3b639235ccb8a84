"""Matrices of Winograd's minimal filtering, by rows (Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks", 2015), and the parts that large windows are filtered in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

Matrix = tuple[tuple[float, ...], ...]
KERNEL = 3
"""Extent of the windows that tiles of 2 and 4 results were published for, and that networks transform ahead."""


@dataclass(frozen=True)
class Matrices:
    """Y = A [(G g G') * (B d B')] A' for tiles of `output` x `output`, with A, G and B given by rows."""

    output: int
    a: Matrix
    b: Matrix
    g: Matrix

    @property
    def kernel(self) -> int:
        """Extent of a window, or of the parts of a larger one."""
        return len(self.g[0])

    @property
    def tile(self) -> int:
        return self.output + self.kernel - 1

    def parts(self, window: int) -> int:
        """Parts along an axis that a window of this extent is cut into; taps that the last one has beyond it are 0."""
        return -(-window // self.kernel)


def tiles_along(output: Sequence[int], dilation: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the tiles of `size` along each axis of an output: those of each phase of its dilation."""
    phases = [-(-extent // d) for extent, d in zip(output, dilation, strict=True)]
    return tuple(-(-rows // size) * d for rows, d in zip(phases, dilation, strict=True))


def toom_cook(output: int, points: Sequence[Fraction | int]) -> Matrices:
    """The matrices for `output` results of as many taps, through these points and infinity, 2 * `output` - 1 in all."""
    finite = [Fraction(p) for p in points]
    apart = [prod((p - q for q in finite if q != p), start=Fraction(1)) for p in finite]
    last = [Fraction(0)] * (output - 1) + [Fraction(1)]
    powers = [[p**k for p in finite] + [last[k]] for k in range(output)]
    taps = [[p**k / scale for k in range(output)] for p, scale in zip(finite, apart, strict=True)]
    without = [[*_polynomial(q for q in finite if q != p), Fraction(0)] for p in finite]
    return Matrices(output, _rounded(powers), _rounded([*without, _polynomial(finite)]), _rounded([*taps, last]))


def _polynomial(roots: Iterable[Fraction]) -> list[Fraction]:
    """Coefficients of the polynomial that is zero at these points alone, the constant first."""
    found = [Fraction(1)]
    for root in roots:
        found = [b - root * a for a, b in zip([*found, Fraction(0)], [Fraction(0), *found], strict=True)]
    return found


def _rounded(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(float(x) for x in row) for row in rows)


F2 = Matrices(
    2,
    a=((1, 1, 1, 0), (0, 1, -1, -1)),
    b=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    g=((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
)
F4 = Matrices(
    4,
    a=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    b=(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    g=(
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
)
BY_OUTPUT = {matrices.output: matrices for matrices in (F2, F4)}
"""The matrices for windows of 3x3, by the extent of their tiles of results."""
IN_PARTS = {
    matrices.output: matrices
    for matrices in (toom_cook(3, (0, 1, -1, 2)), toom_cook(4, (0, 1, -1, 2, -2, Fraction(1, 2))))
}
"""Those for parts of larger windows, by the extent of their tiles of results, which is that of a part: neighbouring
parts read neighbouring tiles, so that data are transformed once for all of them."""
OUTPUTS = tuple(sorted({*BY_OUTPUT, *IN_PARTS}))
"""Extents of tiles, of any windows."""


def filtering_of(window: int, output: int) -> Matrices | None:
    """The matrices for windows of an extent, in tiles of `output` results; None where there are none."""
    return (BY_OUTPUT if window == KERNEL else IN_PARTS if window > KERNEL else {}).get(output)
