"""Matrices of Winograd's minimal filtering for 3x3 windows, by rows (Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks", 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

Matrix = tuple[tuple[float, ...], ...]
KERNEL = 3
"""Extent of the windows."""


@dataclass(frozen=True)
class Matrices:
    """Y = A [(G g G') * (B d B')] A' for tiles of `output` x `output`, with A, G and B given by rows."""

    output: int
    a: Matrix
    b: Matrix
    g: Matrix

    @property
    def tile(self) -> int:
        return self.output + KERNEL - 1


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
"""The matrices by the extent of their tiles of results."""
