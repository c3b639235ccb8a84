"""The time that a transposed convolution takes on a CPU as a product whose results overlap, and phase by phase.

Numbers are fitted to 59 transposed convolutions of shapes drawn at random (seeds 0 to 8 of `benchmarks/drawn_cases.py`)
by both ways, one core of a Zen 5, seconds of the CPU. Products are estimated within 11% (rms), phases within 35%.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...dialects.element import FLOAT32_BYTES
from .col2im_model import Col2imModel
from .product_model import SHARED_BYTES
from .tile_model import CYCLES_PER_S

PRODUCT_CYCLES, DIRECT_CYCLES = 0.83, 1.33
"""Cycles of the product, and of phases, which leave out taps that they have not, for each in which a core could begin
multiply-adds of whole vectors; below 1 as its clock is faster than `CYCLES_PER_S`."""
NEAR_CYCLES, FAR_CYCLES = 0.042, 0.113
"""Cycles for a byte of products of places that is written, or read again where they are added up: where they take up
to a quarter of the cache that cores share, and beyond. With half of it products are estimated as well, with all of it
within 15%; on an Emerald Rapids 16 channels of 112x112 to 40, 4x4/2, whose products are 32 MB, take 20.5 ms, by phases
12.4."""
KERNEL_CYCLES, FAR_KERNEL_CYCLES = 0.45, 1.9
"""Cycles for an element of the kernel beside arithmetic, and of one that the second-level cache does not keep: a line
comes for a few rows at a time. 768 channels of 7x7 to 512, 4x4/2, take 6.8 ms as a product, 3.9 by phases."""
MARGIN = 1.25
"""Times of what phases are estimated at up to which the product is taken, as their estimate is that rough. With 0.9, 1,
1.2 and 1.5 the 59 take 1 / 1.16, 1 / 1.22, 1 / 1.22 and 1 / 1.22 of the time of phases, 1 / 1.26 by the better of both,
and 3, 2, 2 and 2 are below 0.9 of the faster of PyTorch and onnxruntime."""


@dataclass(frozen=True)
class CpuCol2imModel(Col2imModel):
    """A sum by both ways on the cores of a CPU: by the cycles of vectors, and what a product moves."""

    @property
    def is_offered(self) -> bool:
        """True where the product is faster, or near."""
        return self._product_s < MARGIN * self._direct_s

    @property
    def is_alone(self) -> bool:
        """True where it is offered: phases have no sketch then."""
        return self.is_offered

    @property
    def _added_s(self) -> float:
        shared_bytes = min(self.target.l3_bytes, SHARED_BYTES)
        near = self.moved_bytes <= max(shared_bytes // 2, self.target.l2_bytes)
        kernel = self.terms * self.rows
        kept = FLOAT32_BYTES * kernel <= self.target.l2_bytes
        cycles = self.moved_bytes * (NEAR_CYCLES if near else FAR_CYCLES)
        cycles += kernel * (KERNEL_CYCLES if kept else FAR_KERNEL_CYCLES)
        return cycles / self._cycles_per_s

    @property
    def _product_s(self) -> float:
        return self._multiply_add_cycles * PRODUCT_CYCLES / self._cycles_per_s + self._added_s

    @property
    def _direct_s(self) -> float:
        return self._multiply_add_cycles * DIRECT_CYCLES / self._cycles_per_s

    @property
    def _multiply_add_cycles(self) -> float:
        """Cycles of the product's multiply-adds, which phases have, too."""
        lanes = self.target.vector_bytes // FLOAT32_BYTES
        return self.images * prod((self.rows, self.columns, self.terms)) / (self.target.fma_per_cycle * lanes)

    @property
    def _cycles_per_s(self) -> float:
        return CYCLES_PER_S * self._cores
