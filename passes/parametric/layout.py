"""Layouts whose tiles are sizes: the shape, the way there and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis.layout import parse_layout
from ..analysis.nest import fresh_name
from .index import Index
from .sizes import Size, Sizes, ceil_div, product

_ANY = 1 << 40
"""An extent for the parser where the real one depends on decisions."""


@dataclass(frozen=True)
class SizedItem:
    """One dimension: the product of `names`, whole, by tiles (`/`) or within a tile (`%`)."""

    names: tuple[str, ...]
    part: str
    tile: Size
    multiple: int
    identifier: str

    def tiles(self, size: Size) -> Size:
        """The number of tiles of so many elements."""
        return (
            ceil_div(size, self.tile * self.multiple) * self.multiple
            if self.multiple > 1
            else ceil_div(size, self.tile)
        )


class SizedLayout:
    """A layout of names with extents, as `passes.analysis.layout` has them."""

    def __init__(self, texts: Sequence[str], extents: Mapping[str, Size], sizes: Sizes) -> None:
        plain = {n: e if isinstance(e, int) else _ANY for n, e in extents.items()}
        parsed = parse_layout(texts, plain)
        self.extents = extents
        self.items = [SizedItem(i.names, i.part, sizes.of(i.tile), i.multiple, i.identifier) for i in parsed.items]

    @property
    def shape(self) -> list[Size]:
        """The extent of each dimension."""
        shape: list[Size] = []
        for item in self.items:
            size = product([self.extents[n] for n in item.names])
            shape.append({"": size, "/": item.tiles(size), "%": item.tile}[item.part])
        return shape

    @property
    def dimensions(self) -> list[str]:
        """A different name for each dimension."""
        names: list[str] = []
        for item in self.items:
            names.append(fresh_name(item.identifier, names))
        return names

    def forward(self) -> list[Index]:
        """The index of each dimension over the names."""
        indices = []
        for item in self.items:
            value = Index.constant(0)
            for part in item.names:
                value = value * self.extents[part] + Index.axis(part)
            indices.append({"": value, "/": value // item.tile, "%": value % item.tile}[item.part])
        return indices

    def inverse(self) -> dict[str, Index]:
        """Return an index over the dimensions for each name."""
        groups: dict[tuple[str, ...], Index] = {}
        for item, dimension in zip(self.items, self.dimensions, strict=True):
            part = Index.axis(dimension) * item.tile if item.part == "/" else Index.axis(dimension)
            groups[item.names] = groups[item.names] + part if item.names in groups else part
        values = dict.fromkeys(self.extents, Index.constant(0))
        for names, fused in groups.items():
            below: Size = 1
            for own in reversed(names):
                value = fused // below
                values[own] = value if own == names[0] else value % self.extents[own]
                below = below * self.extents[own]
        return values
