"""The pass that lets convolutions be computed by Winograd's transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.graph import ApplyOp, ConstantOp, GroupOp
from ...dialects.minimal_filtering import KERNEL
from ...topi.arguments import spread
from ..types import dtype_of, infer, shape_of
from ._rewrite import Before, applied, group_label, is_constant, option, replace

TILE_SIZES = (2, 4)
"""Extents of output tiles that there are transforms for."""
_OPERATORS = {"conv2d": "conv2d_winograd", "conv3d": "conv3d_winograd"}
"""Convolutions -> the same by transforms."""
_OF_WEIGHTS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}
"""Layouts of data -> those of their filters."""
_TYPES = ("float32", "float64")
"""Element types that the transforms are exact enough in; products are weighed by up to 64 before they cancel."""


@dataclass(frozen=True)
class Winograd(ModulePass):
    """conv2d(x, w) -> conv2d_winograd(x, winograd_weight_transform(w)), for tiles of `tile_size` x `tile_size`.

    And conv3d -> conv3d_winograd, by tiles of each plane. Of convolutions in fp32 or fp64 with windows of 3x3, of any
    number of planes, dilated or not, stride 1, one group, zeros around their data and constant weights, whose transform
    is left to `lw-graph-fold-constants`; in groups as outside of them. Results are less exact with tiles of 4, and
    depend on the pass.
    """

    name: ClassVar[str] = "lw-graph-winograd"
    tile_size: int = 4

    def __post_init__(self) -> None:
        if self.tile_size not in TILE_SIZES:
            raise ValueError(f"{self.name}: tile_size is 2 or 4, got {self.tile_size}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data in _OPERATORS and _fits(found, found.inputs[1]):
                weight = _transformed(Before(found), found, found.inputs[1], self.tile_size)
                replace(found, [_by_tiles(found, weight, self.tile_size)])
        for group in [group for group in op.walk() if isinstance(group, GroupOp)]:
            take_tiles(group, self.tile_size)


def by_tiles(group: GroupOp, tile_size: int) -> GroupOp | None:
    """A copy of a group, in no network, with its convolution by transforms; None where it has none that fits.

    It reads a constant of the transformed weights' type, which has no values: as a kernel it is what `take_tiles` makes
    of the group.
    """
    found = _convolution(group)
    if found is None:
        return None
    conv, position = found
    copy = group.clone()
    inside = next(op for op, old in zip(copy.body.block.ops, group.body.block.ops, strict=True) if old is conv)
    assert isinstance(inside, ApplyOp)
    weight = inside.inputs[1]
    (kind,) = infer("winograd_weight_transform", [weight.type], _weight_options(inside, tile_size))
    weight = Rewriter.replace_value_with_new_type(weight, kind)
    replace(inside, [_by_tiles(inside, weight, tile_size)])
    copy.label = StringAttr(group_label([op for op in copy.body.block.ops if isinstance(op, ApplyOp)]))
    copy.operands[position] = ConstantOp("weight", kind).result
    return copy


def take_tiles(group: GroupOp, tile_size: int) -> None:
    """Put `by_tiles` of a group in its place, with the transform of its weights before it; else leave it as it is."""
    copy, found = by_tiles(group, tile_size), _convolution(group)
    if copy is None or found is None:
        return
    block, (conv, position) = group.parent, found
    assert isinstance(block, Block)
    block.insert_op_before(copy, group)
    copy.operands[position] = _transformed(Before(copy), conv, group.inputs[position], tile_size)
    replace(group, copy.outputs)


def convolution_of(group: GroupOp) -> ApplyOp | None:
    """Return the convolution of a group that transforms can compute; None where it has none."""
    found = _convolution(group)
    return None if found is None else found[0]


def dilation_of(conv: ApplyOp) -> tuple[int, ...]:
    """Return the dilation of a convolution along each axis."""
    return spread(conv.operator.data, "dilation", option(conv, "dilation"), len(shape_of(conv.inputs[0])) - 2)


def taps_along_planes(conv: ApplyOp) -> int:
    """Return the extent of a convolution's window along the planes of volumes; 1 for images."""
    shape = shape_of(conv.inputs[1])
    return 1 if len(shape) == 4 else shape[0 if is_channels_last(conv) else 2]


def is_channels_last(conv: ApplyOp) -> bool:
    """True for a convolution whose channels are behind its pixels."""
    return str(option(conv, "layout")).endswith("C")


def _transformed(before: Before, conv: ApplyOp, weight: SSAValue, tile_size: int) -> SSAValue:
    return before.apply("winograd_weight_transform", weight, **_weight_options(conv, tile_size))


def _weight_options(conv: ApplyOp, tile_size: int) -> dict[str, Any]:
    return {"tile_size": tile_size, "layout": _OF_WEIGHTS[option(conv, "layout")]}


def _by_tiles(conv: ApplyOp, weight: SSAValue, tile_size: int) -> SSAValue:
    """Add the convolution of transformed weights before one."""
    options = {name: option(conv, name) for name in ("padding", "dilation", "layout")} | {"tile_size": tile_size}
    return Before(conv).apply(
        _OPERATORS[conv.operator.data], conv.inputs[0], weight, label=conv.outputs[0].name_hint, **options
    )


def _convolution(group: GroupOp) -> tuple[ApplyOp, int] | None:
    """The convolution of a group that fits, and which input is its weights, which nothing else in it reads."""
    places: dict[SSAValue, int] = {argument: k for k, argument in enumerate(group.body.block.args)}
    for op in group.body.block.ops:
        if isinstance(op, ApplyOp) and op.operator.data in _OPERATORS:
            place = places.get(op.inputs[1])
            if place is not None and op.inputs[1].has_one_use() and _fits(op, group.inputs[place]):
                return op, place
    return None


def _fits(op: ApplyOp, weight: SSAValue) -> bool:
    """Return whether a convolution has transforms, and `weight` can be transformed ahead."""
    if not is_constant(weight) or dtype_of(op.inputs[0]) not in _TYPES or option(op, "rounds"):
        return False
    shape, (name, axes) = shape_of(weight), (op.operator.data, len(shape_of(op.inputs[0])) - 2)
    window = shape[:axes] if is_channels_last(op) else shape[2:]
    ones = set(spread(name, "stride", option(op, "stride"), axes)) == {1} and option(op, "groups") == 1
    return window[-2:] == (KERNEL, KERNEL) and ones and not option(op, "pad_value")
