"""Packing of constant arguments: what `transform_layout` records on a function, and the same on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from .layout import Layout, parse_layout

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute

CONSTANT = "lw.constant"
LAYOUT = "lw.layout"
PACKED_FROM = "lw.packed_from"


@dataclass(frozen=True)
class Packing:
    """The layout an argument arrives in, over names that are the dimensions of the original array, in order."""

    layout: tuple[str, ...]
    extents: Mapping[str, int]

    @property
    def original_shape(self) -> tuple[int, ...]:
        return tuple(self.extents.values())

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """The shape that the argument arrives in; LayoutError where the layout is not one."""
        return parse_layout(self.layout, self.extents).shape

    def attributes(self) -> dict[str, Attribute]:
        """Return the argument attributes that record it."""
        from xdsl.dialects.builtin import ArrayAttr, StringAttr

        from ...dialects.attributes import AxesAttr, Axis

        return {
            LAYOUT: ArrayAttr([StringAttr(item) for item in self.layout]),
            PACKED_FROM: AxesAttr(tuple(Axis(name, extent) for name, extent in self.extents.items())),
        }

    def pack(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Pack the original array into the layout that the argument has."""
        return pack(array, self.layout, self.extents)


def argument_attributes(func: FuncOp, position: int) -> dict[str, Attribute]:
    """Return the attributes of an argument of `func`."""
    return dict(func.arg_attrs.data[position].data) if func.arg_attrs is not None else {}


def packing_of(func: FuncOp, position: int) -> Packing | None:
    """Return how the argument at `position` must be packed before a call; None where it comes as it is."""
    from xdsl.dialects.builtin import ArrayAttr, StringAttr

    from ...dialects.attributes import AxesAttr

    attributes = argument_attributes(func, position)
    layout, original = attributes.get(LAYOUT), attributes.get(PACKED_FROM)
    if not isinstance(layout, ArrayAttr) or not isinstance(original, AxesAttr):
        return None
    texts = tuple(item.data for item in layout if isinstance(item, StringAttr))
    return Packing(texts, {a.name: a.extent for a in original.data})


def pack(array: np.ndarray[Any, Any], layout: Sequence[str], extents: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """Pack an array into a new one in `layout`; `extents` are names and sizes of the dimensions of `array`, in order.

    The padding is zero. ValueError where the array has another shape, LayoutError where the layout is not one.
    """
    import numpy as np

    parsed = parse_layout(layout, extents)
    if array.shape != tuple(extents.values()):
        raise ValueError(f"an array of shape {tuple(extents.values())} is to be packed, got {array.shape}")
    order = list(extents)
    groups = list(dict.fromkeys(item.names for item in parsed.items))
    inside = [name for names in groups for name in names]
    omitted = tuple(order.index(name) for name in order if name not in inside)
    kept = [name for name in order if name in inside]
    value = np.squeeze(array, omitted).transpose([kept.index(name) for name in inside])
    value = value.reshape([prod(extents[n] for n in names) for names in groups])
    value = _tiled(value, parsed, groups)
    places = {(names, part): k for k, (names, part) in enumerate(_dimensions(parsed, groups))}
    return np.ascontiguousarray(value.transpose([places[item.names, item.part] for item in parsed.items]))


def _dimensions(layout: Layout, groups: Sequence[tuple[str, ...]]) -> list[tuple[tuple[str, ...], str]]:
    """Return the dimensions in the order of the groups, tiles before the place in a tile."""
    parts = {(item.names, item.part) for item in layout.items}
    return [(names, part) for names in groups for part in ("", "/", "%") if (names, part) in parts]


def _tiled(value: np.ndarray[Any, Any], layout: Layout, groups: Sequence[tuple[str, ...]]) -> np.ndarray[Any, Any]:
    """Tile dimensions: one a group -> each tiled group padded to whole tiles and split in two."""
    import numpy as np

    extents = {(item.names, item.part): extent for item, extent in zip(layout.items, layout.shape, strict=True)}
    shape = [extents[key] for key in _dimensions(layout, groups)]
    sizes = [prod(extents.get((names, part), 1) for part in ("", "/", "%")) for names in groups]
    padding = [(0, size - have) for size, have in zip(sizes, value.shape, strict=True)]
    return np.pad(value, padding).reshape(shape)
