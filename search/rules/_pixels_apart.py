"""Depthwise convolutions on a CPU with lanes along channels: a tile lays out its pixels so, padding among them."""

from __future__ import annotations

from collections.abc import Iterator

from ...dialects.attributes import Axis
from ...dialects.target import Target
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.transform_layout import TransformLayout
from ..sketch.draft import Draft
from ..structure.anchor import Anchor, Operand
from ..structure.kinds import contraction_of
from ._lanes import lanes_of


def depthwise_channels(anchor: Anchor, target: Target) -> Iterator[Axis]:
    """The channels of a depthwise convolution with strided rows, where they fill a vector.

    Of 192x112x112, 3x3/2, a core of a Zen 5 takes 0.41 ms so and 1.61 with rows as lanes, of 8x512x20x20, 5x5/2, 0.45
    and 1.83 (PyTorch 1.03 and 0.69), of 2x384x13x6, 5x5/2, 12 us and 75. Rows that are read one after the other are
    as fast by themselves: of seven without a stride, 7x7 to 80x79, five take 1.0 to 1.4 times as long so, of 576x7x7
    and 192x20x20 with windows of 5 and 7 1 / 1.5 and 1 / 1.15.
    """
    found, lanes = contraction_of(anchor), lanes_of(anchor, target)
    last = anchor.spatial[-1]
    if found is None or not any(slide.place == last and slide.stride > 1 for slide in found.slides):
        return
    for axis in found.batch:
        alone = all(_dimension(anchor, operand, axis.name) is not None for operand in anchor.operands)
        if alone and axis != last and axis.extent >= lanes and _pixels(anchor) is not None:
            yield axis


def pixels_of(anchor: Anchor) -> Operand:
    """The pixels of a depthwise convolution."""
    found = _pixels(anchor)
    assert found is not None, "asked by depthwise_channels"
    return found


def _pixels(anchor: Anchor) -> Operand | None:
    """The one operand that windows slide over, forwards."""
    sliding = [operand for operand in anchor.operands if operand.slides]
    forwards = all(slide.stride > 0 and slide.dilation > 0 for operand in sliding for slide in operand.slides)
    return sliding[0] if len(sliding) == 1 and forwards else None


def _dimension(anchor: Anchor, operand: Operand, axis: str) -> int | None:
    """The dimension of an operand along which `axis` alone moves, one by one, and no other; None without."""
    sized = {a.name for a in (*anchor.spatial, *anchor.reduce)}
    moved = [d for d, e in enumerate(operand.indices) if axis in e.axes()]
    if len(moved) != 1:
        return None
    index = operand.indices[moved[0]]
    plain = index.axes() & sized == {axis} and index.is_linear_in(axis) and index.coefficient(axis) == 1
    return moved[0] if plain else None


def copy_pixels(draft: Draft, block: str, operand: Operand) -> str:
    """Copy the pixels that a block reads, their padding in its place; the block that copies."""
    label = f"{operand.name}_pixels"
    draft.do(CacheRead, block=block, buffer=operand.name, scope="global", label=label)
    return label


def turn_pixels(draft: Draft, copy: str, anchor: Anchor, lanes: str) -> None:
    """`x_pixels[n, c, y, x]` -> `x_pixels[n, y, x, c]`, in a tile, whose loops are in this order then."""
    operand = pixels_of(anchor)
    channel = _dimension(anchor, operand, lanes)
    assert channel is not None, "asked by depthwise_channels"
    names = [f"ax{d}" for d in range(len(operand.indices))]
    names.append(names.pop(channel))
    draft.do(TransformLayout, block=copy, buffer=copy, layout=tuple(names))
    draft.order(copy, names)
