"""The warp shuffle of MLIR's `gpu` dialect, which xDSL's lacks."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.builtin import i1, i32
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.str_enum import StrEnum


class ShuffleMode(StrEnum):
    """The lane whose value a lane gets."""

    Xor = auto()


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """`#gpu<shuffle_mode xor>`."""

    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """`"gpu.shuffle"(%value, %distance, %width) <{mode = #gpu<shuffle_mode xor>}>`: a value, and whether it is one."""

    name = "gpu.shuffle"
    value = operand_def()
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    result = result_def()
    valid = result_def(i1)

    def __init__(self, value: SSAValue, distance: SSAValue, width: SSAValue) -> None:
        super().__init__(
            operands=[value, distance, width],
            properties={"mode": ShuffleModeAttr(ShuffleMode.Xor)},
            result_types=[value.type, i1],
        )
