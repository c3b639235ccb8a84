"""The layout of a network's feature maps: as it was built, NCHW, NHWC, or the one that suits it."""

from __future__ import annotations

from math import prod

from ..dialects.graph import ApplyOp
from .network import Network
from .operator import operator
from .passes._rewrite import applied, is_constant
from .types import shape_of

LAYOUTS = ("NCHW", "NHWC", "auto")
_MOST_TRANSPOSED = 0.25
"""Channels-last pays while transposes move less than this part of what convolutions and pooling read and write. A
choice: more of them cost as much as it gains."""


def in_layout(net: Network, layout: str | None) -> Network:
    """Convert a network's feature maps to a layout; inputs and outputs keep theirs. None leaves it as it is.

    "auto" is NHWC, which kernels for CPUs and GPUs are faster in, but not where transposes to and fro would take up the
    gain, as in a network of one convolution, or one that shuffles channels. ValueError for another word.
    """
    if layout is None:
        return net
    if layout not in LAYOUTS:
        raise ValueError(f"layout is one of {', '.join(LAYOUTS)} or None, got {layout!r}")
    if layout != "auto":
        return _converted(net, layout)
    if not _windows(net):
        return net
    after = _converted(net, "NHWC")
    added = _transposed(after) - _transposed(net.transform("lw-graph-simplify,cse,dce"))
    return after if added <= _MOST_TRANSPOSED * sum(map(_moved, _windows(net))) else net


def _converted(net: Network, layout: str) -> Network:
    return net.transform(f"lw-graph-simplify,lw-graph-convert-layout{{layout={layout}}},lw-graph-simplify,cse,dce")


def _windows(net: Network) -> list[ApplyOp]:
    """Return the operators that have a layout: convolutions, pooling, resizing."""
    return [op for op in applied(net.module) if "layout" in operator(op.operator.data).defaults]


def _moved(op: ApplyOp) -> int:
    """Elements of feature maps that an operator reads and writes."""
    return prod(shape_of(op.inputs[0])) + prod(shape_of(op.outputs[0]))


def _transposed(net: Network) -> int:
    """Elements of feature maps that transposes read and write."""
    found = [op for op in applied(net.module) if op.operator.data == "transpose"]
    return sum(_moved(op) for op in found if not is_constant(op.outputs[0]))
