"""The arith dialect on tensors, and on scalars, which are tensors without axes."""

from __future__ import annotations

import numpy as np

from ....dialects.numpy_types import UNSIGNED
from ....graph.network import Value
from ..bodies import _FIRST_UNSIGNED, _FLOAT_PREDICATES, _INTEGER_PREDICATES
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Builder, Node
from . import _scalar
from ._scalar import both, by, same

addf = addi = by(_scalar.add)
andi = both("logical_and", "bitwise_and")
divf = divsi = by(_scalar.divide)
floordivsi = same("floor_divide")
maximumf = maxnumf = maxsi = same("maximum")
minimumf = minnumf = minsi = same("minimum")
mulf = muli = by(_scalar.multiply)
negf = by(_scalar.negate)
ori = both("logical_or", "bitwise_or")
remf = remsi = by(_scalar.remainder)
select = same("where")
shli = same("shift_left")
shrsi = same("shift_right")
shrui = by(_scalar.logical_shift)
subf = subi = same("subtract")
xori = both("logical_xor", "bitwise_xor")


def _unsigned(build: Builder, x: Value) -> Value:
    return x if x.dtype in UNSIGNED or x.dtype == "bool" else build.elementwise("bitcast", x, dtype=f"u{x.dtype}")


def _as_unsigned(function: str) -> Converter:
    def convert(node: Node) -> Value:
        x, y = (_unsigned(node.build, v) for v in node.operands)
        made = _scalar.remainder(node.build, x, y) if function == "mod" else node.build.elementwise(function, x, y)
        return made if made.dtype == node.dtype else node.build.elementwise("bitcast", made, dtype=node.dtype)

    return Converter(convert)


divui = _as_unsigned("floor_divide")
remui = _as_unsigned("mod")
maxui = _as_unsigned("maximum")
minui = _as_unsigned("minimum")


@Converter
def ceildivsi(node: Node) -> Value:
    x, y = node.operands
    down = node.build.elementwise("floor_divide", _scalar.negate(node.build, x), y)
    return _scalar.negate(node.build, down)


@Converter
def constant(node: Node) -> Value:
    return node.build.constant(np.asarray(node.need("value")), node.dtype)


@Converter
def _plain_cast(node: Node) -> Value:
    return node.build.cast(node.value(), node.dtype)


@Converter
def _signed_cast(node: Node) -> Value:
    """A condition is -1 as a signed integer of one bit."""
    made = node.build.cast(node.value(), node.dtype)
    return _scalar.negate(node.build, made) if node.value().dtype == "bool" else made


@Converter
def _unsigned_cast(node: Node) -> Value:
    return node.build.cast(_unsigned(node.build, node.value()), node.dtype)


@Converter
def trunci(node: Node) -> Value:
    x = node.value()
    if node.dtype == "bool":
        x = node.build.elementwise("bitwise_and", x, node.build.like(1, x))
    return node.build.cast(x, node.dtype)


extf = truncf = fptosi = index_cast = _plain_cast
extsi = sitofp = _signed_cast
extui = uitofp = index_castui = _unsigned_cast


@Converter
def fptoui(node: Node) -> Value:
    made = node.build.cast(node.value(), node.dtype if node.dtype in UNSIGNED else f"u{node.dtype}")
    return made if made.dtype == node.dtype else node.build.elementwise("bitcast", made, dtype=node.dtype)


@Converter
def bitcast(node: Node) -> Value:
    return node.build.elementwise("bitcast", node.value(), dtype=node.dtype)


@Converter
def cmpf(node: Node) -> Value:
    place, build = int(node.need("predicate")), node.build
    x, y = node.operands
    if place in (7, 14):
        nan = build.elementwise("logical_or", build.elementwise("is_nan", x), build.elementwise("is_nan", y))
        return nan if place == 14 else build.elementwise("logical_not", nan)
    if not _FLOAT_PREDICATES[place]:
        raise UnsupportedOperation(f"predicate {place} is always true or false")
    return _scalar.compare(build, _FLOAT_PREDICATES[place], x, y)


@Converter
def cmpi(node: Node) -> Value:
    place, build = int(node.need("predicate")), node.build
    x, y = node.operands
    if place >= _FIRST_UNSIGNED:
        x, y = _unsigned(build, x), _unsigned(build, y)
    return _scalar.compare(build, _INTEGER_PREDICATES[place], x, y)
