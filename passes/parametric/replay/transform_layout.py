"""`transform_layout` on extents: all accesses of a buffer, and its shape, in another order."""

from __future__ import annotations

from ...schedule.transform_layout import TransformLayout
from ..index import Index
from ..layout import SizedLayout
from ..nest import Nest
from ..steps import Sizes


def replay(step: TransformLayout, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    access = next(a for a in stage.accesses if a.buffer.name == step.buffer)
    buffer = access.buffer
    names = _names(access.indices)
    layout = SizedLayout(step.layout, dict(zip(names, buffer.shape, strict=True)), sizes)
    forward = layout.forward()
    for other in nest.root.stages():
        for use in other.accesses:
            if use.buffer is buffer:
                values = dict(zip(names, use.indices, strict=True))
                use.indices = [e.substitute(values) for e in forward]
    buffer.shape = layout.shape


def _names(indices: list[Index]) -> list[str]:
    """A name for each dimension: the iterator that is its index and no other's, else `d<number>`."""
    plain = [e.as_name for e in indices]
    names = [n if n is not None and plain.count(n) == 1 else None for n in plain]
    numbered = {f"d{d}" for d in range(len(names))}
    return [f"d{d}" if n is None or n in numbered - {f"d{d}"} else n for d, n in enumerate(names)]
