"""Blocks that are views: they number the elements of a buffer another way, as copies of its tiles do that read it."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects.index import flatten
from ...dialects.loop import BlockOp, buffer_shape
from ...dialects.strides import row_major
from .access import writers

_NOTE = "view"
VIEW: dict[str, Attribute] = {_NOTE: UnitAttr()}
"""The note of a block that a step makes so."""


def run_of(buffer: SSAValue) -> int:
    """Elements of a row of a buffer that lie side by side where they are read from, which is elsewhere for a view's."""
    views = [writer for writer in writers(buffer) if is_view(writer)]
    return buffer_shape(buffer)[-1] if all(map(keeps_rows, views)) else 1


def keeps_rows(view: BlockOp) -> bool:
    """True for a view whose neighbours along its last dimension are neighbours where it reads them."""
    last, ranges = view.write_indices[0][-1].as_axis(), {a.name: (0, a.extent - 1) for a in view.axes}
    (load,) = view.loads
    place = flatten(load.indices.data, row_major(buffer_shape(load.buffer))).simplify(ranges)
    return last is not None and place.is_linear_in(last) and place.coefficient(last) == 1


def is_view(block: BlockOp) -> bool:
    """True for a block that a step has made a view."""
    return _NOTE in block.notes
