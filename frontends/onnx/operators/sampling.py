"""Sampling of images at given places: products with the weights of their elements, one axis after the other."""

from __future__ import annotations

from math import prod

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node

_METHODS = {"bilinear": "linear", "linear": "linear", "bicubic": "cubic", "cubic": "cubic", "nearest": "nearest"}
_LETTERS = "abc"


def GridSample(node: Node) -> Value:
    """Elements (N, C, ...) at places (N, ..., axes), the last axis of the data first.

    As many steps a place as the data has elements, but those of a matrix product: gathers are not affine.
    """
    x, grid, net = node.value(0), node.value(1), node.net
    axes = len(x.shape) - 2
    mode = str(node.get("mode", "linear"))
    if not 1 <= axes <= len(_LETTERS) or grid.shape[-1] != axes or mode not in _METHODS:
        raise UnsupportedNode(f"mode {mode} of data {x.shape} at places {grid.shape} is not supported")
    batch, channels, *extents = x.shape
    places = net.reshape(grid, shape=(batch, prod(grid.shape[1:-1]), axes))
    options = {"padding": node.get("padding_mode", "zeros"), "align_corners": bool(node.get("align_corners", 0))}

    def weights(axis: int) -> Value:
        last = axes - 1 - axis
        one = net.strided_slice(places, begin=[last], end=[last + 1], axes=[2])
        flat = net.reshape(one, shape=one.shape[:2])
        made: Value = net.sampling_weights(flat, extent=extents[axis], method=_METHODS[mode], **options)
        return made if made.dtype == x.dtype else net.cast(made, dtype=x.dtype)

    rows = net.reshape(x, shape=(batch, channels * prod(extents[:-1]), extents[-1]))
    y = node.apply("batch_matmul", rows, weights(axes - 1), transpose_b=True)
    y = net.reshape(y, shape=(batch, channels, *extents[:-1], y.shape[2]))
    for axis in range(axes - 2, -1, -1):
        left = _LETTERS[:axis]
        y = node.apply("einsum", y, weights(axis), equation=f"nz{left}hp,nph->nz{left}p")
    return net.reshape(y, shape=(batch, channels, *grid.shape[1:-1]))
