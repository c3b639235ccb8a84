"""Tensors in tiles: `pack` and `unpack`, which stood in the tensor dialect and stand in linalg."""

from __future__ import annotations

from dataclasses import dataclass

from ....graph.network import Value
from ..errors import UnsupportedOperation
from ..node import Node
from ._movement import pad_value, padded


@dataclass(frozen=True)
class _Tiles:
    """Tiles of the axes `axes`, whose extents stand last in the packed tensor; axes of tiles stand as `order` says."""

    axes: list[int]
    extents: list[int]
    order: list[int]

    @classmethod
    def of(cls, node: Node, rank: int) -> _Tiles:
        extents = node.ints("static_inner_tiles") or node.ints("inner_tiles")
        return cls(node.ints("inner_dims_pos"), extents, node.ints("outer_dims_perm") or list(range(rank)))

    def whole(self, rank: int) -> list[int]:
        """Return the extent of a tile along each axis of the plain tensor, 1 where there are none."""
        return [self.extents[self.axes.index(d)] if d in self.axes else 1 for d in range(rank)]

    def places(self, rank: int) -> list[int]:
        """Return the permutation from (axis, its tile, axis, its tile, ..) to the packed tensor's axes."""
        split, position = {}, 0
        for d in range(rank):
            split[d] = position
            position += 2 if d in self.axes else 1
        return [*(split[d] for d in self.order), *(split[d] + 1 for d in self.axes)]


def packed(node: Node) -> Value:
    """Pad to whole tiles, and bring the elements of each tile together."""
    x, build = node.value(0), node.build
    rank = len(x.shape)
    tiles = _Tiles.of(node, rank)
    whole = tiles.whole(rank)
    counts = [-(-n // t) for n, t in zip(x.shape, whole, strict=True)]
    value = pad_value(node.value(2)) if len(node.operands) > 2 else 0.0
    x = padded(build, x, value, [0] * rank, [c * t - n for c, t, n in zip(counts, whole, x.shape, strict=True)])
    split = [n for d in range(rank) for n in ((counts[d], whole[d]) if d in tiles.axes else (counts[d],))]
    return build.transpose(build.reshape(x, split), tiles.places(rank))


def unpacked(node: Node) -> Value:
    """Bring the elements of tiles back to where they stood, and cut off what was padded."""
    x, shape, build = node.value(0), node.shape, node.build
    rank = len(shape)
    tiles = _Tiles.of(node, rank)
    places = tiles.places(rank)
    x = build.transpose(x, [places.index(d) for d in range(len(places))])
    whole, split = tiles.whole(rank), iter(x.shape)
    padded_shape = [next(split) * (next(split) if d in tiles.axes else 1) for d in range(rank)]
    if any(n % t for n, t in zip(padded_shape, whole, strict=True)):
        raise UnsupportedOperation(f"tiles {tiles.extents} do not fit {list(node.value().shape)}")
    return build.slice(build.reshape(x, padded_shape), [0] * rank, shape, [1] * rank)
