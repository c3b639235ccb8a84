"""The time that a convolution of 3x3 windows takes on a CPU by Winograd's transforms, beside what they save.

Numbers of filters that are transformed in the call are fitted to 39 convolutions, 26 of them random, of 48 to 512
channels, 5x5 to 112x112 pixels and batches of 1 to 32, by transforms and directly (one core of a Zen 5, seconds of the
CPU), those of filters that were transformed before to 24 with channels last, of 16 to 512 channels (the same).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.element import FLOAT32_BYTES
from .tile_model import CYCLES_PER_S
from .winograd_model import WinogradModel

REACHED = 0.74
"""Part of a core's multiply-adds that direct convolutions reach, and the product that transforms leave of them."""
BYTES_PER_CYCLE = 3.1
"""Bytes of data and results that transforms, with the loads and stores of the product between them, move in a cycle."""
FILTER_CYCLES = 34
"""Cycles to transform a filter of a channel, whose places lie apart from those of the next."""
MARGIN = 1.7
"""Times what transforms cost, from which on what they save is taken. Of the 39 the six that save as much take 1 / 1.14
to 1 / 1.64 of the direct time; of twelve that save 1.2 to 1.7 times what it costs five take longer, up to 1.3 times.
Ten others on an Emerald Rapids take 1 / 1.32 of it on one thread (1 / 1.08 to 1 / 1.83), 1 / 1.39 on two. Volumes are
taken where they save more than it costs: six of 38 on that processor, in 1 / 1.19 to 1 / 2.08 of the direct time; nine
that save half of it and more take 1 / 0.42 to 1 / 1.43."""
AHEAD_VECTORS_PER_CYCLE = 0.14
"""Vectors that transforms move in a cycle where channels are last and filters were transformed before, those of the
filters among them: channels are lanes in all stages. So of the 24 convolutions 17 are taken, which take 1 / 1.41 to
1 / 1.93 of the direct time; of the others 256 channels of 28x28 to 16 take 1.23 times as long, 512 of 3x3 1.38, while
24 of 80x80 take 1 / 1.3 (1.54 times as long on an Emerald Rapids, where 32 of 56x56 take 1.02), 32 of 7x6 1 / 1.22,
dilated 1 / 1.12, 128 and 512 of 5x5 1 / 1.14, their filters in near caches."""


@dataclass(frozen=True)
class CpuWinogradModel(WinogradModel):
    """A convolution by transforms on the cores of a CPU: arithmetic by the cycles of vectors, and what moves."""

    @property
    def gains(self) -> bool:
        """True where what transforms save is clearly more than they cost."""
        return self.saved_s > (1.0 if self.ahead or self.planes > 1 else MARGIN) * self.transforms_s

    @property
    def saved_s(self) -> float:
        """Seconds of the multiply-adds that transforms save."""
        lanes = self.target.vector_bytes // FLOAT32_BYTES
        return self.saved_multiply_adds / (REACHED * self.target.fma_per_cycle * lanes) / self._cycles_per_s

    @property
    def transforms_s(self) -> float:
        """Seconds of what they cost beside the product."""
        if self.ahead:
            return self.moved_bytes / (AHEAD_VECTORS_PER_CYCLE * self.target.vector_bytes) / self._cycles_per_s
        filters = self.channels * self.filters * self.depth * FILTER_CYCLES
        return (self.image_bytes / BYTES_PER_CYCLE + filters) / self._cycles_per_s

    @property
    def _cycles_per_s(self) -> float:
        return CYCLES_PER_S * self._cores
