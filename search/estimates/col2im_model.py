"""The time that a transposed convolution takes on a GPU as a product whose results overlap, and phase by phase.

Numbers are an H200's, by its 132 multiprocessors for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...dialects.element import FLOAT32_BYTES
from ...dialects.target import Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import Array

PRODUCT_MULTIPLY_ADDS_PER_S, DIRECT_MULTIPLY_ADDS_PER_S = 1.14e11, 9.5e10
"""Multiply-adds of a multiprocessor, 15e12 and 12.5e12 in all, of the product and of phases. Of 59 transposed
convolutions, drawn at random, those above 300 million reach 9e12 to 22e12 as products, 9e12 to 17e12 directly."""
BYTES_PER_S = 2.05e10
"""Bytes of products of places that are written, and read again where they are added up, in a second for each
multiprocessor, 2.7e12 in all: 3 channels of 64x64 to 160 filters of 2x2 take 10.7 us so, for 21 MB."""
PRODUCT_S, DIRECT_S = 2.5e-6, 3.0e-6
"""Seconds beyond these, of both: the product is a kernel more, but has few terms that are divided among blocks."""
NEAR, FAR = 1.2, 1.0
"""Times of what a direct way is estimated at up to which the product is offered beside it, and up to which it stands
alone. Of the 59 it is faster in 30 of 32 up to 1.0 (up to 3.2 times), in ten of 13 between, and in two of 14 beyond."""


@dataclass(frozen=True)
class Col2imModel:
    """A sum of `direct` multiply-adds as `images` products of so many rows, columns and terms."""

    target: Target
    direct: int
    rows: int
    columns: int
    terms: int
    images: int = 1

    @property
    def is_offered(self) -> bool:
        """True where the product may be faster."""
        return self._product_s < NEAR * self._direct_s

    @property
    def is_alone(self) -> bool:
        """True where it is in no doubt."""
        return self._product_s < FAR * self._direct_s

    @property
    def moved_bytes(self) -> int:
        """Bytes of the product's results, which are written, and read again."""
        return 2 * FLOAT32_BYTES * self.images * self.rows * self.columns

    @property
    def _added_s(self) -> float:
        """Seconds that these take until they are added up."""
        return self.moved_bytes / (BYTES_PER_S * self._cores) + PRODUCT_S

    @property
    def _product_s(self) -> float:
        products = self.images * prod((self.rows, self.columns, self.terms))
        return products / (PRODUCT_MULTIPLY_ADDS_PER_S * self._cores) + self._added_s

    @property
    def _direct_s(self) -> float:
        return self.direct / (DIRECT_MULTIPLY_ADDS_PER_S * self._cores) + DIRECT_S

    @property
    def _cores(self) -> int:
        return max(1, self.target.cores)

    def seconds(self, c: Columns) -> Array:
        """Seconds beside the product, whatever its tiles."""
        return np.full(len(next(iter(c.values()), np.ones(1))), self._added_s)
