"""The layout of a network's feature maps: as it was built, NCHW, NHWC, or the one that suits it."""

from __future__ import annotations

from math import prod

from ..dialects.element import is_float
from ..dialects.graph import ApplyOp
from ..dialects.intrinsics import intrinsics
from ..dialects.target import Target
from .network import Network
from .operator import operator
from .passes._rewrite import applied, is_constant, option
from .types import dtype_of, shape_of

LAYOUTS = ("NCHW", "NHWC", "auto")
_MOST_TRANSPOSED = 0.25
"""Channels-last pays while transposes move less than this part of what convolutions and pooling read and write. A
choice: more of them cost as much as it gains."""
_WORTH_ALL = {"llvm": 16, "cuda": 256}
"""Multiplications for each element that a convolution on matrix units reads or writes, from which on its kernel in
channels-last pays for any transposes around it, by the target's kind. One core with AMX, bfloat16, ms of CPU in
channels-first and with transposes: 8 to 8 channels, 1x1 (4 an element) 0.07 and 0.17, 64 to 16 (13) 1.06 and 1.76, 32
to 32 (16) 1.30 and 0.97, 8 to 8, 3x3 (36) 0.54 and 0.42, 256 to 256, 3x3, batch 8 23.8 and 2.2. Without such units
there is no gain: float32 1.19 and 2.10 for 32 to 32, 18.0 and 21.2 for 256 to 256. An H200, us: 256 to 64, 1x1 (51)
3.9 and 7.2, batch 8 17.4 and 20.5; 64 to 64, 3x3, batch 8 (288) 77.7 and 17.9, 256 to 256 (1152) 164.8 and 17.1."""


def in_layout(net: Network, layout: str | None, target: Target | None = None) -> Network:
    """Convert a network's feature maps to a layout; inputs and outputs keep theirs. None leaves it as it is.

    "auto" is NHWC, which kernels for CPUs and GPUs are faster in, but not where transposes to and fro would take up the
    gain, as in a network of one convolution, or one that shuffles channels. On a target with matrix units for 16-bit
    floats, convolutions of these gain more than that. ValueError for another word.
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
    types = _on_units(target)
    worth_all = _WORTH_ALL[target.kind] if target is not None and types else 0
    return after if added <= sum(_moved(op) * _part_transposed(op, types, worth_all) for op in _windows(net)) else net


def _on_units(target: Target | None) -> frozenset[str]:
    """Return the types that convolutions multiply on matrix units, in channels-last alone."""
    if target is None or target.kind not in _WORTH_ALL:
        return frozenset()
    return frozenset(x.a.element for x in intrinsics(target) if is_float(x.a.type) and x.a.bytes == 2)


def _part_transposed(op: ApplyOp, on_units: frozenset[str], worth_all: int) -> float:
    """Return how much transposes may move for an operator, as a part of what it moves."""
    if op.operator.data != "conv2d" or option(op, "groups") != 1 or dtype_of(op.inputs[0]) not in on_units:
        return _MOST_TRANSPOSED
    made, weight = shape_of(op.outputs[0]), shape_of(op.inputs[1])
    channels = made[1] if option(op, "layout") == "NCHW" else made[3]
    terms = prod(made) * prod(weight) // channels
    return 2 if terms >= worth_all * _moved(op) else _MOST_TRANSPOSED


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
