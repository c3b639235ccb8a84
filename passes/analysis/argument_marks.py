"""Attributes of a function's arguments: which are constant, and how the caller packs them."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ...dialects.attributes import AxesAttr, Axis
from .packing import Packing

CONSTANT = "lw.constant"
LAYOUT = "lw.layout"
PACKED_FROM = "lw.packed_from"


def argument_attributes(func: FuncOp, position: int) -> dict[str, Attribute]:
    """Return the attributes of an argument of `func`."""
    return dict(func.arg_attrs.data[position].data) if func.arg_attrs is not None else {}


def is_constant(buffer: SSAValue) -> bool:
    """True for an argument whose values are known before any call."""
    if not isinstance(buffer, BlockArgument):
        return False
    func = buffer.owner.parent_op()
    return isinstance(func, FuncOp) and CONSTANT in argument_attributes(func, buffer.index)


def packing_attributes(packing: Packing) -> dict[str, Attribute]:
    """Return the attributes that record how an argument is packed."""
    return {
        LAYOUT: ArrayAttr([StringAttr(item) for item in packing.layout]),
        PACKED_FROM: AxesAttr(tuple(Axis(name, extent) for name, extent in packing.extents.items())),
    }


def packing_of(func: FuncOp, position: int) -> Packing | None:
    """Return how the argument at `position` must be packed before a call; None where it comes as it is."""
    attributes = argument_attributes(func, position)
    layout, original = attributes.get(LAYOUT), attributes.get(PACKED_FROM)
    if not isinstance(layout, ArrayAttr) or not isinstance(original, AxesAttr):
        return None
    texts = tuple(item.data for item in layout if isinstance(item, StringAttr))
    return Packing(texts, {a.name: a.extent for a in original.data})
