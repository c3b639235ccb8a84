"""The pass that lets convolutions be computed by Winograd's transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, is_constant, option, replace


@dataclass(frozen=True)
class Winograd(ModulePass):
    """conv2d(x, w) -> conv2d_winograd(x, winograd_weight_transform(w)), for tiles of `tile_size` x `tile_size`.

    Of convolutions in floats with 3x3 windows, stride 1, dilation 1, one group and constant weights, whose transform is
    left to `lw-graph-fold-constants`. Results are less exact with tiles of 4, and depend on the pass: no network is
    brought through it unasked.
    """

    name: ClassVar[str] = "lw-graph-winograd"
    tile_size: int = 4

    def __post_init__(self) -> None:
        if self.tile_size not in (2, 4):
            raise ValueError(f"{self.name}: tile_size is 2 or 4, got {self.tile_size}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if _fits(found):
                replace(found, [self._transformed(found)])

    def _transformed(self, op: ApplyOp) -> SSAValue:
        data, weight = op.inputs
        before, layout = Before(op), str(option(op, "layout"))
        weights = "HWIO" if layout == "NHWC" else "OIHW"
        tiles = before.apply("winograd_weight_transform", weight, tile_size=self.tile_size, layout=weights)
        options = {"padding": option(op, "padding"), "tile_size": self.tile_size, "layout": layout}
        return before.apply("conv2d_winograd", data, tiles, label=op.outputs[0].name_hint, **options)


def _fits(op: ApplyOp) -> bool:
    """Return whether a convolution has transforms, and weights that can be transformed ahead."""
    if op.operator.data != "conv2d" or not is_constant(op.inputs[1]) or dtype_of(op.inputs[0]) not in FLOATS:
        return False
    shape = shape_of(op.inputs[1])
    window = shape[:2] if option(op, "layout") == "NHWC" else shape[2:]
    ones = all(option(op, name) in (1, (1,), (1, 1)) for name in ("stride", "dilation", "groups"))
    return window == (3, 3) and ones
