"""Choices of tiles of large products on a GPU: many results a thread, and factors that fill multiprocessors evenly."""

from __future__ import annotations

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ..structure.anchor import Anchor
from ..structure.kinds import contraction_of

LEAST_PRODUCTS = 30_000_000
"""Multiply-adds of a product, at least: the smallest that was measured, 344x248x352, has as many (an H200: PyTorch 9.3
us, chosen among these tiles and the others 6.3)."""
LEAST_SIDE = 96
"""Rows and columns, at least. A choice: as many as the smallest tiles have along their longer side."""
ROWS_VIRTUAL, ROWS_THREADS, ROWS_INNER = (1, 2, 3), (2, 4, 6, 8, 12, 16, 24, 32), (2, 4, 8, 12)
"""Virtual threads, threads and results of a thread along rows, with threes among them. 1536 cubed takes 157.8 us in two
parts of 96 x 128 on an H200, 169.0 in tiles of 96 x 192, and 201.3 in what powers of two make of it (cuBLAS 185.6)."""
COLUMNS_VIRTUAL, COLUMNS_THREADS, COLUMNS_INNER = (1, 2, 3, 4), (8, 12, 16, 24, 32), (2, 4)
"""The same along columns, where neighbouring threads read neighbouring vectors: candidates with 8 results side by side
took 1.6 times what others did (an H200, 1536 cubed), as vectors with gaps meet in the same banks."""
LARGE_STEPS, LARGE_STAGES, LARGE_UNROLLED = (8, 16, 32), (2, 3), 512
"""Reduction steps of a fill, stages of the pipeline, and statements that a step is written out in. Of 440 candidates of
eight operators (an H200), with all choices, the three fastest of each of five aligned products had these steps, and 14
of these 15 these stages; what was not written out, with 32 statements or none, took 1.08 to 1.51 times the fastest
one's time."""


def is_large(anchor: Anchor) -> bool:
    """True for a product of two matrices of float32 that is bound by its arithmetic, whose columns are vectors.

    Copied one by one, 777x1025x513 took 35.5 us of the other tiles and 37.3 of these at best (an H200), 997x1009x1013
    62.3 and 62.5.
    """
    found = contraction_of(anchor)
    if found is None or anchor.pads or element_bytes(anchor.element) != FLOAT32_BYTES:
        return False
    if found.batch or not len(found.rows) == len(found.columns) == len(found.terms) == 1:
        return False
    (rows,), (columns,), (terms,) = found.rows, found.columns, found.terms
    work = rows.extent * columns.extent * terms.extent
    return min(rows.extent, columns.extent) >= LEAST_SIDE and columns.extent % VECTOR == 0 and work >= LEAST_PRODUCTS


def large_factors(is_columns: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Virtual threads, threads and results of a thread along rows, or along columns."""
    if is_columns:
        return COLUMNS_VIRTUAL, COLUMNS_THREADS, COLUMNS_INNER
    return ROWS_VIRTUAL, ROWS_THREADS, ROWS_INNER


def copied_widths(run: int, turned: bool) -> tuple[int, ...]:
    """Elements that a thread copies at once: vectors, where rows begin at multiples of one.

    What is turned round is stored one by one, so that single elements may do as well.
    """
    if run % VECTOR:
        return (1, 2, VECTOR)
    return (1, VECTOR) if turned else (VECTOR,)
