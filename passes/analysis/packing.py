"""Packing of constant arguments: NumPy arrays in the layout that a kernel wants them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .layout import AxisLayout, parse_layout


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

    def pack(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Pack the original array into the layout that the argument has."""
        return pack(array, self.layout, self.extents)


def pack(array: np.ndarray[Any, Any], layout: Sequence[str], extents: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """Pack an array into `layout`; `extents` are names and sizes of the dimensions of `array`, in order.

    The result is a copy, or a view where elements lie in memory in that order. The padding is zero.
    ValueError where the array has another shape, LayoutError where the layout is not one.
    """
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


def _dimensions(layout: AxisLayout, groups: Sequence[tuple[str, ...]]) -> list[tuple[tuple[str, ...], str]]:
    """Return the dimensions in the order of the groups, tiles before the place in a tile."""
    parts = {(item.names, item.part) for item in layout.items}
    return [(names, part) for names in groups for part in ("", "/", "%") if (names, part) in parts]


def _tiled(value: np.ndarray[Any, Any], layout: AxisLayout, groups: Sequence[tuple[str, ...]]) -> np.ndarray[Any, Any]:
    """Tile dimensions: one a group -> each tiled group padded to whole tiles and split in two."""
    extents = {(item.names, item.part): extent for item, extent in zip(layout.items, layout.shape, strict=True)}
    shape = [extents[key] for key in _dimensions(layout, groups)]
    sizes = [prod(extents.get((names, part), 1) for part in ("", "/", "%")) for names in groups]
    padding = [(0, size - have) for size, have in zip(sizes, value.shape, strict=True)]
    return (np.pad(value, padding) if any(map(any, padding)) else value).reshape(shape)
