"""The time that a convolution takes on a GPU by Winograd's transforms, and directly: a roofline of both.

Numbers are an H200's, by its 132 multiprocessors for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...dialects.element import FLOAT32_BYTES
from ...dialects.minimal_filtering import KERNEL, Matrices, tiles_along
from ...dialects.target import Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import Array
from .nest_model import LAUNCH_S

UNTUNED_TILE = 2
"""Extent of the tiles of windows of 3x3 that are taken without records. They are as exact as the direct way
(docs/winograd.md has the errors of both), tiles of 4 are not."""
MULTIPLY_ADDS_PER_S = 1.3e11
"""Multiply-adds of a multiprocessor, both of direct convolutions and of what transforms leave of them: 17e12 in all. Of
18 convolutions untuned ones reach 9e12 to 21e12, 13e12 to 21e12 of those above 500 million."""
TRANSFORMED_BYTES_PER_S = 3.8e10
"""Bytes that transforms and the product between them move in a second for each multiprocessor, 5e12 in all: with 22e12
multiply-adds it is what 14 of these convolutions take within 20%."""
KERNEL_CYCLES = 9.5
"""Cycles of a multiprocessor for nine taps of a filter of a channel that are transformed in the call: a warp's loads
are of 32 lines each. 512 filters of 512 channels of 3x3 cost 13.5 us, 256 of 256 seven."""
CYCLES_PER_S = 1.75e9
"""Cycles of a multiprocessor, about."""
DIRECT_S = 1.9e-6
"""Seconds that direct convolutions take beyond their multiply-adds, whose reduction is divided and added up by a second
kernel where results are few. Of 15 layers whose filters come transformed the 12 that gain so take 1 / 1.07 to 1 / 2.9
of the direct time (batch 1 of ResNet-50: 10.4 us and 9.7, 11.7 and 9.4, 13.0 and 11.2, 13.8 and 10.1), of the other
three one takes 7.6 us for 7.1, 32 channels of 28x28 in batches of 8."""
VOLUMES_AHEAD = 1.5
"""Times what transforms of volumes cost whose filters come transformed, from which on what they save is taken. Of 17
with channels last (an H200) 15 save 2.2 to 7.6 times as much, and take 1 / 1.39 to 1 / 3.03 of the direct time, one
saves 1.2 times as much (1 / 0.80), one 0.7 (1 / 0.85)."""
TRANSFORMS = 2
"""Kernels beside the product, those of the data and of the results, and without that of the filters."""


@dataclass(frozen=True)
class WinogradModel:
    """A convolution by tiles of `matrices`: of so many images and pixels, channels and filters, in float32."""

    target: Target
    matrices: Matrices
    images: int
    pixels: tuple[int, int]
    channels: int
    filters: int
    ahead: bool = False
    """The filters are transformed before any call."""
    window: int = KERNEL
    """Taps along an axis."""
    dilation: tuple[int, ...] = (1, 1)
    planes: int = 1
    """Those of a volume, of so many pixels each."""
    depth: int = 1
    """Taps along planes, which are no part of a tile."""

    @property
    def gains(self) -> bool:
        """True where what transforms save is more than they cost; of volumes wherever they save multiply-adds.

        Of volumes whose filters come transformed where they save clearly more, as nothing compares both ways later.

        These reach fewer directly than images do, and both ways are compared by all that is known of their tiles: of 36
        volumes on an H200 21 are taken so, which take 1 / 1.07 to 1 / 2.04 of the direct time, but for one (1 / 0.81).
        """
        if self.planes > 1 and not self.ahead:
            return self.saved_multiply_adds > 0
        margin = VOLUMES_AHEAD if self.planes > 1 else 1.0
        return self.saved_s + (DIRECT_S if self.ahead else 0.0) > margin * self.transforms_s

    @property
    def precise(self) -> bool:
        """True where the largest errors are at most about four times those of adding up one term after another.

        Tiles of n results are for windows of 2 n - 1 taps along an axis and more. With 64 to 112 channels their errors
        beside fp64 are 0.6 times the direct ones by norm and 0.4 by the largest (2 of 3x3), 1.8 and 1.5 (3 of 5x5), 3.6
        and 4.2 (4 of 7x7), and for smaller windows 3.8 and 6.6 (4 of 3x3), which no rule takes. What candidates are
        checked by allows for seven times the direct ones (8x64x56x56 to 48, 7x7, an H200), twice those of tiles of 4.
        """
        return 2 * self.matrices.output - 1 <= self.window

    @property
    def _parts(self) -> int:
        """Parts of a window along an axis."""
        return self.matrices.parts(self.window)

    @property
    def _of_plane(self) -> int:
        """Tiles of a plane of all images, with those that only parts of windows read."""
        tiles = tiles_along(self.pixels, self.dilation, self.matrices.output)
        return self.images * prod(n + self._parts - 1 for n in tiles)

    @property
    def _tiles(self) -> int:
        """Tiles of results."""
        return self.planes * self._of_plane

    @property
    def _results(self) -> int:
        """Pixels of all images, and of all their planes."""
        return self.images * self.planes * prod(self.pixels)

    @property
    def image_bytes(self) -> int:
        """Bytes of data and results, as they are and in tiles."""
        elements, places = self._results, self.matrices.tile**2
        apart = self.channels * (elements + 2 * places * (self.planes + self.depth - 1) * self._of_plane)
        return FLOAT32_BYTES * (apart + self.filters * (elements + places * self._tiles))

    @property
    def moved_bytes(self) -> int:
        """The same with those of filters, of which a direct way reads others."""
        taps, transformed = self.window**2, (self._parts * self.matrices.tile) ** 2
        each = transformed - taps if self.ahead else transformed + taps
        filters = self.channels * self.filters * self.depth * each
        return self.image_bytes + FLOAT32_BYTES * filters

    @property
    def saved_multiply_adds(self) -> int:
        """Multiply-adds of a direct way beyond those of the product."""
        direct, tiled = self._results * self.window**2, (self._parts * self.matrices.tile) ** 2 * self._tiles
        return self.channels * self.filters * self.depth * (direct - tiled)

    @property
    def saved_s(self) -> float:
        """Seconds of the multiply-adds that transforms save."""
        return self.saved_multiply_adds / (MULTIPLY_ADDS_PER_S * self._cores)

    @property
    def transforms_s(self) -> float:
        """Seconds of what they cost beside the product."""
        moved = self.moved_bytes / (TRANSFORMED_BYTES_PER_S * self._cores) + TRANSFORMS * LAUNCH_S
        taps = self.depth * self.window**2 / KERNEL**2
        filters = self.channels * self.filters * taps * KERNEL_CYCLES / (CYCLES_PER_S * self._cores)
        return moved if self.ahead else moved + filters + LAUNCH_S

    @property
    def _cores(self) -> int:
        return max(1, self.target.cores)

    def seconds(self, c: Columns) -> Array:
        """Seconds of the transforms, whatever the product's tiles."""
        return np.full(len(next(iter(c.values()), np.ones(1))), self.transforms_s)
