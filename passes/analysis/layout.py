"""Layouts: how named indices are laid out as the dimensions of a buffer, and the way there and back.

A layout is a tuple of items over names that have extents. `j` is a dimension of its own; `yy*xx` is one dimension for
both, row-major (`yy * extent(xx) + xx`); `j/64` beside `j%64` are the tiles of `j` and the place in a tile, also of
products (`yy*xx/16`, `yy*xx%16`). Tiles that do not divide leave padding at the end, and `j/64:4` is as many more tiles
as make their number a multiple of 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...dialects.index import ZERO, IndexExpr, axis
from ..open_number import OpenNumber

_ITEM = re.compile(r"\s*(\w+(?:\s*\*\s*\w+)*)\s*(?:([/%])\s*(\d+|<\w+>)\s*)?(?::\s*(\d+)\s*)?")


class LayoutError(ValueError):
    """A text that is no layout of the names it is for; says which item and what is needed."""


@dataclass(frozen=True)
class Item:
    """One dimension: the product of `names`, whole (`part` is empty), by tiles (`/`) or within a tile (`%`).

    The number of tiles is a multiple of `multiple`.
    """

    names: tuple[str, ...]
    part: str = ""
    tile: int = 1
    multiple: int = 1

    def __str__(self) -> str:
        multiple = f":{self.multiple}" if self.multiple > 1 else ""
        return "*".join(self.names) + (f"{self.part}{self.tile}{multiple}" if self.part else "")

    def tiles(self, size: int) -> int:
        """The number of tiles of so many elements."""
        return -(-size // (self.tile * self.multiple)) * self.multiple

    @property
    def identifier(self) -> str:
        """The item as a name for a loop: `yy_xx`, `j_o` for the tiles, `j_i` for the place in a tile."""
        return "_".join(self.names) + {"": "", "/": "_o", "%": "_i"}[self.part]


@dataclass(frozen=True)
class AxisLayout:
    """A valid layout of names with `extents`; `shape` holds the extent of each item's dimension."""

    items: tuple[Item, ...]
    extents: Mapping[str, int]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.items))

    @property
    def is_padded(self) -> bool:
        """True where the dimensions hold more elements than the names have values."""
        return prod(self.shape) > prod(self.extents.values())

    def forward(self) -> tuple[IndexExpr, ...]:
        """Return the index of each dimension over the names."""
        ranges = {name: (0, extent - 1) for name, extent in self.extents.items()}
        indices = []
        for item in self.items:
            value = self._fused(item.names)
            if item.part:
                value = value // item.tile if item.part == "/" else value % item.tile
            indices.append(value.simplify(ranges))
        return tuple(indices)

    def inverse(self, dims: Sequence[str]) -> dict[str, IndexExpr]:
        """Each name over dimensions called `dims`; what lies in the padding is beyond the name's extent."""
        ranges = self._ranges(dims)
        values: dict[str, IndexExpr] = dict.fromkeys(self.extents, ZERO)
        for names, fused in self._groups(dims).items():
            below = 1
            for name in reversed(names):
                value = fused // below
                if name != names[0]:
                    value = value % self.extents[name]
                values[name] = value.simplify(ranges)
                below *= self.extents[name]
        return values

    def padding(self, dims: Sequence[str]) -> tuple[IndexExpr, ...]:
        """Return expressions that are negative just for the elements in the padding, over dimensions called `dims`."""
        ranges = self._ranges(dims)
        inside = [self._size(names) - 1 - fused for names, fused in self._groups(dims).items()]
        return tuple(e for e in inside if e.bounds(ranges)[0] < 0)

    def _ranges(self, dims: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {dim: (0, extent - 1) for dim, extent in zip(dims, self.shape, strict=True)}

    def _groups(self, dims: Sequence[str]) -> dict[tuple[str, ...], IndexExpr]:
        """Return the value of each fused group of names over the dimensions."""
        values: dict[tuple[str, ...], IndexExpr] = {}
        for item, dim in zip(self.items, dims, strict=True):
            part = axis(dim) * item.tile if item.part == "/" else axis(dim)
            values[item.names] = values[item.names] + part if item.names in values else part
        return values

    def _fused(self, names: tuple[str, ...]) -> IndexExpr:
        value = ZERO
        for name in names:
            value = value * self.extents[name] + axis(name)
        return value

    def _size(self, names: tuple[str, ...]) -> int:
        return prod(self.extents[n] for n in names)


def parse_layout(texts: Sequence[str], extents: Mapping[str, int]) -> AxisLayout:
    """Parse the layout that `texts` spell for names with `extents`.

    Every name of an extent above 1 must be covered exactly once; LayoutError otherwise.
    """
    items = tuple(_parse_item(text, extents) for text in texts)
    if not items:
        raise LayoutError("a layout has at least one item")
    _check_cover(items, extents)
    shape = []
    for item in items:
        size = prod(extents[n] for n in item.names)
        shape.append({"": size, "/": item.tiles(size), "%": item.tile}[item.part])
    return AxisLayout(items, dict(extents), tuple(shape))


def layout_names(texts: Sequence[str]) -> frozenset[str]:
    """Return the names that `texts` lay out; LayoutError for what is no layout item."""
    return frozenset(name for text in texts for name in _item_names(_matched(text)))


def _matched(text: str) -> re.Match[str]:
    match = _ITEM.fullmatch(text)
    if match is None:
        raise LayoutError(f"'{text}' is no layout item; items are like i, i*j, i/16, i%16")
    return match


def _item_names(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in match[1].split("*"))


def _parse_item(text: str, extents: Mapping[str, int]) -> Item:
    match = _matched(text)
    names = _item_names(match)
    for name in names:
        if name not in extents:
            raise LayoutError(f"'{text}' is not over them: '{name}' is none of {', '.join(extents)}")
    if len(set(names)) != len(names):
        raise LayoutError(f"'{text}' names '{next(n for n in names if names.count(n) > 1)}' twice")
    multiple = int(match[4] or 1)
    if multiple < 1 or (match[4] is not None and match[2] != "/"):
        raise LayoutError(f"'{text}' has a multiple, which tiles have, as in i/16:4, of at least 1")
    if match[2] is None:
        return Item(names)
    tile = OpenNumber(match[3][1:-1]) if match[3][0] == "<" else int(match[3])
    if tile < 1:
        raise LayoutError(f"'{text}' has tile {tile}, at least 1 is needed")
    return Item(names, match[2], tile, multiple)


def _check_cover(items: Sequence[Item], extents: Mapping[str, int]) -> None:
    groups: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        groups.setdefault(item.names, []).append(item)
    held: dict[str, tuple[str, ...]] = {}
    for names in groups:
        for name in names:
            if name in held:
                first, second = "*".join(held[name]), "*".join(names)
                raise LayoutError(f"'{name}' is covered twice, by '{first}' and by '{second}'")
            held[name] = names
    for names, parts in groups.items():
        _check_parts(names, parts, prod(extents[n] for n in names))
    for name, extent in extents.items():
        if extent > 1 and name not in held:
            raise LayoutError(f"'{name}' has extent {extent} and is not covered")


def _check_parts(names: tuple[str, ...], parts: Sequence[Item], size: int) -> None:
    text = "*".join(names)
    kinds = sorted(item.part for item in parts)
    if kinds == [""] or (kinds == ["%"] and parts[0].tile >= size):
        return
    if kinds == ["%", "/"]:
        if parts[0].tile != parts[1].tile:
            raise LayoutError(f"'{parts[0]}' and '{parts[1]}' must have the same tile")
        return
    if len(parts) == 1:
        other = Item(names, "%" if parts[0].part == "/" else "/", parts[0].tile)
        raise LayoutError(f"'{parts[0]}' needs '{other}' beside it: '{text}' has extent {size}")
    listed = "', '".join(map(str, parts))
    raise LayoutError(f"'{text}' is covered more than once, by '{listed}'")
