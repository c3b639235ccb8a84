"""Constant operands laid out for the innermost loops ahead of time: packed once, when a kernel is built."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from ...dialects.loop import buffer_shape
from ...passes.analysis.access import readers
from ...passes.analysis.argument_marks import is_constant, packing_of
from ...passes.schedule.transform_layout import TransformLayout
from ..sketch.draft import Draft
from ..sketch.hole import Derived
from ..structure.anchor import Operand


def may_be_packed_ahead(operand: Operand, axes: tuple[str, ...]) -> bool:
    """True for a constant argument that one block reads, at indices among which all of `axes` stand alone."""
    buffer = operand.buffer
    if not isinstance(buffer, BlockArgument) or len(readers(buffer)) != 1:
        return False
    func = buffer.owner.parent_op()
    assert isinstance(func, FuncOp)
    loads = [load for load in readers(buffer)[0].loads if load.buffer is buffer]
    names = dimension_names(operand)
    return is_constant(buffer) and packing_of(func, buffer.index) is None and len(loads) == 1 and set(axes) <= {*names}


def pack_ahead(draft: Draft, block: str, operand: Operand, axes: tuple[str, ...], width: Derived) -> None:
    """`w[i, k]` -> `w[i / width, k, i % width]`: the elements that one register tile needs at a time side by side."""
    names = dimension_names(operand)
    shape = buffer_shape(operand.buffer)
    rest = [n for n, extent in zip(names, shape, strict=True) if n not in axes and extent > 1]
    fused = "*".join(axes)
    layout = ([f"{fused}/", width], *rest, [f"{fused}%", width])
    draft.do(TransformLayout, block=block, buffer=operand.name, layout=layout)


def dimension_names(operand: Operand) -> list[str]:
    """Name the dimensions as `transform_layout` does: by the iterator that is their whole index, else by number."""
    plain = [e.as_axis() for e in operand.indices]
    return [n if n is not None and plain.count(n) == 1 else f"d{d}" for d, n in enumerate(plain)]
