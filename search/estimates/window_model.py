"""Analytic model of windows whose reduction is divided twice: rows read as vectors, results in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.multiprocessor import VECTOR
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import Array, GpuModel
from .gpu_tile import GpuOperand

STORED_INSTRUCTIONS = 2.0
"""Instructions to put a result into shared memory, where slices are added up. Counted in the code, not measured: by the
stores to global memory that others make, whole images of 7x7 in a thread were estimated at 1.25 times what takes 1.2
times as long."""
TIMES = 1.2
"""Times that such candidates take of their estimates, in the scale of others: 37 of nine convolutions took 0.65 to 0.92
of them, the untuned ones of these, divided once, 0.61 to 0.83."""

MOST_WRITTEN, LONG_CODE = 1024, 1.15
"""Multiply-adds of a thread that are written out, beyond which their code is fetched again and again, and times of the
estimate that such candidates take. Of 20 for 512 channels of 7x7 with whole images in a thread (an H200) those of 882
took 10.6 to 11.5 us, those of 1,764 11.2 to 17.6, 13.8 in the mean, with the same estimates."""
FEW_STAGES, UNHIDDEN = 2, 1.04
"""Stages of the pipeline up to which a fill is waited for, and times of the estimate that these take: with three 10.6,
10.8 and 11.0 us, with two 11.3 to 11.4."""


@dataclass(frozen=True)
class SlicedWindows(GpuModel):
    """A tile of windows in slices of parts."""

    def _loads(self, c: Columns, operand: GpuOperand) -> tuple[Array, Array, Array]:
        """As of others, but that a thread has each element of the data once for all taps along all axes."""
        words, loads, least = super()._loads(c, operand)
        if not operand.padded:
            return words, loads, least
        last, kept = self.axes[-1], self._ones(c)
        for axis in self.axes:
            stride, taps = self._window(operand, axis.name)
            inner = c[axis.inner].astype(np.float64)
            row = (inner - 1) * stride + taps
            if axis is last:  # rows of vectors, where each thread's begins at one
                starts = np.where(c[axis.thread] * c[axis.virtual] == 1, 0, c[axis.inner] * stride)
                row = np.where(starts % VECTOR == 0, np.ceil(row / VECTOR), row)
            kept = kept * np.minimum(1.0, row / (inner * taps))
        return words, words * kept, words * kept

    def _window(self, operand: GpuOperand, axis: str) -> tuple[int, int]:
        """Elements that a window moves by along an axis, and its taps; 1 and 1 where there is none."""
        for strides in (dict(span.strides) for span in operand.spans):
            taps = max([r.extent for r in self.reduce if r.name in strides and not r.step], default=1)
            if axis in strides and taps > 1:
                return strides[axis], taps
        return 1, 1

    def _of_results(self, c: Columns) -> Array:
        return np.asarray(self._accumulators(c) * STORED_INSTRUCTIONS)

    def seconds(self, c: Columns) -> Array:
        long = np.where(self._accumulators(c) * self._copies(c) > MOST_WRITTEN, LONG_CODE, 1.0)
        unhidden = np.where(c[self.stages] <= FEW_STAGES, UNHIDDEN, 1.0)
        return np.asarray(TIMES * long * unhidden * super().seconds(c))
