"""Products of networks that matrix units multiply."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import NARROW_FLOATS, ROUNDED_FLOATS
from ..types import dtype_of
from .lower_precision import FACTORS, may_round


def is_on_units(product: ApplyOp) -> bool:
    """True for a product of 16-bit floats, or of float32 in a function whose products may round their factors."""
    dtype, function = dtype_of(product.outputs[0]), product.parent_op()
    if dtype in NARROW_FLOATS:
        return True
    if dtype != "float32" or not isinstance(function, FuncOp) or not may_round(product):
        return False
    kind = function.attributes.get(FACTORS)
    return isinstance(kind, StringAttr) and kind.data in ROUNDED_FLOATS
