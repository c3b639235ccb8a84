"""`storage_align` on extents: the padding of a buffer's rows."""

from __future__ import annotations

from ...schedule.storage_align import StorageAlign
from ..nest import Nest
from ..steps import Sizes, output_of


def replay(step: StorageAlign, nest: Nest, sizes: Sizes) -> None:
    buffer = output_of(nest.stage(step.block), step.buffer).buffer
    buffer.align = (step.axis, sizes.of(step.factor), sizes.of(step.offset))
